// Matrix products: every rank, layout and dtype against plain loops, linear's fused backward, einsum,
// gradients, errors.
#include "tern/ops/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tern/autograd/engine.h"
#include "tern/autograd/gradcheck.h"
#include "tern/base/error.h"
#include "tern/ops/activation.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/linear.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/ops/reduce_testing.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using namespace tern::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using In = std::vector<Tensor>;

/// The product by broadcasting and a sum: [..., m, k, 1] * [..., 1, k, n].
Tensor plain(const Tensor& a, const Tensor& b) {
  const Tensor left = a.dim() == 1 ? unsqueeze(a, 0) : a, right = b.dim() == 1 ? unsqueeze(b, 1) : b;
  Tensor y = sum(mul(unsqueeze(to(left, float64), -1), unsqueeze(to(right, float64), -3)), -2);
  if (b.dim() == 1) y = squeeze(y, -1);
  if (a.dim() == 1) y = squeeze(y, b.dim() == 1 ? -1 : -2);
  return y;
}

struct Pair {
  Shape a, b;
};
const std::vector<Pair>& pairs() {
  static const std::vector<Pair> list = {
      {{3}, {3}},
      {{2, 3}, {3}},
      {{3}, {3, 4}},
      {{2, 3}, {3, 4}},
      {{5, 2, 3}, {3, 4}},
      {{5, 2, 3}, {5, 3, 4}},
      {{5, 1, 2, 3}, {4, 3, 4}},
      {{3}, {5, 3, 4}},
      {{5, 2, 3}, {3}},
      {{2, 3}, {5, 3, 4}},
      {{4, 1, 3}, {3, 2}},
      {{6, 1, 2, 3}, {1, 5, 3, 2}},
      {{1, 1}, {1, 1}},
      {{2, 0}, {0, 3}},
      {{0, 3}, {3, 2}},
      {{0, 2, 3}, {3, 2}},
      {{2, 2, 0}, {2, 0, 3}},
  };
  return list;
}

TEST(Matmul, EveryRankAndBroadcast) {
  for (const Pair& p : pairs()) {
    for (DType dtype : {float32, float64, float16, bfloat16, int64}) {
      const Tensor a = to(mul(ragged(p.a), 2), dtype), b = to(mul(ragged(p.b), 3), dtype);
      const Tensor y = matmul(a, b), wanted = plain(a, b);
      EXPECT_EQ(y.dtype(), dtype);
      ASSERT_EQ(y.shape(), wanted.shape()) << to_string(p.a) << to_string(p.b);
      const double tolerance = dtype == float16 ? 2e-3 : dtype == bfloat16 ? 2e-2 : 1e-5;
      EXPECT_TRUE(allclose(to(y, float64), wanted, tolerance, tolerance)) << to_string(p.a) << to_string(p.b);
    }
  }
}

TEST(Matmul, LayoutsWithoutCopies) {
  const Tensor a = ragged({7, 5}), b = ragged({5, 6});
  const Tensor wanted = matmul(a, b);
  EXPECT_TRUE(allclose(matmul(contiguous(a.t()).t(), b), wanted));
  EXPECT_TRUE(allclose(matmul(a, contiguous(b.t()).t()), wanted));
  EXPECT_TRUE(allclose(matmul(slice(ragged({7, 10}), 1, 0, 10, 2), b),
                       matmul(contiguous(slice(ragged({7, 10}), 1, 0, 10, 2)), b)));
  const Tensor same_rows = expand(ragged({1, 5}), {7, 5});
  EXPECT_TRUE(allclose(matmul(same_rows, b), matmul(contiguous(same_rows), b)));
  const Tensor batch = permute(ragged({5, 3, 7}), {1, 2, 0});
  EXPECT_TRUE(allclose(matmul(batch, b), matmul(contiguous(batch), b)));
}

TEST(Matmul, BatchesThatDoNotMerge) {
  // [batch, position, head, channel] seen as [batch, head, position, channel], as attention does.
  const auto heads = [](int64_t positions) { return permute(ragged({6, positions, 5, 3}), {0, 2, 1, 3}); };
  const Tensor query = heads(4), key = heads(7), value = heads(7), weights = ragged({5, 3, 2});
  const auto expect_product = [](const Tensor& a, const Tensor& b) {
    const Tensor wanted = plain(a, b);
    for (DType dtype : {float32, float64, float16})
      EXPECT_TRUE(allclose(to(matmul(to(a, dtype), to(b, dtype)), float64), wanted,
                           dtype == float16 ? 3e-3 : 1e-5, dtype == float16 ? 3e-3 : 1e-6))
          << to_string(a.shape()) << to_string(b.shape()) << name(dtype);
  };
  expect_product(query, mT(key));
  expect_product(matmul(query, mT(key)), value);
  expect_product(query, weights);                  // one matrix for each head
  expect_product(query, mT(slice(key, 1, 0, 1)));  // one for each batch
}

TEST(Matmul, AddedProducts) {
  const Tensor a = ragged({2, 3}), b = ragged({3, 4}), c = ragged({4});
  EXPECT_TRUE(allclose(addmm(c, a, b, 0.5, 2), add(mul(matmul(a, b), 2), mul(c, 0.5))));
  EXPECT_TRUE(allclose(addmm(full({2, 1}, kNan), a, b, 0, 1), matmul(a, b)));
  const Tensor batch = ragged({5, 2, 3});
  EXPECT_TRUE(allclose(baddbmm(ragged({2, 4}), batch, expand(b, {5, 3, 4}), 3, 0.5),
                       add(mul(matmul(batch, b), 0.5), mul(ragged({2, 4}), 3))));
  EXPECT_TRUE(allclose(outer(tensor({1.0, 2.0}), tensor({3.0, 4.0})), tensor({{3.0, 4.0}, {6.0, 8.0}})));
  EXPECT_EQ(dot(tensor({1, 2, 3}), tensor({4, 5, 6})).item<int64_t>(), 32);
}

TEST(Matmul, AFactorOfZeroLeavesItsPartOut) {
  for (const DType dtype : {float32, float64, float16, bfloat16, int64})
    for (const int64_t size : {2, 40}) {
      const Shape shape{size, size}, batch{3, size, size};
      const Tensor three = full(shape, 3, {.dtype = dtype}), six = full(shape, 6, {.dtype = dtype}),
                   bad = full(shape, is_floating_point(dtype) ? Scalar(kNan) : Scalar(7), {.dtype = dtype}),
                   bads = contiguous(expand(bad, batch)), none = zeros({size, 0}, {.dtype = dtype});
      EXPECT_TRUE(equal(addmm(three, bad, bad, 2, 0), six)) << name(dtype) << size;
      EXPECT_TRUE(equal(addmm(bad, bad, bad, 0, 0), zeros_like(bad))) << name(dtype) << size;
      EXPECT_TRUE(equal(baddbmm(three, bads, bads, 2, 0), expand(six, batch))) << name(dtype) << size;
      EXPECT_TRUE(equal(addmm(bad, none, t(none), 0), zeros_like(bad))) << name(dtype) << size;
    }
}

TEST(Linear, EveryRankAndLayout) {
  const Tensor w = ragged({4, 3}), b = ragged({4});
  for (const Tensor& x : {ragged({3}), ragged({5, 3}), ragged({2, 5, 3}), transpose(ragged({3, 5}), 0, 1),
                          transpose(ragged({3, 5, 2}), 0, 2), expand(ragged({1, 3}), {6, 3}), ragged({0, 3}),
                          ragged({2, 0, 3})}) {
    EXPECT_TRUE(allclose(linear(x, w, b), add(matmul(x, w.t()), b))) << to_string(x.shape());
    EXPECT_TRUE(allclose(linear(x, w), matmul(x, w.t())));
    EXPECT_TRUE(allclose(linear(x, contiguous(w.t()).t(), slice(ragged({8}), 0, 0, 8, 2)),
                         add(matmul(x, w.t()), slice(ragged({8}), 0, 0, 8, 2))));
  }
}

/// The result of linear_relu (with relu) or linear, and all gradients, of operands laid out as given.
In layer_and_gradients(DType dtype, const In& given, const Tensor& grad, bool with_relu) {
  In leaves;
  for (const Tensor& each : given) leaves.push_back(to(each, dtype).detach().requires_grad_());
  const auto layer = with_relu ? linear_relu : linear;
  const Tensor y = layer(leaves[0], leaves[1], leaves[2]);
  y.backward(to(grad, dtype));
  return {y.detach(), leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
}

TEST(Linear, EverySize) {
  const char* const names[] = {"result", "input's gradient", "weight's gradient", "bias's gradient"};
  const std::vector<std::array<int64_t, 3>> sizes = {{1, 1, 1},    {2, 784, 256}, {256, 84, 10}, {17, 35, 65},
                                                     {16, 64, 16}, {300, 5, 3},   {3, 1030, 20}};
  for (const auto& [dtype, tolerance] : {std::pair{float32, 1e-6}, {bfloat16, 8e-3}})
    for (const auto& [rows, in, out] : sizes) {
      const auto exact = [dtype = dtype](const Tensor& x) { return to(to(x, dtype), float64); };
      const Tensor x = exact(ragged({rows, in})), w = exact(ragged({out, in})), b = exact(ragged({out}));
      const Tensor grad = exact(ragged({rows, out}));
      // What relu sees keeps its sign where a bfloat16 is rounded once more before the bias is added.
      ASSERT_GT(linear(x, w, b).abs().min().item<double>(), 4e-3);
      const Tensor turned_x = contiguous(x.t()).t(), turned_w = contiguous(w.t()).t();
      for (const auto& [given, g] :
           {std::pair{In{x, w, b}, grad}, std::pair{In{turned_x, turned_w, b}, grad},
            std::pair{In{x, w, b}, expand(ones({1, 1}, {.dtype = float64}), {rows, out})}})
        for (bool with_relu : {false, true}) {
          const In wanted = layer_and_gradients(float64, on_cpu(given), g.cpu(), with_relu);
          const In got = on_cpu(layer_and_gradients(dtype, given, g, with_relu));
          for (size_t i = 0; i < wanted.size(); ++i) {
            const double largest = wanted[i].abs().max().item<double>();
            EXPECT_TRUE(allclose(to(got[i], float64), wanted[i], 0, tolerance * std::max(largest, 1.0)))
                << names[i] << " of " << rows << " x " << in << " to " << out << " in " << name(dtype)
                << ", relu " << with_relu;
          }
        }
    }
}

/// The result of two layers with gelu between them, and all gradients, at once or one after the other.
In feed_forward_and_gradients(DType dtype, const In& given, const Tensor& grad, bool at_once) {
  In leaves, results;
  for (const Tensor& each : given) leaves.push_back(to(each, dtype).detach().requires_grad_());
  const auto& [x, w, b, v, c] = std::tie(leaves[0], leaves[1], leaves[2], leaves[3], leaves[4]);
  const Tensor y = at_once ? linear_gelu_linear(x, w, b, v, c) : linear(gelu(linear(x, w, b), "tanh"), v, c);
  y.backward(to(grad, dtype));
  results.push_back(y.detach());
  for (const Tensor& each : leaves) results.push_back(each.grad());
  return results;
}

TEST(Linear, TwoWithGeluBetweenThem) {
  // Hidden features by which cuBLASLt takes gelu, and others.
  for (const auto& [dtype, tolerance] : {std::pair{float32, 1e-5}, {bfloat16, 3e-2}, {float16, 4e-3}})
    for (const auto& [rows, in, hidden, out] :
         {std::array<int64_t, 4>{1, 3, 8, 2}, {5, 4, 7, 3}, {130, 40, 64, 72}, {3, 600, 2048, 16}}) {
      const In given = {ragged({rows, in}), ragged({hidden, in}) * 0.1, ragged({hidden}),
                        ragged({out, hidden}) * 0.1, ragged({out})};
      const Tensor grad = ragged({rows, out});
      const In wanted = feed_forward_and_gradients(float64, on_cpu(given), grad.cpu(), /*at_once=*/false);
      const In got = on_cpu(feed_forward_and_gradients(dtype, given, grad, /*at_once=*/true));
      for (size_t i = 0; i < wanted.size(); ++i) {
        const double largest = wanted[i].abs().max().item<double>();
        EXPECT_TRUE(allclose(to(got[i], float64), wanted[i], 0, tolerance * std::max(largest, 1.0)))
            << "number " << i << " of " << rows << " x " << in << " to " << hidden << " to " << out << " in "
            << name(dtype);
      }
    }
}

TEST(Linear, OneGradientOfTwoWithGeluBetweenThem) {
  const In given = {ragged({5, 3}), ragged({8, 3}), ragged({8}), ragged({4, 8}), ragged({4})};
  const In all = feed_forward_and_gradients(float32, given, ragged({5, 4}), /*at_once=*/true);
  for (size_t i = 0; i < given.size(); ++i) {
    In leaves;
    for (const Tensor& each : given) leaves.push_back(each.detach());
    leaves[i].requires_grad_();
    linear_gelu_linear(leaves[0], leaves[1], leaves[2], leaves[3], leaves[4]).backward(ragged({5, 4}));
    EXPECT_TRUE(allclose(leaves[i].grad(), all[i + 1], 1e-6, 1e-6)) << "of operand " << i;
  }
}

// cuBLASLt's algorithms may read 16 bytes of a bias, or of a row, at a time.
TEST(Linear, ViewsAtAnyAddress) {
  for (DType dtype : {float32, float64, float16, bfloat16})
    for (int64_t first = 0; first < 9; ++first) {
      const auto view = [&](std::initializer_list<int64_t> shape) {
        int64_t numel = 1;
        for (int64_t size : shape) numel *= size;
        return reshape(slice(to(ragged({numel + first}), dtype), 0, first, numel + first), shape);
      };
      const Tensor x = view({2, 40}), w = view({24, 40}), b = view({24});
      const Tensor expected = linear(to(x, float64), to(w, float64), to(b, float64));
      const double rtol = dtype == bfloat16 ? 1e-2 : dtype == float16 ? 2e-3 : 1e-5;
      EXPECT_TRUE(allclose(to(linear(x, w, b), float64), expected, rtol, rtol))
          << name(dtype) << " from " << first;
      EXPECT_TRUE(allclose(to(mv(w, x[0]), float64), matmul(to(w, float64), to(x[0], float64)), rtol, rtol))
          << name(dtype) << " from " << first;
    }
}

TEST(Matmul, MoreMatricesThanALibraryTakesAtOnce) {
  for (DType dtype : {float32, bfloat16}) {
    const Tensor a = to(remainder(arange(70000), 7), dtype);
    const Tensor product = bmm(reshape(a, {-1, 1, 1}), reshape(a + 1, {-1, 1, 1}));
    EXPECT_TRUE(equal(reshape(product, {-1}), a * (a + 1))) << name(dtype);
  }
}

TEST(Linear, OneGradientAlone) {
  const Tensor x = ragged({5, 3}), w = ragged({4, 3}), b = ragged({4});
  const In all = layer_and_gradients(float32, {x, w, b}, ragged({5, 4}), true);
  for (size_t i = 0; i < 3; ++i) {
    In leaves = {x.detach(), w.detach(), b.detach()};
    leaves[i].requires_grad_();
    linear_relu(leaves[0], leaves[1], leaves[2]).backward(ragged({5, 4}));
    EXPECT_TRUE(allclose(leaves[i].grad(), all[i + 1], 1e-6, 1e-6)) << "of operand " << i;
  }
}

TEST(Linear, ReluKeepsNan) {
  const Tensor y = linear_relu(tensor({{1.0, std::nan("")}, {-1.0, -2.0}}), ones({3, 2}));
  EXPECT_TRUE(isnan(y[0]).all().item<bool>());
  EXPECT_TRUE(allclose(y[1], zeros({3})));
}

TEST(Matmul, Gradients) {
  for (const Pair& p : pairs()) {
    gradcheck([](const In& in) { return matmul(in[0], in[1]); }, {leaf(p.a), leaf(p.b)});
    if (p.a.size() + p.b.size() <= 5)
      gradgradcheck([](const In& in) { return matmul(in[0], in[1]); }, {leaf(p.a), leaf(p.b)});
  }
  gradgradcheck([](const In& in) { return addmm(in[0], in[1], in[2], 0.5, 2); },
                {leaf({2, 1}), leaf({2, 3}), leaf({3, 4})});
  gradgradcheck([](const In& in) { return baddbmm(in[0], in[1], in[2], 0.5, 2); },
                {leaf({4}), leaf({2, 2, 3}), leaf({2, 3, 4})});
}

TEST(Linear, Gradients) {
  for (const Shape& shape : {Shape{3}, Shape{5, 3}, Shape{2, 2, 3}, Shape{0, 3}}) {
    auto f = [](const In& in) { return linear(in[0], in[1], in[2]); };
    gradcheck(f, {leaf(shape), leaf({4, 3}), leaf({4})});
    gradgradcheck(f, {leaf(shape), leaf({4, 3}), leaf({4})});
  }
  gradcheck([](const In& in) { return linear(transpose(in[0], 0, 1), transpose(in[1], 0, 1)); },
            {leaf({3, 5}), leaf({3, 4})});
  gradcheck([](const In& in) { return sum(linear(in[0], in[1], in[2])); },
            {leaf({5, 3}), leaf({4, 3}), leaf({4})});
}

TEST(Einsum, Equations) {
  const Tensor a = ragged({2, 3}), b = ragged({3, 4}), c = ragged({5, 2, 3}), square_matrix = ragged({3, 3});
  EXPECT_TRUE(allclose(einsum("ij,jk->ik", {a, b}), matmul(a, b)));
  EXPECT_TRUE(allclose(einsum("ij,jk", {a, b}), matmul(a, b)));
  EXPECT_TRUE(allclose(einsum("ba", {a}), a.t()));
  EXPECT_TRUE(allclose(einsum("...ij,jk->...ik", {c, b}), matmul(c, b)));
  EXPECT_TRUE(allclose(einsum("ii", {square_matrix}), sum(diagonal(square_matrix))));
  EXPECT_TRUE(allclose(einsum("ii->i", {square_matrix}), diagonal(square_matrix)));
  EXPECT_TRUE(allclose(einsum("bij,ij->b", {c, a}), sum(mul(c, a), {1, 2})));
  EXPECT_TRUE(allclose(einsum("ij, jk, kl -> il", {a, b, b.t()}), matmul(matmul(a, b), b.t())));
  gradcheck([](const In& in) { return einsum("bij,bkj->bik", in); }, {leaf({2, 2, 3}), leaf({2, 4, 3})});
}

TEST(MatmulErrors, ShapesAndTypes) {
  const Tensor a = ones({2, 3}), b = ones({4, 5});
  expect_error<ShapeError>([&] { matmul(a, b); },
                           "matmul: inner sizes differ: a is [2, 3], b is [4, 5] (3 vs 4)");
  expect_error<ShapeError>([&] { mm(a, b); }, "mm: inner sizes differ: a is [2, 3], b is [4, 5] (3 vs 4)");
  expect_error<ShapeError>([&] { mm(a, ones({3})); }, "mm: b must be a 2-D tensor, got shape [3]");
  expect_error<ShapeError>([&] { bmm(ones({2, 2, 3}), ones({3, 3, 2})); }, "bmm: batch sizes differ");
  expect_error<ShapeError>(
      [&] {
        matmul(ones({2, 2, 3}), ones({3, 3, 2}));
      },
      "matmul: batch sizes do not broadcast: a is [2, 2, 3], b is [3, 3, 2]");
  expect_error<ShapeError>([&] { matmul(tensor(1.0), a); }, "need to be at least 1D, but they are 0D and 2D");
  expect_error<ShapeError>([&] { dot(ones({3}), ones({4})); }, "dot: inner sizes differ");
  expect_error<ShapeError>([&] { addmm(ones({3}), ones({2, 4}), ones({4, 5})); }, "addmm:");
  expect_error<ShapeError>(
      [&] {
        linear(ones({2, 4}), ones({5, 3}));
      },
      "linear: inner sizes differ: input is [2, 4], weight is [5, 3] (4 vs 3)");
  expect_error<ShapeError>(
      [&] {
        linear(ones({2, 3}), ones({5, 3}), ones({4}));
      },
      "linear: bias must be [5]");
  expect_error<ShapeError>([&] { linear(tensor(1.0), ones({5, 3})); }, "at least one dimension");
  expect_error<DTypeError>(
      [&] {
        linear(ones({2, 3}), ones({5, 3}, {.dtype = float64}));
      },
      "same dtype, but got: float32 and float64");
  expect_error<DTypeError>(
      [&] {
        linear(ones({2, 3}), ones({5, 3}), ones({5}, {.dtype = float64}));
      },
      "weight and bias to have the same dtype");
  expect_error<DTypeError>(
      [&] {
        matmul(a, ones({3, 4}, {.dtype = int64}));
      },
      "same dtype, but got: float32 and int64");
  expect_error<DTypeError>([&] { matmul(gt(a, 0), gt(a.t(), 0)); }, "not implemented for bool");
  expect_error<ValueError>([&] { einsum("ij,jk->iz", {a, a}); }, "output subscript");
  expect_error<ValueError>([&] { einsum("i?", {a}); }, "invalid subscript");
  expect_error<ValueError>([&] { einsum("ij,jk", {a}); }, "1 operands were provided");
  expect_error<ShapeError>([&] { einsum("ij,jk", {a, a}); }, "do not broadcast");
  expect_error<ShapeError>([&] { einsum("ijk", {a}); }, "does not match the number of dimensions");
}

TEST(MatmulErrors, ResultsThatAreTooLarge) {
  const Tensor one = ones({1, 1});
  expect_error<ShapeError>(
      [&] {
        mm(ones({3, 1}), one.expand({1, 6148914691236517206}));
      },
      "6148914691236517206");
  expect_error<ShapeError>(
      [&] {
        matmul(one.expand({int64_t{1} << 33, 1}), one.expand({1, int64_t{1} << 33}));
      },
      "8589934592");
  expect_error<ShapeError>(
      [&] {
        linear(ones({3, 1}), one.expand({6148914691236517206, 1}));
      },
      "6148914691236517206");
}

}  // namespace
}  // namespace tern
