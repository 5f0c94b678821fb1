// Matrices of derivatives and products with them, against formulas.
#include "tern/ops/jacobian.h"

#include <gtest/gtest.h>

#include "tern/base/error.h"
#include "tern/ops/activation.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/diagonal.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

using autograd::hessian;
using autograd::hvp;
using autograd::jacobian;
using autograd::jvp;
using autograd::vjp;

const TensorOptions kDouble{.dtype = DType::Float64};

TEST(Jacobian, OfAFunctionOfOneTensor) {
  const Tensor a = rand({3, 4}, kDouble), x = rand({4}, kDouble), v = rand({4}, kDouble),
               u = rand({3}, kDouble);
  const auto f = [&](const Tensor& t) { return exp(matmul(a, t)); };
  const Tensor expected = exp(matmul(a, x)).unsqueeze(1) * a;
  EXPECT_TRUE(allclose(jacobian(f, x), expected));
  EXPECT_TRUE(allclose(vjp(f, x, u).second, matmul(u, expected)));
  EXPECT_TRUE(allclose(jvp(f, x, v).second, matmul(expected, v)));
  EXPECT_TRUE(allclose(jvp(f, x, v).first, f(x)));
  EXPECT_FALSE(x.requires_grad());
  EXPECT_EQ(jacobian([](const Tensor& t) { return t.reshape({2, 2}); }, x).shape(), (Shape{2, 2, 4}));
  EXPECT_EQ(jacobian([](const Tensor& t) { return t.narrow(0, 0, 0); }, x).shape(), (Shape{0, 4}));
  EXPECT_TRUE(equal(jacobian([](const Tensor&) { return ones({2}, kDouble); }, x), zeros({2, 4}, kDouble)));
}

TEST(Jacobian, OfSeveralTensors) {
  const Tensor x = rand({2}, kDouble), y = rand({2}, kDouble);
  const auto f = [](const std::vector<Tensor>& in) { return in[0] * in[0] * in[1]; };
  const auto matrices = jacobian(f, {x, y});
  EXPECT_TRUE(allclose(matrices[0], diag(2 * x * y)));
  EXPECT_TRUE(allclose(matrices[1], diag(x * x)));
  const auto second = hessian([&](const std::vector<Tensor>& in) { return f(in).sum(); }, {x, y});
  EXPECT_TRUE(allclose(second[0][0], diag(2 * y)));
  EXPECT_TRUE(allclose(second[0][1], diag(2 * x)));
  EXPECT_TRUE(allclose(second[1][0], diag(2 * x)));
  EXPECT_TRUE(equal(second[1][1], zeros({2, 2}, kDouble)));
}

TEST(Hessian, OfAFunctionWithOneNumber) {
  const Tensor x = rand({2, 2}, kDouble), v = rand({2, 2}, kDouble);
  const auto f = [](const Tensor& t) { return (t * t * t).sum() + t.sum() * t.sum(); };
  const Tensor flat = diag(6 * x.flatten()) + 2;
  EXPECT_TRUE(allclose(hessian(f, x), flat.reshape({2, 2, 2, 2})));
  EXPECT_TRUE(allclose(hvp(f, x, v).second, matmul(flat, v.flatten()).reshape({2, 2})));
  EXPECT_TRUE(allclose(vjp(f, x).second, 3 * x * x + 2 * x.sum()));
}

TEST(Jacobian, CanBeDifferentiatedAgain) {
  const Tensor x = tensor({1.0, 2.0}, {.dtype = DType::Float64, .requires_grad = true});
  const auto f = [](const Tensor& t) { return t * t * t; };
  const Tensor matrix = jacobian(f, x, {.create_graph = true});
  matrix.sum().backward();  // of 3 x^2
  EXPECT_TRUE(allclose(x.grad(), 6 * x.detach()));
  EXPECT_FALSE(jacobian(f, x).requires_grad());
}

TEST(Jacobian, Errors) {
  const Tensor x = ones({2});
  const auto f = [](const Tensor& t) { return t * 2; };
  EXPECT_THROW(hessian(f, x), ShapeError);
  EXPECT_THROW(vjp(f, x), ShapeError);
  EXPECT_THROW(vjp(f, x, ones({3})), ShapeError);
  EXPECT_THROW(jvp(f, x, ones({3})), ShapeError);
  EXPECT_THROW(jacobian(f, ones({2}, {.dtype = DType::Int64})), DTypeError);
  EXPECT_THROW(jacobian([](const Tensor&) { return ones({2}); }, x, {.strict = true}), AutogradError);
}

}  // namespace
}  // namespace tern
