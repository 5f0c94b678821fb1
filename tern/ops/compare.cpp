// Comparisons, predicates, logical and bitwise operators.
#include "tern/ops/compare.h"

#include <limits>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/complex_elementwise.h"
#include "tern/ops/copy.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"

namespace tern {

Tensor eq(const Tensor& a, const Tensor& b) { return binary(BinaryOp::Eq, a, b); }
Tensor eq(const Tensor& a, const Scalar& b) { return binary(BinaryOp::Eq, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return binary(BinaryOp::Ne, a, b); }
Tensor ne(const Tensor& a, const Scalar& b) { return binary(BinaryOp::Ne, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return binary(BinaryOp::Lt, a, b); }
Tensor lt(const Tensor& a, const Scalar& b) { return binary(BinaryOp::Lt, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return binary(BinaryOp::Le, a, b); }
Tensor le(const Tensor& a, const Scalar& b) { return binary(BinaryOp::Le, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return binary(BinaryOp::Gt, a, b); }
Tensor gt(const Tensor& a, const Scalar& b) { return binary(BinaryOp::Gt, a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return binary(BinaryOp::Ge, a, b); }
Tensor ge(const Tensor& a, const Scalar& b) { return binary(BinaryOp::Ge, a, b); }

Tensor logical_and(const Tensor& a, const Tensor& b) { return binary(BinaryOp::LogicalAnd, a, b); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return binary(BinaryOp::LogicalOr, a, b); }
Tensor logical_xor(const Tensor& a, const Tensor& b) { return binary(BinaryOp::LogicalXor, a, b); }
Tensor bitwise_and(const Tensor& a, const Tensor& b) { return binary(BinaryOp::BitwiseAnd, a, b); }
Tensor bitwise_or(const Tensor& a, const Tensor& b) { return binary(BinaryOp::BitwiseOr, a, b); }
Tensor bitwise_xor(const Tensor& a, const Tensor& b) { return binary(BinaryOp::BitwiseXor, a, b); }
Tensor bitwise_and(const Tensor& a, const Scalar& b) { return binary(BinaryOp::BitwiseAnd, a, b); }
Tensor bitwise_or(const Tensor& a, const Scalar& b) { return binary(BinaryOp::BitwiseOr, a, b); }
Tensor bitwise_xor(const Tensor& a, const Scalar& b) { return binary(BinaryOp::BitwiseXor, a, b); }
Tensor logical_not(const Tensor& x) { return unary(UnaryOp::LogicalNot, x); }
Tensor bitwise_not(const Tensor& x) { return unary(UnaryOp::BitwiseNot, x); }

namespace {
/// op of a number; of complex ones that of their parts, joined.
Tensor kind_of(UnaryOp op, BinaryOp join, const Tensor& x) {
  if (!is_complex_computable(x.dtype())) return unary(op, x);
  return both_parts(join, unary(op, real_view(x.detach())));
}
}  // namespace

Tensor isnan(const Tensor& x) { return kind_of(UnaryOp::IsNan, BinaryOp::LogicalOr, x); }
Tensor isinf(const Tensor& x) { return kind_of(UnaryOp::IsInf, BinaryOp::LogicalOr, x); }
Tensor isfinite(const Tensor& x) { return kind_of(UnaryOp::IsFinite, BinaryOp::LogicalAnd, x); }
Tensor isposinf(const Tensor& x) { return eq(x, std::numeric_limits<double>::infinity()); }
Tensor isneginf(const Tensor& x) { return eq(x, -std::numeric_limits<double>::infinity()); }
Tensor signbit(const Tensor& x) { return unary(UnaryOp::Signbit, x); }

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  TERN_CHECK(rtol >= 0 && atol >= 0, ValueError, "isclose: rtol and atol must not be negative, got {} and {}",
             rtol, atol);
  TERN_CHECK(a.dtype() == b.dtype(), DTypeError,
             "isclose: dtypes differ: a is {}, b is {}: convert one with to(dtype)", name(a.dtype()),
             name(b.dtype()));
  NoGradGuard no_grad;
  Tensor close = eq(a, b);
  if (equal_nan) close = logical_or(close, logical_and(isnan(a), isnan(b)));
  if (rtol == 0 && atol == 0) return close;  // exact for integers too
  DType wide = is_floating_point(a.dtype()) || is_complex(a.dtype()) ? a.dtype() : DType::Float64;
  Tensor x = cast(a, wide), y = cast(b, wide);
  Tensor distance = abs(sub(x, y));
  Tensor near = le(distance, add(mul(abs(y), rtol), atol));
  return logical_or(close, logical_and(near, isfinite(distance)));
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  return item(all(isclose(a, b, rtol, atol, equal_nan))).to_bool();
}

bool equal(const Tensor& a, const Tensor& b) {
  check_same_device("equal", {{"a", a}, {"b", b}});
  return a.shape() == b.shape() && item(all(eq(a, b))).to_bool();
}

}  // namespace tern
