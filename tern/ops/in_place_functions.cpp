// The methods of Tensor that replace it by a function of it, in place: one kernel where there is one and no
// gradient is recorded, else the recorded function of a copy. Arithmetic, and functions whose gradients need
// no copy, are in in_place.cpp, changes of shape in in_place_shape.cpp.
#include <algorithm>
#include <cstring>
#include <numbers>

#include "tern/autograd/arithmetic.h"
#include "tern/autograd/autocast_mode.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/distance.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// self = function(self), in self's dtype whatever autocast says.
template <class Function, class... Others>
Tensor& recomputed(const char* op_name, Tensor& self, Function function, const Others&... others) {
  check_in_place(op_name, self);
  const AutocastPause pause;
  const Tensor y = function(tracks_grad(self, others...) ? clone(self) : self);
  const std::string_view plain_name(op_name, std::strlen(op_name) - 1);
  check_broadcasts_to(plain_name, self, y.shape());
  check_result_fits(plain_name, y.dtype(), self.dtype());
  copy_elements(self, y.detach());
  record_in_place(op_name, self, {y},
                  [dtype = y.dtype()](GradContext&, const Tensor& g) { return to(g, dtype); });
  return self;
}

/// The same by in_place() where neither self nor the other operands are tracked.
template <class Function, class InPlace, class... Others>
Tensor& replaced(const char* op_name, Tensor& self, Function function, InPlace in_place,
                 const Others&... others) {
  check_in_place(op_name, self);
  if (tracks_grad(self, others...) || self.is_complex())
    return recomputed(op_name, self, function, others...);
  in_place();
  self.storage()->bump_version();
  return self;
}

/// The methods of one operator of one operand.
Tensor& replaced_by(const char* op_name, Tensor& self, UnaryOp op, Tensor (*function)(const Tensor&)) {
  return replaced(op_name, self, function, [&] { unary_in_place(op, self); });
}

/// The methods of one operator of two operands; `other` is a tensor or a number.
template <class Other>
Tensor& replaced_by(const char* op_name, Tensor& self, BinaryOp op, const Other& other,
                    Tensor (*function)(const Tensor&, const Other&)) {
  const auto in_place = [&] { binary_in_place(op, self, other); };
  const auto of = [&](const Tensor& x) { return function(x, other); };
  if constexpr (std::is_same_v<Other, Tensor>)
    return replaced(op_name, self, of, in_place, other);
  else
    return replaced(op_name, self, of, in_place);
}

/// self = op(self, other), which has no gradient.
template <class Other>
Tensor& compared(const char* op_name, Tensor& self, BinaryOp op, const Other& other) {
  check_in_place(op_name, self);
  binary_in_place(op, self, other);
  record_in_place(op_name, self, {self},
                  [](GradContext&, const Tensor& g) { return filled(g.shape(), g.dtype(), g.device(), 0); });
  return self;
}

}  // namespace

#define TERN_UNARY_IN_PLACE(method, op) \
  Tensor& Tensor::method##_() { return replaced_by(#method "_", *this, UnaryOp::op, tern::method); }
TERN_UNARY_IN_PLACE(abs, Abs)
TERN_UNARY_IN_PLACE(square, Square)
TERN_UNARY_IN_PLACE(floor, Floor)
TERN_UNARY_IN_PLACE(ceil, Ceil)
TERN_UNARY_IN_PLACE(round, Round)
TERN_UNARY_IN_PLACE(trunc, Trunc)
TERN_UNARY_IN_PLACE(frac, Frac)
TERN_UNARY_IN_PLACE(expm1, Expm1)
TERN_UNARY_IN_PLACE(exp2, Exp2)
TERN_UNARY_IN_PLACE(log, Log)
TERN_UNARY_IN_PLACE(log1p, Log1p)
TERN_UNARY_IN_PLACE(log2, Log2)
TERN_UNARY_IN_PLACE(log10, Log10)
TERN_UNARY_IN_PLACE(rsqrt, Rsqrt)
TERN_UNARY_IN_PLACE(reciprocal, Reciprocal)
TERN_UNARY_IN_PLACE(sin, Sin)
TERN_UNARY_IN_PLACE(cos, Cos)
TERN_UNARY_IN_PLACE(tan, Tan)
TERN_UNARY_IN_PLACE(asin, Asin)
TERN_UNARY_IN_PLACE(acos, Acos)
TERN_UNARY_IN_PLACE(atan, Atan)
TERN_UNARY_IN_PLACE(sinh, Sinh)
TERN_UNARY_IN_PLACE(cosh, Cosh)
TERN_UNARY_IN_PLACE(asinh, Asinh)
TERN_UNARY_IN_PLACE(acosh, Acosh)
TERN_UNARY_IN_PLACE(atanh, Atanh)
TERN_UNARY_IN_PLACE(erf, Erf)
TERN_UNARY_IN_PLACE(erfc, Erfc)
TERN_UNARY_IN_PLACE(erfinv, Erfinv)
TERN_UNARY_IN_PLACE(lgamma, Lgamma)
TERN_UNARY_IN_PLACE(digamma, Digamma)
TERN_UNARY_IN_PLACE(sinc, Sinc)
TERN_UNARY_IN_PLACE(bitwise_not, BitwiseNot)
#undef TERN_UNARY_IN_PLACE

#define TERN_BINARY_IN_PLACE(method, op, Other)                                \
  Tensor& Tensor::method##_(const Other& other) {                              \
    return replaced_by(#method "_", *this, BinaryOp::op, other, tern::method); \
  }
TERN_BINARY_IN_PLACE(floor_divide, DivFloor, Tensor)
TERN_BINARY_IN_PLACE(floor_divide, DivFloor, Scalar)
TERN_BINARY_IN_PLACE(remainder, Remainder, Tensor)
TERN_BINARY_IN_PLACE(remainder, Remainder, Scalar)
TERN_BINARY_IN_PLACE(fmod, Fmod, Tensor)
TERN_BINARY_IN_PLACE(fmod, Fmod, Scalar)
TERN_BINARY_IN_PLACE(pow, Pow, Tensor)
TERN_BINARY_IN_PLACE(atan2, Atan2, Tensor)
TERN_BINARY_IN_PLACE(hypot, Hypot, Tensor)
TERN_BINARY_IN_PLACE(copysign, Copysign, Tensor)
TERN_BINARY_IN_PLACE(copysign, Copysign, Scalar)
TERN_BINARY_IN_PLACE(xlogy, Xlogy, Tensor)
TERN_BINARY_IN_PLACE(xlogy, Xlogy, Scalar)
TERN_BINARY_IN_PLACE(bitwise_and, BitwiseAnd, Tensor)
TERN_BINARY_IN_PLACE(bitwise_or, BitwiseOr, Tensor)
TERN_BINARY_IN_PLACE(bitwise_xor, BitwiseXor, Tensor)
TERN_BINARY_IN_PLACE(clamp_min, Maximum, Tensor)
TERN_BINARY_IN_PLACE(clamp_max, Minimum, Tensor)
#undef TERN_BINARY_IN_PLACE

#define TERN_COMPARED_IN_PLACE(method, op, Other)              \
  Tensor& MoreMethods::method##_(const Other& other) {         \
    return compared(#method "_", self(), BinaryOp::op, other); \
  }
TERN_COMPARED_IN_PLACE(eq, Eq, Tensor)
TERN_COMPARED_IN_PLACE(eq, Eq, Scalar)
TERN_COMPARED_IN_PLACE(ne, Ne, Tensor)
TERN_COMPARED_IN_PLACE(ne, Ne, Scalar)
TERN_COMPARED_IN_PLACE(lt, Lt, Tensor)
TERN_COMPARED_IN_PLACE(lt, Lt, Scalar)
TERN_COMPARED_IN_PLACE(le, Le, Tensor)
TERN_COMPARED_IN_PLACE(le, Le, Scalar)
TERN_COMPARED_IN_PLACE(gt, Gt, Tensor)
TERN_COMPARED_IN_PLACE(gt, Gt, Scalar)
TERN_COMPARED_IN_PLACE(ge, Ge, Tensor)
TERN_COMPARED_IN_PLACE(ge, Ge, Scalar)
TERN_COMPARED_IN_PLACE(logical_and, LogicalAnd, Tensor)
TERN_COMPARED_IN_PLACE(logical_or, LogicalOr, Tensor)
TERN_COMPARED_IN_PLACE(logical_xor, LogicalXor, Tensor)
#undef TERN_COMPARED_IN_PLACE
Tensor& MoreMethods::logical_not_() { return compared("logical_not_", self(), BinaryOp::Eq, Scalar(0)); }

Tensor& MoreMethods::tril_(int64_t diagonal) {
  return recomputed("tril_", self(), [&](const Tensor& x) { return tern::tril(x, diagonal); });
}
Tensor& MoreMethods::triu_(int64_t diagonal) {
  return recomputed("triu_", self(), [&](const Tensor& x) { return tern::triu(x, diagonal); });
}
Tensor& MoreMethods::cumsum_(int64_t dim) {
  return recomputed("cumsum_", self(), [&](const Tensor& x) { return tern::cumsum(x, dim); });
}
Tensor& MoreMethods::cumprod_(int64_t dim) {
  return recomputed("cumprod_", self(), [&](const Tensor& x) { return tern::cumprod(x, dim); });
}
Tensor& MoreMethods::masked_scatter_(const Tensor& mask, const Tensor& source) {
  return recomputed(
      "masked_scatter_", self(), [&](const Tensor& x) { return tern::masked_scatter(x, mask, source); },
      source);
}
Tensor& MoreMethods::renorm_(double p, int64_t dim, double maxnorm) {
  return recomputed("renorm_", self(), [&](const Tensor& x) { return tern::renorm(x, p, dim, maxnorm); });
}

#define TERN_ADDED_IN_PLACE(method)                                                                      \
  Tensor& MoreMethods::method##_(const Tensor& a, const Tensor& b, const Scalar& beta,                   \
                                 const Scalar& alpha) {                                                  \
    return recomputed(                                                                                   \
        #method "_", self(), [&](const Tensor& x) { return tern::method(x, a, b, beta, alpha); }, a, b); \
  }
TERN_ADDED_IN_PLACE(addmm)
TERN_ADDED_IN_PLACE(baddbmm)
TERN_ADDED_IN_PLACE(addmv)
TERN_ADDED_IN_PLACE(addr)
#undef TERN_ADDED_IN_PLACE

Tensor& MoreMethods::fill_diagonal_(const Scalar& value, bool wrap) {
  const Shape& shape = self().shape();
  TERN_CHECK(shape.size() >= 2, ShapeError, "fill_diagonal_: dimensions must larger than 1, got shape {}",
             to_string(shape));
  TERN_CHECK(
      shape.size() == 2 || std::all_of(shape.begin(), shape.end(), [&](int64_t n) { return n == shape[0]; }),
      ShapeError, "fill_diagonal_: all dimensions of input must be of equal length, got shape {}",
      to_string(shape));
  const Tensor mask = zeros(shape, {.dtype = DType::Bool, .device = self().device()});
  int64_t step = 0, count = *std::min_element(shape.begin(), shape.end());
  for (int64_t stride : mask.strides()) step += stride;
  if (wrap && shape.size() == 2 && count > 0) count = std::max(count, (mask.numel() - 1) / step + 1);
  if (count > 0) as_strided(mask, {count}, {step}).fill_(true);
  return self().masked_fill_(mask, value);
}

Tensor& Tensor::sign_() {
  if (tern::is_bool(dtype())) return *this;  // bools are their own signs
  return replaced_by("sign_", *this, UnaryOp::Sign, tern::sign);
}
Tensor& Tensor::deg2rad_() { return mul_(std::numbers::pi / 180); }
Tensor& Tensor::rad2deg_() { return mul_(180 / std::numbers::pi); }
Tensor& Tensor::clamp_min_(const Scalar& min) { return clamp_(min, {}); }
Tensor& Tensor::clamp_max_(const Scalar& max) { return clamp_({}, max); }

Tensor& Tensor::pow_(const Scalar& exponent) {
  detail::check_integer_exponent(dtype(), exponent);
  return replaced(
      "pow_", *this, [&](const Tensor& x) { return tern::pow(x, exponent); },
      [&] {
        const std::optional<UnaryOp> power = detail::unary_power(*this, exponent);
        power ? unary_in_place(*power, *this) : binary_in_place(BinaryOp::Pow, *this, exponent);
      });
}

Tensor& Tensor::div_(const Tensor& other, std::string_view rounding_mode) {
  const BinaryOp op = detail::rounded_division(rounding_mode);
  return replaced(
      "div_", *this, [&](const Tensor& x) { return tern::div(x, other, rounding_mode); },
      [&] { binary_in_place(op, *this, other); }, other);
}
Tensor& Tensor::div_(const Scalar& other, std::string_view rounding_mode) {
  const BinaryOp op = detail::rounded_division(rounding_mode);
  return replaced(
      "div_", *this, [&](const Tensor& x) { return tern::div(x, other, rounding_mode); },
      [&] { binary_in_place(op, *this, other); });
}

Tensor& Tensor::heaviside_(const Tensor& values) {
  check_in_place("heaviside_", *this);
  const Tensor y = tern::heaviside(detach(), values.detach());
  check_broadcasts_to("heaviside", *this, y.shape());
  return copy_(y);
}

Tensor& Tensor::lerp_(const Tensor& end, const Tensor& weight) {
  detail::check_lerp(*this, end, weight);
  return replaced(
      "lerp_", *this, [&](const Tensor& x) { return tern::lerp(x, end, weight); },
      [&] { ternary_in_place(TernaryOp::LerpEach, *this, end, weight); }, end, weight);
}
Tensor& Tensor::lerp_(const Tensor& end, const Scalar& weight) {
  detail::check_lerp(*this, end, {});
  return replaced(
      "lerp_", *this, [&](const Tensor& x) { return tern::lerp(x, end, weight); },
      [&] { binary_in_place(BinaryOp::Lerp, *this, end, param_of(weight)); }, end);
}

Tensor& Tensor::addcmul_(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) {
  detail::check_value("addcmul_", dtype(), value);
  return replaced(
      "addcmul_", *this, [&](const Tensor& x) { return tern::addcmul(x, tensor1, tensor2, value); },
      [&] { ternary_in_place(TernaryOp::Addcmul, *this, tensor1, tensor2, param_of(value)); }, tensor1,
      tensor2);
}
Tensor& Tensor::addcdiv_(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) {
  detail::check_addcdiv(*this, tensor1, tensor2);
  return replaced(
      "addcdiv_", *this, [&](const Tensor& x) { return tern::addcdiv(x, tensor1, tensor2, value); },
      [&] { ternary_in_place(TernaryOp::Addcdiv, *this, tensor1, tensor2, param_of(value)); }, tensor1,
      tensor2);
}

Tensor& Tensor::logit_(std::optional<double> eps) {
  const detail::LogitBounds bounds(eps);
  return replaced(
      "logit_", *this, [&](const Tensor& x) { return tern::logit(x, eps); },
      [&] { unary_in_place(UnaryOp::Logit, *this, param_of(bounds.low), param_of(bounds.high)); });
}

Tensor& Tensor::nan_to_num_(double nan, std::optional<double> posinf, std::optional<double> neginf) {
  if (!tern::is_floating_point(dtype())) {
    check_in_place("nan_to_num_", *this);
    return *this;
  }
  const double most = detail::largest_of(dtype());
  return replaced(
      "nan_to_num_", *this, [&](const Tensor& x) { return tern::nan_to_num(x, nan, posinf, neginf); },
      [&] {
        binary_in_place(BinaryOp::NanToNum, *this, Scalar(nan), param_of(posinf.value_or(most)),
                        param_of(neginf.value_or(-most)));
      });
}

}  // namespace tern
