// Views, joins and repetitions: values against PyTorch's texts, gradients as the adjoint map, sharing of
// storage, errors.
#include "tern/ops/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/core/allocation_limit.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/reduce.h"
#include "tests/ops/shape_rows.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using namespace shape_test;
using ::testing::HasSubstr;

TEST(Shape, ValuesEqualPyTorch) {
  for (const Row& row : kRows) {
    Tensor x = arange(checked_numel(row.shape), as(float32)).view(row.shape);
    EXPECT_EQ(to_string(row.op(x).cpu()), row.text) << row.name;
    Tensor integers = arange(checked_numel(row.shape), as(int16)).view(row.shape);
    EXPECT_EQ(to_string(to(row.op(integers).cpu(), float32)), row.text) << row.name << " of int16";
  }
}

double dot(const Tensor& a, const Tensor& b) { return sum(mul(a, b)).item<double>(); }

// Every operator here is linear but for constants: y = A x + c. The gradient of <y, w> is then A^T w, whose
// product with any v is <A v, w>; and the gradient of <A^T w, v> with respect to w is A v.
TEST(Shape, GradientsAreTheAdjoint) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    const int64_t n = checked_numel(row.shape);
    Tensor x = arange(n, as(float64)).view(row.shape).detach().requires_grad_();
    Tensor y = row.op(x);
    ASSERT_TRUE(y.requires_grad());
    Tensor w = (arange(y.numel(), as(float64)) * 1.5 - 4.0).view(y.shape()).detach().requires_grad_();
    Tensor gradient =
        grad({y}, {x}, {w}, {.retain_graph = true, .create_graph = true, .allow_unused = false})[0];
    ASSERT_EQ(gradient.shape(), x.shape());
    Tensor constant = row.op(zeros(row.shape, as(float64)));
    for (int64_t i = 0; i < n; ++i) {
      Tensor unit = zeros({n}, as(float64));
      unit.narrow(0, i, 1).fill_(1);
      Tensor v = unit.view(row.shape);
      Tensor column = (row.op(v) - constant).detach();
      ASSERT_EQ(dot(gradient.detach(), v), dot(column, w.detach())) << "element " << i;
      Tensor second =
          grad({gradient}, {w}, {v}, {.retain_graph = true, .create_graph = false, .allow_unused = false})[0];
      ASSERT_EQ(to_string(second), to_string(column)) << "second derivative, element " << i;
    }
  }
}

TEST(Shape, ViewsShareStorage) {
  Tensor x = arange(24, as(float32)).view({2, 3, 4});
  const Tensor views[] = {x.view({6, 4}),
                          reshape(x, {24}),
                          permute(x, {2, 0, 1}),
                          transpose(x, 0, 1),
                          expand(x, {5, 2, 3, 4}),
                          narrow(x, 1, 1, 2),
                          slice(x, 2, 1, 4, 2),
                          select(x, 0, 1),
                          squeeze(x),
                          unsqueeze(x, 1),
                          flatten(x, 1),
                          unflatten(x, 2, {2, 2}),
                          diagonal(x, 0, 1, 2),
                          unfold(x, 2, 2, 1),
                          as_strided(x, {2}, {3}, 5),
                          unbind(x, 1)[2],
                          chunk(x, 2, 2)[1],
                          split(x, 1)[1],
                          movedim(x, 0, 2),
                          mT(x)};
  for (const Tensor& view : views) EXPECT_EQ(view.storage(), x.storage()) << to_string(view.shape());
  const Tensor copies[] = {reshape(transpose(x, 0, 1), {24}),
                           cat({x, x}),
                           stack({x}),
                           repeat(x, {1, 1, 1}),
                           roll(x, {0}),
                           flip(x, {}),
                           repeat_interleave(x, 1),
                           tile(x, {1})};
  for (const Tensor& copy : copies) EXPECT_NE(copy.storage(), x.storage()) << to_string(copy.shape());
  views[1].select(0, 13).fill_(99);
  EXPECT_EQ(select(x, 0, 1).flatten()[1].item<float>(), 99);
  EXPECT_TRUE(flatten(x, 1, 1).is_same(x));
}

TEST(Shape, ChangesThroughViewsReachTheHistory) {
  Tensor leaf = tensor({1.0, 2.0, 3.0}, as(float64, true));
  Tensor y = mul(leaf, 2.0);
  Tensor part = narrow(y, 0, 1, 1);
  part.mul_(10);
  sum(y).backward();
  EXPECT_EQ(to_string(y.detach().cpu()), "tensor([ 2., 40.,  6.], dtype=torch.float64)");
  EXPECT_EQ(to_string(leaf.grad().cpu()), "tensor([ 2., 20.,  2.], dtype=torch.float64)");
  EXPECT_THROW(select(leaf, 0, 0).mul_(2), AutogradError);
}

TEST(Shape, PiecesAndPromotion) {
  Tensor x = arange(7);
  EXPECT_EQ(chunk(x, 4).size(), 4u);
  EXPECT_EQ(chunk(arange(6), 4).size(), 3u);  // of two elements each
  EXPECT_EQ(chunk(zeros({0}), 3).size(), 3u);
  EXPECT_EQ(split(x, 3).size(), 3u);
  EXPECT_EQ(split(zeros({0}), 3).size(), 1u);
  EXPECT_EQ(split(x, {3, 0, 4}).size(), 3u);
  EXPECT_EQ(unbind(zeros({3, 0})).size(), 3u);
  EXPECT_EQ(cat({tensor({1}), tensor({1.5})}).dtype(), float32);
  EXPECT_EQ(cat({tensor({1}, as(uint8)), tensor({1}, as(int8))}).dtype(), int16);
  EXPECT_EQ(stack({tensor(true), tensor(2)}).dtype(), int64);
  Tensor a = tensor({1.0}, as(float32, true)), b = tensor({2.0}, as(float64, true));
  sum(cat({a, b})).backward();
  EXPECT_EQ(a.grad().dtype(), float32);
  EXPECT_EQ(b.grad().dtype(), float64);
}

TEST(Shape, NamesOfGradientFunctions) {
  struct Named {
    Tensor y;
    const char* name;
  };
  Tensor x = zeros({2, 3}, as(float32, true));
  const Named rows[] = {{view(x, {6}), "ViewBackward0"},
                        {reshape(x, {6}), "ViewBackward0"},
                        {reshape(t(x), {6}), "UnsafeViewBackward0"},
                        {flatten(x), "ViewBackward0"},
                        {t(x), "TBackward0"},
                        {mT(x), "TransposeBackward0"},
                        {swapaxes(x, 0, 1), "TransposeBackward0"},
                        {movedim(x, 0, 1), "PermuteBackward0"},
                        {x[0], "SelectBackward0"},
                        {narrow(x, 0, 0, 1), "SliceBackward0"},
                        {squeeze(x), "SqueezeBackward0"},
                        {squeeze(x, 0), "SqueezeBackward1"},
                        {squeeze(x, {0, 1}), "SqueezeBackward2"},
                        {unsqueeze(x, 0), "UnsqueezeBackward0"},
                        {expand(x, {2, 2, 3}), "ExpandBackward0"},
                        {chunk(x, 2)[0], "SplitBackward0"},
                        {split(x, {1, 1})[0], "SplitWithSizesBackward0"},
                        {unbind(x)[0], "UnbindBackward0"},
                        {cat({x, x}), "CatBackward0"},
                        {hstack({x, x}), "CatBackward0"},
                        {stack({x, x}), "StackBackward0"},
                        {roll(x, {1}, {0}), "RollBackward0"},
                        {flip(x, {0}), "FlipBackward0"},
                        {tril(x), "TrilBackward0"},
                        {diagonal(x), "DiagonalBackward0"},
                        {unfold(x, 0, 1, 1), "UnfoldBackward0"},
                        {as_strided(x, {1}, {1}), "AsStridedBackward0"}};
  for (const Named& row : rows)
    EXPECT_THAT(to_string(row.y), HasSubstr(std::string("grad_fn=<") + row.name + ">"));
}

TEST(Shape, Errors) {
  Tensor x = zeros({2, 3});
  expect_error<ShapeError>([&] { view(x, {2, 4}); }, "view: shape '[2, 4]' is invalid for input of size 6");
  expect_error<ShapeError>([&] { view(x, {-1, 4}); }, "view: shape '[-1, 4]' is invalid for input of size 6");
  expect_error<ShapeError>(
      [&] { view(t(x), {6}); },
      "view: view size [6] is not compatible with input tensor's size [3, 2] and stride [1, 3]");
  expect_error<ShapeError>([&] { view(t(x), {6}); }, "Use .reshape(...) instead");
  expect_error<ShapeError>([&] { reshape(x, {-1, -1}); }, "reshape: only one dimension can be inferred");
  expect_error<ShapeError>([&] { reshape(x, {-2, 3}); }, "reshape: invalid shape dimension -2 at index 0");
  expect_error<ShapeError>(
      [&] {
        reshape(zeros({0}), {-1, 0});
      },
      "reshape: cannot reshape tensor of 0 elements into shape [-1, 0]");
  expect_error<ShapeError>(
      [&] {
        reshape(x, {int64_t{1} << 32, int64_t{1} << 32});
      },
      "is invalid for input of size 6");
  expect_error<ShapeError>([&] { flatten(x, 1, 0); }, "flatten: start_dim 1 cannot come after end_dim 0");
  expect_error<IndexError>([&] { flatten(x, 2); },
                           "flatten: Dimension out of range (expected to be in range of [-2, 1], but got 2)");
  expect_error<ShapeError>([&] { unflatten(x, 1, {2, 2}); }, "unflatten: dim 1 of shape [2, 3]");
  expect_error<IndexError>([&] { squeeze(x, 5); }, "squeeze");
  expect_error<IndexError>(
      [&] { unsqueeze(x, 4); },
      "unsqueeze: Dimension out of range (expected to be in range of [-3, 2], but got 4)");
  expect_error<ShapeError>([&] { permute(x, {0}); }, "input.dim() = 2 is not equal to len(dims) = 1");
  expect_error<ShapeError>(
      [&] {
        permute(x, {0, -2});
      },
      "permute: dim 0 appears multiple times in the list of dims [0, -2]");
  expect_error<IndexError>([&] { transpose(x, 0, 2); }, "transpose: Dimension out of range");
  expect_error<ShapeError>(
      [&] {
        t(zeros({1, 2, 3}));
      },
      "t: expects a tensor with <= 2 dimensions, but self is 3D");
  expect_error<ShapeError>([&] { mT(zeros({2})); }, "mT: only supported on matrices");
  expect_error<ShapeError>(
      [&] {
        movedim(x, {0, 1}, {0});
      },
      "movedim: source [0, 1] and destination [0] must have one length");
  expect_error<ShapeError>([&] { expand(x, {3}); },
                           "expand: the number of sizes provided (1) must be greater or equal to the number "
                           "of dimensions in the tensor (2)");
  expect_error<ShapeError>(
      [&] {
        expand(x, {4, 3});
      },
      "expand: The expanded size of the tensor (4) must match the existing size (2) at non-singleton "
      "dimension 0");
  expect_error<ShapeError>(
      [&] {
        expand(x, {-1, 2, 3});
      },
      "expand: the expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension 0");
  expect_error<ShapeError>(
      [&] {
        broadcast_tensors({x, zeros({4})});
      },
      "broadcast_tensors: shapes [2, 3] and [4] do not broadcast");
  expect_error<ValueError>([&] { meshgrid({zeros({2})}, "xx"); }, "meshgrid: indexing must be");
  expect_error<ShapeError>([&] { narrow(x, 1, 2, 2); },
                           "narrow: start (2) + length (2) exceeds dimension size (3)");
  expect_error<IndexError>([&] { narrow(x, 1, 4, 0); },
                           "narrow: start out of range (expected to be in range of [-3, 3], but got 4)");
  expect_error<ShapeError>([&] { narrow(x, 1, 0, -1); }, "narrow: length must be non-negative, got -1");
  expect_error<ShapeError>([&] { narrow(zeros({}), 0, 0, 1); },
                           "narrow: cannot be applied to a 0-dim tensor");
  expect_error<ValueError>([&] { slice(x, 0, {}, {}, 0); }, "slice: step must be positive, got 0");
  expect_error<IndexError>([&] { select(x, 1, 3); },
                           "select: index 3 out of range for tensor of size [2, 3] at dimension 1");
  expect_error<ShapeError>([&] { zeros({})[0]; }, "select: cannot be applied to a 0-dim tensor");
  expect_error<ValueError>([&] { chunk(x, 0); }, "chunk: expects `chunks` to be greater than 0, got: 0");
  expect_error<ValueError>([&] { split(x, -1); },
                           "split: expects split_size be non-negative, but got split_size=-1");
  expect_error<ValueError>([&] { split(x, int64_t{0}); },
                           "split: split_size can only be 0 if dimension size is 0");
  expect_error<ShapeError>(
      [&] {
        split(x, {1, 3}, 1);
      },
      "to sum exactly to 3 (input tensor's size at dimension 1), but got split_sizes=[1, 3]");
  expect_error<ShapeError>([&] { diagonal(x, 0, 1, -1); }, "diagonal: dimensions cannot be identical 1, -1");
  expect_error<ShapeError>([&] { unfold(x, 1, 4, 1); }, "unfold: size must be in [0, 3]");
  expect_error<ValueError>([&] { unfold(x, 1, 2, 0); }, "unfold: step is 0 but must be > 0");
  expect_error<ShapeError>(
      [&] {
        as_strided(x, {3, 3}, {3, 1});
      },
      "as_strided: from_storage: shape [3, 3] with strides [3, 1] and offset 0 reaches outside a storage");
  EXPECT_EQ(as_strided(x, {0}, {1}, 100).numel(), 0) << "an empty one may begin anywhere";
  expect_error<ValueError>([&] { cat({}); }, "cat: expected a non-empty list of Tensors");
  expect_error<ShapeError>(
      [&] {
        cat({x, zeros({2, 4})});
      },
      "cat: Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor "
      "number 1");
  expect_error<ShapeError>(
      [&] {
        cat({x, zeros({2})});
      },
      "cat: Tensors must have same number of dimensions: got 2 and 1");
  expect_error<ShapeError>(
      [&] {
        cat({tensor(1), tensor(2)});
      },
      "cat: zero-dimensional tensor (at position 0) cannot be concatenated");
  expect_error<ShapeError>(
      [&] {
        stack({x, zeros({3})});
      },
      "stack: expects each tensor to be equal size, but got [2, 3] at entry 0 and [3] at entry 1");
  expect_error<ShapeError>([&] { repeat(x, {2}); },
                           "repeat: number of dimensions of repeat dims can not be smaller");
  expect_error<ShapeError>([&] { repeat(x, {2, -1}); }, "repeat: repeats can not be negative: [2, -1]");
  expect_error<ValueError>([&] { repeat_interleave(x, -1); },
                           "repeat_interleave: repeats must be non-negative, got -1");
  expect_error<ShapeError>([&] { roll(x, {1, 2}, {0}); }, "roll: `shifts` and `dims` must align");
  expect_error<ShapeError>([&] { flip(x, {0, 0}); }, "flip: dim 0 appears multiple times");
}

/// Larger than what is copied at once.
TEST(Cat, ManyShortRows) {
  const int64_t rows = 70001;
  Tensor a = arange(rows * 3).reshape({rows, 3}).to(float32), b = arange(rows * 6).reshape({6, rows}).t();
  Tensor empty = zeros({0}), joined = cat({a, empty, b}, 1);
  EXPECT_EQ(joined.shape(), (Shape{rows, 9}));
  EXPECT_TRUE(equal(narrow(joined, 1, 0, 3), a));
  EXPECT_TRUE(equal(narrow(joined, 1, 3, 6), b));
  const Tensor stacked = stack({a, a + 1, -a}, 1);
  EXPECT_EQ(stacked.shape(), (Shape{rows, 3, 3}));
  EXPECT_TRUE(equal(select(stacked, 1, 1), a + 1));
  EXPECT_TRUE(equal(select(stacked, 1, 2), -a));
}

TEST(CatErrors, SizesThatAddUpToTooMuch) {
  const Tensor long_one = ones({1}).expand({int64_t{1} << 62});
  expect_error<ShapeError>(
      [&] {
        cat({long_one, long_one, long_one, long_one, ones({3})});
      },
      "more than a size");
}

TEST(Sizes, OfTensorsWithoutDimensions) {
  const Tensor x = tensor(1.0);
  for (const int64_t dim : {0, -1}) {
    expect_error<IndexError>([&] { x.size(dim); }, "tensor has no dimensions");
    expect_error<IndexError>([&] { x.stride(dim); }, "tensor has no dimensions");
  }
}

TEST(Split, AListOfOneSizeIsAList) {
  expect_error<ShapeError>([] { arange(8).split({4}); }, "sum exactly to 8");
  EXPECT_EQ(arange(8).split(4).size(), 2u);
}

TEST(Shape, NumbersOfPartsThatNoMemoryHolds) {
  const int64_t huge = int64_t{1} << 62;
  const Tensor x = ones({3}), nothing = zeros({0}), repeated = ones({1}).expand({huge});
  const std::pair<const char*, std::function<void()>> rows[] = {
      {"split: gives at most 16777216 tensors, not 4611686018427387904", [&] { chunk(nothing, huge); }},
      {"split: gives at most 16777216 tensors", [&] { split(repeated, 1); }},
      {"unbind: gives at most 16777216 tensors", [&] { unbind(repeated); }},
      {"tensor_split: gives at most 16777216 tensors, not 4611686018427387904",
       [&] { tensor_split(x, huge); }},
  };
  for (const auto& [text, call] : rows) expect_error<ValueError>(call, text);
  EXPECT_EQ(chunk(repeated, 1)[0].shape(), (Shape{huge}));
  EXPECT_EQ(chunk(x, huge).size(), 3u);
  EXPECT_EQ(split(x, huge).size(), 1u);
}

TEST(Shape, StridesThatLeadNowhere) {
  const int64_t huge = int64_t{1} << 62;
  const Tensor x = arange(6).view({3, 2}), one = as_strided(x, {1, 1}, {huge, huge}),
               nothing = as_strided(x, {4, 0}, {huge, 1});
  EXPECT_EQ(slice(x, 0, 1, {}, huge).to_vector<int64_t>(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(unfold(x, 0, 2, huge).to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 1, 3}));
  EXPECT_EQ(diagonal(one).to_vector<int64_t>(), std::vector<int64_t>{0});
  EXPECT_EQ(narrow(one, 0, 1, 0).numel(), 0);
  EXPECT_EQ(narrow(nothing, 0, 3, 1).shape(), (Shape{1, 0}));
  EXPECT_EQ(select(nothing, 0, 3).shape(), Shape{0});
}

TEST(AllocationLimit, CountsTheTensorsOfItsThread) {
  {
    AllocationLimit outer(100);
    zeros({10});
    {
      AllocationLimit inner(1000);
      zeros({5});
      expect_error<TooLargeError>(
          [] {
            zeros({6, 2});
          },
          "a tensor of shape [6, 2] and dtype float32 needs 48 bytes, where only 40 "
          "are allowed");
    }
  }
  EXPECT_EQ(zeros({100}).numel(), 100);
}

}  // namespace
}  // namespace tern
