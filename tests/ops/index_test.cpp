// Indexed reads and writes, masks, embedding, sorted sequences: values against loops and PyTorch's results,
// gradients, order of repeated writes, errors.
#include "tern/ops/index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tern/autograd/engine.h"
#include "tern/autograd/gradcheck.h"
#include "tern/base/error.h"
#include "tern/base/parallel.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/embedding.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/ops/reduce_testing.h"
#include "tests/support/emulated.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using In = std::vector<Tensor>;

using namespace tern::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Gather, ValuesInEveryDimension) {
  const Tensor x = reshape(arange(12), {3, 4});
  EXPECT_THAT(gather(x, 1, tensor({{0, 3}, {1, 1}, {2, 0}})).to_vector<int64_t>(),
              ElementsAre(0, 3, 5, 5, 10, 8));
  EXPECT_THAT(gather(x, 0, tensor({{0, 2, 1, 1}})).to_vector<int64_t>(), ElementsAre(0, 9, 6, 7));
  EXPECT_THAT(gather(x, -1, tensor({{3}})).to_vector<int64_t>(), ElementsAre(3));
  EXPECT_THAT(gather(transpose(x, 0, 1), 0, tensor({{3, 0, 1}})).to_vector<int64_t>(), ElementsAre(3, 4, 9));
  EXPECT_THAT(gather(x, 1, tensor({{1}}, {.dtype = int32})).to_vector<int64_t>(), ElementsAre(1));
}

TEST(Gather, ZeroDimensionsAndNothing) {
  EXPECT_THAT(gather(tensor(3.5), 0, tensor({0, 0})).to_vector<double>(), ElementsAre(3.5, 3.5));
  EXPECT_EQ(gather(tensor({1, 2}), 0, tensor(1)).dim(), 0);
  EXPECT_EQ(gather(zeros({3, 0}), 1, empty({3, 0}, {.dtype = int64})).numel(), 0);
  EXPECT_EQ(gather(zeros({3, 4}), 1, empty({0, 2}, {.dtype = int64})).shape(), (Shape{0, 2}));
}

TEST(Scatter, ValuesAndOrder) {
  const Tensor x = zeros({2, 3}, {.dtype = int64});
  EXPECT_THAT(scatter(x, 1, tensor({{2, 0}, {1, 1}}), tensor({{7, 8}, {9, 10}})).to_vector<int64_t>(),
              ElementsAre(8, 0, 7, 0, 10, 0));
  EXPECT_THAT(scatter(x, 1, tensor({{2}}), 5).to_vector<int64_t>(), ElementsAre(0, 0, 5, 0, 0, 0));
  EXPECT_THAT(scatter_add(x, 1, tensor({{2, 2}, {1, 1}}), tensor({{7, 8}, {9, 10}})).to_vector<int64_t>(),
              ElementsAre(0, 0, 15, 0, 19, 0));
  Tensor y = zeros({3, 2});
  const Tensor turned = transpose(y, 0, 1);
  Tensor target = turned;
  scatter_(target, 1, tensor({{2, 0}}), 4.0);
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(4, 0, 0, 0, 4, 0));
}

TEST(Scatter, SumsAlongLines) {
  const struct {
    int64_t outer, targets, addresses, inner;
  } rows[] = {{7, 40, 100, 1},  {1, 40, 1500, 7}, {5, 30, 33, 6},
              {1, 50, 3000, 1}, {3, 2, 40, 1},    {1, 5200, 1400, 130}};
  for (const auto& [outer, targets, addresses, inner] : rows) {
    const Tensor at = randint(0, targets, {outer, addresses, inner});
    const Tensor source = to(randint(-9, 10, {outer, addresses, inner}), float32);
    const auto place = at.to_vector<int64_t>();
    const auto value = source.to_vector<float>();
    std::vector<float> sums(static_cast<size_t>(outer * targets * inner), 1);
    for (int64_t i = 0; i < at.numel(); ++i) {
      const auto e = static_cast<size_t>(i);
      sums[static_cast<size_t>((i / inner / addresses * targets + place[e]) * inner + i % inner)] += value[e];
    }
    EXPECT_EQ(scatter_add(ones({outer, targets, inner}), 1, at, source).to_vector<float>(), sums)
        << outer << " " << targets << " " << addresses << " " << inner;
  }
}

TEST(Select, RowsColumnsAndNothing) {
  const Tensor x = reshape(arange(12), {3, 4});
  EXPECT_THAT(index_select(x, 1, tensor({3, 0, 0})).to_vector<int64_t>(),
              ElementsAre(3, 0, 0, 7, 4, 4, 11, 8, 8));
  EXPECT_THAT(index_select(x, 0, tensor(2)).to_vector<int64_t>(), ElementsAre(8, 9, 10, 11));
  EXPECT_EQ(index_select(x, 0, empty({0}, {.dtype = int64})).shape(), (Shape{0, 4}));
  EXPECT_THAT(index_add(x, 0, tensor({1, 1}), ones({2, 4}, {.dtype = int64}), 2).to_vector<int64_t>(),
              ElementsAre(0, 1, 2, 3, 8, 9, 10, 11, 8, 9, 10, 11));
  EXPECT_THAT(index_fill(x, 1, tensor({-1, 0}), -5).to_vector<int64_t>(),
              ElementsAre(-5, 1, 2, -5, -5, 5, 6, -5, -5, 9, 10, -5));
  EXPECT_THAT(index_copy(x, 0, tensor({2}), zeros({1, 4}, {.dtype = int64})).to_vector<int64_t>(),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0));
}

TEST(Index, NumPysRules) {
  const Tensor x = reshape(arange(120), {5, 4, 3, 2});
  const Tensor i = tensor({3, 0}), j = tensor({1, 1});
  EXPECT_EQ(index(x, {Tensor(), i, j}).shape(), (Shape{5, 2, 2}));
  EXPECT_EQ(index(x, {i, Tensor(), j}).shape(), (Shape{2, 4, 2}));
  EXPECT_EQ(index(x, {reshape(i, {2, 1}), tensor({0, 1, 2})}).shape(), (Shape{2, 3, 3, 2}));
  EXPECT_THAT(index(x, {tensor({-1}), tensor({-4}), tensor({0}), tensor({1})}).to_vector<int64_t>(),
              ElementsAre(97));
  EXPECT_THAT(x[tensor(4)].slice(0, 0, 1).select(1, 0).flatten().to_vector<int64_t>(), ElementsAre(96, 97));
  const Tensor y = reshape(arange(6), {2, 3});
  EXPECT_THAT(y[gt(y, 2)].to_vector<int64_t>(), ElementsAre(3, 4, 5));
  EXPECT_THAT(index(y, {tensor({false, true}), tensor({0, 2})}).to_vector<int64_t>(), ElementsAre(3, 5));
  EXPECT_EQ(y[tensor({false, false})].shape(), (Shape{0, 3}));
}

TEST(Index, PutReplacesOrAdds) {
  const Tensor x = zeros({2, 3}, {.dtype = int64}), rows = tensor({1, 1, 0}), cols = tensor({2, 2, 0});
  EXPECT_THAT(index_put(x, {rows, cols}, tensor({5, 6, 7})).to_vector<int64_t>(),
              ElementsAre(7, 0, 0, 0, 0, 6));
  EXPECT_THAT(index_put(x, {rows, cols}, tensor({5, 6, 7}), true).to_vector<int64_t>(),
              ElementsAre(7, 0, 0, 0, 0, 11));
  EXPECT_THAT(index_put(x, {tensor({1})}, tensor(4)).to_vector<int64_t>(), ElementsAre(0, 0, 0, 4, 4, 4));
  Tensor y = zeros({2, 2});
  index_put_(y, {tensor({{true, false}, {false, true}})}, tensor({1.0, 2.0}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(1, 0, 0, 2));
  EXPECT_EQ(y.version(), 1u);
}

TEST(Index, MasksWithoutDimensions) {
  const Tensor x = reshape(arange(6), {2, 3}), yes = tensor(true), no = tensor(false);
  const Tensor both = tensor({0, 1});
  const struct {
    std::vector<Tensor> indices;
    Shape shape;
  } rows[] = {
      {{yes}, {1, 2, 3}},
      {{no}, {0, 2, 3}},
      {{Tensor(), yes}, {2, 1, 3}},
      {{yes, yes}, {1, 2, 3}},
      {{no, yes}, {0, 2, 3}},
      {{Tensor(), Tensor(), no}, {2, 3, 0}},
      {{yes, both}, {2, 3}},
      {{both, yes}, {2, 3}},
      {{both, Tensor(), yes}, {2, 3}},
      {{yes, both, both}, {2}},
      {{no, tensor(0)}, {0, 3}},
      {{yes, gt(x, 2)}, {3}},
      {{tensor(1, {.dtype = uint8})}, {1, 2, 3}},
  };
  for (const auto& [indices, shape] : rows)
    EXPECT_EQ(index(x, indices).shape(), shape) << &indices - &rows[0].indices;
  EXPECT_TRUE(equal(x[yes], unsqueeze(x, 0)));
  EXPECT_TRUE(equal(index(x, {Tensor(), yes}), unsqueeze(x, 1)));
  EXPECT_EQ(tensor(5.0)[yes].shape(), (Shape{1}));
  EXPECT_EQ(tensor(5.0)[no].shape(), (Shape{0}));
  expect_error<IndexError>(
      [&] {
        index(x, {no, both});
      },
      "could not be broadcast together with shapes [0], [2]");

  EXPECT_TRUE(equal(index_put(x, {yes}, tensor({7, 8, 9})), tensor({{7, 8, 9}, {7, 8, 9}})));
  EXPECT_TRUE(equal(index_put(x, {no}, tensor({7, 8, 9})), x));
  EXPECT_TRUE(equal(index_put(x, {yes}, x, /*accumulate=*/true), mul(x, 2)));
  expect_error<ShapeError>(
      [&] {
        index_put(x, {no}, ones({0, 3}, {.dtype = int64}));
      },
      "cannot be broadcast to indexing result of shape [0, 2, 3]");
  Tensor number = tensor(5.0);
  index_put_(number, {no}, tensor(7.0));
  EXPECT_EQ(number.item<double>(), 5);
  index_put_(number, {yes}, tensor(7.0));
  EXPECT_EQ(number.item<double>(), 7);

  gradgradcheck(
      [&](const std::vector<Tensor>& in) {
        return square(index(in[0], {yes, both}));
      },
      {leaf({2, 3})});
  gradgradcheck([&](const std::vector<Tensor>& in) { return square(index_put(in[0], {yes}, in[1])); },
                {leaf({2, 3}), leaf({3})});
  Tensor w = leaf({2, 2}), y = mul(w, 3);
  index_put_(y, {yes}, ones({2}, {.dtype = float64}));
  sum(y).backward();
  EXPECT_TRUE(equal(w.grad(), zeros_like(w)));
}

TEST(Index, EmptyIndicesMayHaveAnyShape) {
  const Tensor x = reshape(arange(6.0), {2, 3}), one = ones({1, 1, 1}, {.dtype = x.dtype()});
  for (const Shape& shape : {Shape{0}, Shape{0, 5}, Shape{2, 0, 7}, Shape{9, 0}}) {
    const Tensor none = zeros(shape, {.dtype = int64});
    for (const Tensor& from : {x, tensor(5.0)}) {
      EXPECT_EQ(gather(from, -1, none).shape(), shape);
      EXPECT_TRUE(equal(scatter(from, 0, none, one), from));
      EXPECT_TRUE(equal(scatter(from, 0, none, 9), from));
      EXPECT_TRUE(equal(scatter_add(from, 0, none, one), from));
      Tensor target = clone(from);
      EXPECT_TRUE(equal(scatter_(target, 0, none, one), from));
      EXPECT_TRUE(equal(scatter_add_(target, 0, none, one), from));
    }
    expect_error<IndexError>([&] { gather(x, 2, none); }, "Dimension out of range");
    expect_error<DTypeError>([&] { scatter(x, 0, none, tensor(1)); }, "Expected self.dtype");
    const Tensor a = leaf({2, 3}), b = leaf({4});
    add(sum(gather(a, 0, none)), sum(scatter(a, 1, none, b))).backward();
    EXPECT_TRUE(equal(a.grad(), ones_like(a)));
    EXPECT_TRUE(equal(b.grad(), zeros_like(b)));
  }
}

TEST(Index, SourceThatIsTheTarget) {
  Tensor x = arange(5);
  index_copy_(x, 0, tensor({0, 1, 2, 3}), narrow(x, 0, 1, 4));
  EXPECT_THAT(x.to_vector<int64_t>(), ElementsAre(1, 2, 3, 4, 4));
}

TEST(Index, SumsDoNotDependOnThreads) {
  if (is_emulated(get_default_device()))
    GTEST_SKIP() << "the emulator's kernels run on one thread, whatever the number";
  const int before = num_threads();
  for (int64_t columns : {1, 3, 16, 300}) {
    const Tensor rows = randint(-50, 50, {20000}), values = randn({20000, columns});
    const Tensor whole = remainder(rows, 50), start = zeros({50, columns});
    set_num_threads(1);
    const Tensor one = index_add(start, 0, whole, values), last = index_copy(start, 0, whole, values);
    for (int threads : {2, 3, 4}) {
      set_num_threads(threads);
      EXPECT_TRUE(equal(index_add(start, 0, whole, values), one)) << columns << " columns";
      EXPECT_TRUE(equal(index_put(start, {rows}, values, true), one)) << columns << " columns";
      EXPECT_TRUE(equal(index_copy(start, 0, whole, values), last)) << columns << " columns";
    }
  }
  set_num_threads(before);
}

// Sums of 16-bit floats that were rounded after each addition would stop at 256 and 2048.
TEST(Index, LongSumsOf16BitFloatsAreRoundedOnce) {
  const int64_t count = 3000;
  const Tensor ones_at = ones({count}, {.dtype = int64});
  for (DType dtype : {bfloat16, float16}) {
    const double sum = to(tensor(static_cast<double>(count)), dtype).item<double>();
    const TensorOptions options{.dtype = dtype};
    Tensor x = zeros({2}, options).requires_grad_();
    gather(x, 0, ones_at).backward(ones({count}, options));
    EXPECT_EQ(x.grad()[1].item<double>(), sum) << "gather of " << name(dtype);
    // Single elements and rows, of few and of many, one of which is met once.
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{3, 1}, {3, 5}, {100'000, 5}}) {
      const Tensor index = cat({ones_at, full({1}, 2, {.dtype = int64})}, 0);
      const Tensor y =
          index_add(full({rows, columns}, 0.5, options), 0, index, ones({count + 1, columns}, options));
      const Tensor wanted = cat({full({1, columns}, 0.5, options), full({1, columns}, count + 0.5, options),
                                 full({1, columns}, 1.5, options)},
                                0);
      EXPECT_TRUE(equal(narrow(y, 0, 0, 3), wanted)) << name(dtype) << ", " << rows << " x " << columns;
    }
    Tensor weight = zeros({50, 4}, options).requires_grad_();
    embedding(ones_at, weight).backward(ones({count, 4}, options));
    EXPECT_EQ(weight.grad()[1].min().item<double>(), sum) << "embedding of " << name(dtype);
  }
}

TEST(Index, LargeTensorsInEveryLayout) {
  const Tensor x = reshape(arange(300 * 200), {300, 200});
  const Tensor i = remainder(mul(arange(70000), 7), 300), j = remainder(mul(arange(70000), 13), 200);
  EXPECT_TRUE(equal(index(x, {i, j}), add(mul(i, 200), j)));
  EXPECT_TRUE(equal(index(transpose(x, 0, 1), {j, i}), add(mul(i, 200), j)));
  EXPECT_TRUE(equal(index_select(transpose(x, 0, 1), 0, tensor({5, 9})),
                    transpose(index_select(x, 1, tensor({5, 9})), 0, 1)));
  const Tensor by_rows = expand(reshape(remainder(arange(300), 200), {300, 1}), {300, 200});
  EXPECT_TRUE(equal(scatter_add(zeros({300, 200}, {.dtype = int64}), 1, by_rows, x).sum(1), x.sum(1)));
}

TEST(Take, FlattenedAndAlong) {
  const Tensor x = reshape(arange(6), {2, 3});
  EXPECT_THAT(take(x, tensor({{0, -1}, {4, 4}})).to_vector<int64_t>(), ElementsAre(0, 5, 4, 4));
  EXPECT_THAT(take_along_dim(x, tensor({{0}, {-1}}), 1).to_vector<int64_t>(), ElementsAre(0, 5));
  EXPECT_THAT(take_along_dim(x, tensor({5, 0})).to_vector<int64_t>(), ElementsAre(5, 0));
  const Tensor row = reshape(arange(4), {1, 4}), places = tensor({{0, -1}, {1, 2}, {3, 0}});
  EXPECT_EQ(take_along_dim(row, places, 1).shape(), (Shape{3, 2}));
  EXPECT_THAT(take_along_dim(row, places, 1).to_vector<int64_t>(), ElementsAre(0, 3, 1, 2, 3, 0));
}

TEST(Where, ThreeForms) {
  const Tensor c = tensor({{true, false}, {false, true}}), a = tensor({1.0, 2.0}), b = tensor({{10}, {20}});
  EXPECT_THAT(where(c, a, b).to_vector<double>(), ElementsAre(1, 10, 20, 2));
  EXPECT_EQ(where(c, a, b).dtype(), float32);
  EXPECT_THAT(where(c, b, 0.5).to_vector<double>(), ElementsAre(10, 0.5, 0.5, 20));
  EXPECT_THAT(where(c, 3, b).to_vector<int64_t>(), ElementsAre(3, 10, 20, 3));
  EXPECT_EQ(where(c, 1, 2.0).dtype(), float32);
  EXPECT_THAT(where(c)[1].to_vector<int64_t>(), ElementsAre(0, 1));
}

TEST(Masks, FillSelectScatter) {
  const Tensor x = reshape(arange(6), {2, 3}), mask = tensor({true, false, true});
  EXPECT_THAT(masked_fill(x, mask, 9).to_vector<int64_t>(), ElementsAre(9, 1, 9, 9, 4, 9));
  EXPECT_THAT(masked_fill(x, mask, tensor(7)).to_vector<int64_t>(), ElementsAre(7, 1, 7, 7, 4, 7));
  EXPECT_THAT(masked_select(x, mask).to_vector<int64_t>(), ElementsAre(0, 2, 3, 5));
  EXPECT_THAT(masked_scatter(x, mask, arange(10, 20)).to_vector<int64_t>(),
              ElementsAre(10, 1, 11, 12, 4, 13));
}

TEST(Nonzero, CoordinatesOfEveryKind) {
  const Tensor x = tensor({{0.0, kNan}, {-0.0, 2.0}});
  EXPECT_THAT(nonzero(x).to_vector<int64_t>(), ElementsAre(0, 1, 1, 1));
  EXPECT_EQ(nonzero(tensor(3)).shape(), (Shape{1, 0}));
  EXPECT_EQ(nonzero(tensor(0)).shape(), (Shape{0, 0}));
  EXPECT_EQ(nonzero(zeros({2, 0, 3})).shape(), (Shape{0, 3}));
  const Tensor many = eq(remainder(arange(300000), 7), 3);
  EXPECT_TRUE(equal(squeeze(nonzero(many), 1), arange(3, 300000, 7)));
  EXPECT_TRUE(equal(nonzero(transpose(reshape(many, {1000, 300}), 0, 1)),
                    nonzero(contiguous(transpose(reshape(many, {1000, 300}), 0, 1)))));
}

TEST(SearchSorted, BothSidesAndNan) {
  const Tensor sorted = tensor({1.0, 2.0, 2.0, 3.0, kNan}), values = tensor({0.0, 2.0, 2.5, 5.0, kNan});
  EXPECT_THAT(searchsorted(sorted, values).to_vector<int64_t>(), ElementsAre(0, 1, 5, 5, 5));
  EXPECT_THAT(searchsorted(sorted, values, true).to_vector<int64_t>(), ElementsAre(0, 5, 5, 5, 5));
  EXPECT_THAT(searchsorted(tensor({{1, 3}, {5, 7}}), tensor({{2, 9}, {5, 0}})).to_vector<int64_t>(),
              ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(bucketize(tensor({1, 5, 9}), tensor({3, 5})).to_vector<int64_t>(), ElementsAre(0, 1, 2));
}

TEST(Embedding, RowsAndGradient) {
  Tensor weight = reshape(arange(8, {.dtype = float32}), {4, 2}).requires_grad_();
  const Tensor y = embedding(tensor({{0, 3}, {1, 1}}), weight, -3);
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(0, 1, 6, 7, 2, 3, 2, 3));
  sum(y).backward();
  EXPECT_THAT(weight.grad().to_vector<float>(), ElementsAre(1, 1, 0, 0, 0, 0, 1, 1));
}

// More than bfloat16 counts one by one.
TEST(Embedding, MeansOfLongBagsShareTheirGradientOut) {
  const Tensor weight = zeros({512, 2}, {.dtype = bfloat16}).requires_grad_();
  const Tensor y = embedding_bag(arange(512), weight, tensor({0}));
  const Tensor expected = full({512, 2}, 1.0 / 512, {.dtype = bfloat16});
  EXPECT_TRUE(equal(grad({sum(y)}, {weight})[0], expected));
}

// As in PyTorch; only where tests run on a GPU are there two devices here.
TEST(Index, IndicesAndNumbersOnTheCpuReachAnyDevice) {
  const TensorOptions on_host{.device = kCPU};
  const Tensor x = reshape(arange(6), {3, 2});
  EXPECT_THAT(x[tensor({2, 0}, on_host)].to_vector<int64_t>(), ElementsAre(4, 5, 0, 1));
  EXPECT_THAT(x[tensor({false, true, false}, on_host)].to_vector<int64_t>(), ElementsAre(2, 3));
  EXPECT_EQ(x[tensor({1}, on_host)].device(), x.device());
  const Tensor leaf = zeros({3}).requires_grad_(), number = tensor(2.0f, on_host).requires_grad_();
  const Tensor y = index_put(leaf, {tensor({0, 2}, on_host)}, number);
  EXPECT_EQ(y.device(), x.device());
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(2, 0, 2));
  y.sum().backward();
  EXPECT_THAT(leaf.grad().to_vector<float>(), ElementsAre(0, 1, 0));
  EXPECT_EQ(number.grad().device(), kCPU);
  EXPECT_EQ(number.grad().item<float>(), 2);
  Tensor z = zeros({3});
  index_put_(z, {tensor({1}, on_host)}, tensor(7.0f, on_host));
  EXPECT_THAT(z.to_vector<float>(), ElementsAre(0, 7, 0));
}

TEST(Index, Gradients) {
  const Tensor i = tensor({{0, 3}, {1, 1}, {2, 0}}), v = tensor({2, 0, 2}),
               distinct = tensor({{0, 3}, {1, 2}, {2, 0}});
  gradgradcheck([&](const In& in) { return square(gather(in[0], 1, i)); }, {leaf({3, 4})});
  gradgradcheck([&](const In& in) { return square(scatter(in[0], 1, distinct, in[1])); },
                {leaf({3, 4}), leaf({3, 2})});
  gradgradcheck([&](const In& in) { return square(scatter_add(in[0], 1, i, in[1])); },
                {leaf({3, 4}), leaf({4, 3})});
  gradgradcheck([&](const In& in) { return square(index_select(in[0], 0, v)); }, {leaf({3, 4})});
  gradgradcheck([&](const In& in) { return square(index_add(in[0], 1, v, in[1], 0.5)); },
                {leaf({2, 3}), leaf({2, 3})});
  gradgradcheck([&](const In& in) { return square(index_fill(in[0], 0, v, 2)); }, {leaf({3, 4})});
  gradgradcheck([&](const In& in) { return square(index(in[0], {v, Tensor(), v})); }, {leaf({3, 2, 3})});
  gradgradcheck(
      [&](const In& in) {
        return square(index_put(in[0], {v, v}, in[1], true));
      },
      {leaf({3, 3, 2}), leaf({2})});
  gradgradcheck(
      [&](const In& in) {
        return square(index_put(in[0], {tensor({2, 0})}, in[1]));
      },
      {leaf({3, 2}), leaf({2, 2})});
  gradgradcheck([&](const In& in) { return square(take(in[0], v)); }, {leaf({3, 4})});
  gradgradcheck(
      [&](const In& in) {
        return square(take_along_dim(in[0], tensor({{1}, {-1}}), 1));
      },
      {leaf({2, 3})});
  gradgradcheck(
      [&](const In& in) {
        return square(where(tensor({true, false}), in[0], in[1]));
      },
      {leaf({2, 2}), leaf({1})});
  gradgradcheck(
      [&](const In& in) {
        return square(masked_fill(in[0], tensor({true, false}), 3));
      },
      {leaf({3, 2})});
  gradgradcheck(
      [&](const In& in) {
        return square(masked_select(in[0], tensor({true, false})));
      },
      {leaf({3, 2})});
  gradgradcheck(
      [&](const In& in) {
        return square(masked_scatter(in[0], tensor({true, false}), in[1]));
      },
      {leaf({3, 2}), leaf({4})});
  gradgradcheck([&](const In& in) { return square(embedding(v, in[0], 0)); }, {leaf({4, 2})});
}

TEST(Index, InPlaceGradients) {
  Tensor x = ones({3}, {.requires_grad = true}), source = tensor({5.0, 7.0}, {.requires_grad = true});
  Tensor y = mul(x, 2);
  index_add_(y, 0, tensor({0, 0}), source);
  scatter_(y, 0, tensor({2}), 9);
  sum(mul(y, y)).backward();
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(14, 2, 9));
  EXPECT_THAT(x.grad().to_vector<float>(), ElementsAre(56, 8, 0));
  EXPECT_THAT(source.grad().to_vector<float>(), ElementsAre(28, 28));
}

TEST(Index, ChangedIndexIsAnError) {
  Tensor x = ones({3}, {.requires_grad = true}), i = tensor({0, 1});
  const Tensor y = sum(index_select(x, 0, i));
  i.add_(1);
  expect_error<AutogradError>([&] { y.backward(); },
                              "index_select: one of the variables needed for gradient computation");
}

TEST(IndexErrors, RangeShapesAndTypes) {
  const Tensor x = zeros({3, 4});
  expect_error<IndexError>([&] { gather(x, 0, tensor({{5}})); },
                           "gather: index 5 is out of bounds for dimension 0 with size 3");
  expect_error<IndexError>([&] { gather(x, 1, tensor({{-1}})); },
                           "gather: index -1 is out of bounds for dimension 1 with size 4");
  expect_error<IndexError>([&] { x[tensor({3})]; },
                           "index: index 3 is out of bounds for dimension 0 with size 3");
  expect_error<IndexError>([&] { x[tensor({-4})]; }, "index: index -4 is out of bounds");
  expect_error<IndexError>(
      [&] {
        index(x, {tensor({0}), tensor({4})});
      },
      "index 4 is out of bounds for dimension 1 with size 4");
  expect_error<IndexError>([&] { index_select(x, 0, tensor({-1})); },
                           "index_select: index -1 is out of bounds");
  expect_error<IndexError>([&] { take(x, tensor({12})); },
                           "index 12 is out of bounds for dimension 0 with size 12");
  expect_error<IndexError>([&] { scatter(x, 1, tensor({{4}}), 1.0); }, "scatter: index 4 is out of bounds");
  expect_error<IndexError>(
      [&] {
        index_add(x, 0, tensor({1, 3}), ones({2, 4}));
      },
      "index_add: index 3 is out of bounds for dimension 0 with size 3");
  expect_error<IndexError>(
      [&] {
        index_add(zeros({0, 4}), 0, tensor({0}), ones({1, 4}));
      },
      "index_add: index 0 is out of bounds for dimension 0 with size 0");
  expect_error<IndexError>([&] { embedding(tensor({3}), x); },
                           "embedding: index 3 is out of bounds for dimension 0 with size 3");
  expect_error<IndexError>([&] { embedding(tensor({-1}), x); }, "embedding: index -1");
  expect_error<IndexError>(
      [&] {
        index(x, {tensor({0, 1}), tensor({0, 1, 2})});
      },
      "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]");
  expect_error<IndexError>(
      [&] {
        index(x, {tensor({0}), tensor({0}), tensor({0})});
      },
      "too many indices for tensor of dimension 2");
  expect_error<IndexError>([&] { x[tensor({0.5})]; }, "tensors used as indices must be");
  expect_error<IndexError>(
      [&] {
        x[tensor({true, false})];
      },
      "The shape of the mask [2] at index 0 does not match");
  expect_error<ShapeError>([&] { gather(x, 0, tensor({0})); },
                           "Index tensor must have the same number of dimensions");
  expect_error<ShapeError>(
      [&] {
        gather(x, 1, zeros({4, 4}, {.dtype = int64}));
      },
      "no larger than input [3, 4] apart from dimension 1");
  expect_error<ShapeError>(
      [&] {
        scatter(x, 1, zeros({3, 4}, {.dtype = int64}), zeros({3, 3}));
      },
      "no larger size than src [3, 3]");
  expect_error<ShapeError>([&] { index_select(x, 0, tensor({{1}})); }, "Index is supposed to be a vector");
  expect_error<IndexError>(
      [&] {
        index_select(tensor(5), 0, tensor({0, 0}));
      },
      "Index to scalar can have only 1 value, got 2");
  expect_error<ShapeError>(
      [&] {
        index_add(x, 0, tensor({1, 2}), zeros({1, 4}));
      },
      "Number of indices (2) should be equal to");
  expect_error<ShapeError>(
      [&] {
        index_add(x, 0, tensor({1, 2}), zeros({2, 3}));
      },
      "source tensor shape must match");
  expect_error<ShapeError>(
      [&] {
        index_put(x, {tensor({0, 1})}, zeros({3, 3}));
      },
      "value tensor of shape [3, 3] cannot be broadcast to indexing result of shape [2, 4]");
  expect_error<ShapeError>([&] { masked_scatter(x, gt(ones({4}), 0), zeros({3})); },
                           "Number of elements of source");
  expect_error<ShapeError>([&] { where(tensor({true, false}), zeros({3}), zeros({3})); }, "where: shapes");
  expect_error<DTypeError>(
      [&] {
        gather(x, 1, zeros({1, 4}));
      },
      "Expected dtype int32/int64 for index, got float32");
  expect_error<DTypeError>(
      [&] {
        scatter_add(x, 1, tensor({{1}}), ones({1, 1}, {.dtype = float64}));
      },
      "Expected self.dtype to be equal to src.dtype");
  expect_error<DTypeError>(
      [&] {
        masked_fill(x, tensor({1, 0, 0, 1}), 0);
      },
      "expected a bool tensor as mask, got int64");
  expect_error<DTypeError>([&] { where(tensor({1.0}), x, x); }, "expected a bool tensor as condition");
  expect_error<ValueError>([&] { embedding(tensor({0}), x, 7); },
                           "Padding_idx must be within num_embeddings");
  Tensor spread = expand(zeros({1, 4}), {3, 4});
  expect_error<ShapeError>([&] { index_fill_(spread, 0, tensor({0}), 1); }, "single memory location");
}

TEST(InPlaceWrites, IndicesMayBeTheTarget) {
  const auto wrecked = [](const std::function<void(Tensor&, const Tensor&)>& write) {
    Tensor aliased = tensor({1, 2, 0}), apart = tensor({1, 2, 0});
    write(aliased, aliased);
    write(apart, tensor({1, 2, 0}));
    EXPECT_TRUE(equal(aliased, apart));
  };
  const Tensor far = full({3}, int64_t{1} << 40);
  wrecked([&](Tensor& x, const Tensor& index) { index_add_(x, 0, index, far); });
  wrecked([&](Tensor& x, const Tensor& index) { index_copy_(x, 0, index, far); });
  wrecked([&](Tensor& x, const Tensor& index) { index_fill_(x, 0, index, int64_t{1} << 40); });
  wrecked([&](Tensor& x, const Tensor& index) { scatter_(x, 0, index, far); });
  wrecked([&](Tensor& x, const Tensor& index) { index_put_(x, {index}, far); });
}

}  // namespace
}  // namespace tern
