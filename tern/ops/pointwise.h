// Pointwise arithmetic and elementary functions. Activations are in ops/activation.h, comparisons and logic
// in ops/compare.h, the forms in place are methods of Tensor (ops/in_place.cpp).
#pragma once

#include <concepts>
#include <optional>
#include <string_view>

#include "tern/core/tensor.h"

namespace tern {

// Binary operators broadcast and promote as PyTorch's; either side may be a number. Throw ShapeError when the
// shapes do not broadcast, DTypeError for a dtype that the operator does not take, DeviceError for tensors on
// two devices.

/// a + alpha * b.
Tensor add(const Tensor& a, const Tensor& b, const Scalar& alpha = 1);
Tensor add(const Tensor& a, const Scalar& b, const Scalar& alpha = 1);
/// a - alpha * b.
Tensor sub(const Tensor& a, const Tensor& b, const Scalar& alpha = 1);
Tensor sub(const Tensor& a, const Scalar& b, const Scalar& alpha = 1);
/// b - a.
Tensor rsub(const Tensor& a, const Scalar& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Scalar& b);
/// a / b; integers give the default floating dtype. `rounding_mode`: "trunc" or "floor" for an integer-valued
/// quotient.
Tensor div(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Scalar& b);
Tensor div(const Tensor& a, const Tensor& b, std::string_view rounding_mode);
Tensor div(const Tensor& a, const Scalar& b, std::string_view rounding_mode);
Tensor floor_divide(const Tensor& a, const Tensor& b);
Tensor floor_divide(const Tensor& a, const Scalar& b);
/// Python's %, with the sign of the divisor.
Tensor remainder(const Tensor& a, const Tensor& b);
Tensor remainder(const Tensor& a, const Scalar& b);
Tensor remainder(const Scalar& a, const Tensor& b);
/// C's fmod, with the sign of the dividend.
Tensor fmod(const Tensor& a, const Tensor& b);
Tensor fmod(const Tensor& a, const Scalar& b);
Tensor pow(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& a, const Scalar& b);
Tensor pow(const Scalar& a, const Tensor& b);
/// pow in float64.
Tensor float_power(const Tensor& a, const Tensor& b);
Tensor float_power(const Tensor& a, const Scalar& b);
Tensor float_power(const Scalar& a, const Tensor& b);
Tensor atan2(const Tensor& a, const Tensor& b);
/// NaN wins, as in PyTorch; the gradient of equal elements is split evenly.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
/// As maximum and minimum, but of NaN and a number the number is taken; of equal elements a has the gradient.
Tensor fmax(const Tensor& a, const Tensor& b);
Tensor fmin(const Tensor& a, const Tensor& b);
/// log(e^a + e^b), and log2(2^a + 2^b), without overflow on the way. Floats only.
Tensor logaddexp(const Tensor& a, const Tensor& b);
Tensor logaddexp2(const Tensor& a, const Tensor& b);
/// a * log(b); 0 where a is 0, unless b is NaN.
Tensor xlogy(const Tensor& a, const Tensor& b);
Tensor xlogy(const Tensor& a, const Scalar& b);
Tensor xlogy(const Scalar& a, const Tensor& b);
/// sqrt(a^2 + b^2), without overflow on the way. Floats only.
Tensor hypot(const Tensor& a, const Tensor& b);
/// |a| with the sign of b, that of zeros and NaN too.
Tensor copysign(const Tensor& a, const Tensor& b);
Tensor copysign(const Tensor& a, const Scalar& b);
/// 0 where x is negative, values where it is 0, 1 where it is positive; no gradient. Throws DTypeError when
/// the dtypes differ.
Tensor heaviside(const Tensor& x, const Tensor& values);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, const Scalar& b) { return add(a, b); }
inline Tensor operator+(const Scalar& a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a, const Scalar& b) { return sub(a, b); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, const Scalar& b) { return mul(a, b); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator/(const Tensor& a, const Scalar& b) { return div(a, b); }
Tensor operator/(const Scalar& a, const Tensor& b);
inline Tensor operator%(const Tensor& a, const Tensor& b) { return remainder(a, b); }
inline Tensor operator%(const Tensor& a, const Scalar& b) { return remainder(a, b); }
inline Tensor operator%(const Scalar& a, const Tensor& b) { return remainder(a, b); }

// Functions of integers.

/// The greatest common divisor, and the least common multiple: never negative, 0 beside 0.
Tensor gcd(const Tensor& a, const Tensor& b);
Tensor lcm(const Tensor& a, const Tensor& b);
/// a * 2^b and floor(a / 2^b), as shifts of bits: by a negative number, or by as many as there are, all of
/// them leave.
Tensor bitwise_left_shift(const Tensor& a, const Tensor& b);
Tensor bitwise_left_shift(const Tensor& a, const Scalar& b);
Tensor bitwise_left_shift(const Scalar& a, const Tensor& b);
Tensor bitwise_right_shift(const Tensor& a, const Tensor& b);
Tensor bitwise_right_shift(const Tensor& a, const Scalar& b);
Tensor bitwise_right_shift(const Scalar& a, const Tensor& b);

// Functions of three operands, which broadcast.

/// start + weight * (end - start), exact at weights 0 and 1. Floats of one dtype.
Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight);
Tensor lerp(const Tensor& start, const Tensor& end, const Scalar& weight);
/// x + value * tensor1 * tensor2, and x + value * tensor1 / tensor2 of floats.
Tensor addcmul(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value = 1);
Tensor addcdiv(const Tensor& x, const Tensor& tensor1, const Tensor& tensor2, const Scalar& value = 1);

// Unary functions. Those that need floats turn integers into the default dtype.

Tensor neg(const Tensor& x);
/// x itself. Throws DTypeError for bool.
Tensor positive(const Tensor& x);
Tensor abs(const Tensor& x);
/// -1, 0 or 1; 0 for NaN. Zero gradient.
Tensor sign(const Tensor& x);
Tensor square(const Tensor& x);
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
/// Halves to the even neighbour.
Tensor round(const Tensor& x);
Tensor trunc(const Tensor& x);
/// x - trunc(x). Floats only.
Tensor frac(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor exp2(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log10(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor asinh(const Tensor& x);
Tensor acosh(const Tensor& x);
Tensor atanh(const Tensor& x);
Tensor erf(const Tensor& x);
/// 1 - erf(x), without loss for large x.
Tensor erfc(const Tensor& x);
// The gamma function's kin (more of them is in ops/special.h).
/// log |Gamma(x)|.
Tensor lgamma(const Tensor& x);
/// The derivative of lgamma: -inf at 0, NaN at negative integers.
Tensor digamma(const Tensor& x);
/// The n-th derivative of digamma; throws ValueError for a negative n.
Tensor polygamma(int64_t n, const Tensor& x);
/// The inverse of erf: infinite at 1 and -1, NaN beyond.
Tensor erfinv(const Tensor& x);
/// special::multigammaln.
Tensor mvlgamma(const Tensor& x, int64_t p);
/// special::gammainc and special::gammaincc.
Tensor igamma(const Tensor& a, const Tensor& x);
Tensor igammac(const Tensor& a, const Tensor& x);
/// sin(pi x) / (pi x), 1 at 0.
Tensor sinc(const Tensor& x);
Tensor deg2rad(const Tensor& x);
Tensor rad2deg(const Tensor& x);
/// log(x / (1 - x)); with `eps` x is clamped to [eps, 1 - eps] first.
Tensor logit(const Tensor& x, std::optional<double> eps = {});
/// NaN and infinities replaced, these by the dtype's largest and lowest numbers unless given. Integers stay.
Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = {},
                  std::optional<double> neginf = {});
/// Elements below `min` become min, above `max` max; either may be left out. Throws ValueError when both are.
Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max);
Tensor clamp_min(const Tensor& x, const Scalar& min);
Tensor clamp_max(const Tensor& x, const Scalar& max);
Tensor clamp_min(const Tensor& x, const Tensor& min);
Tensor clamp_max(const Tensor& x, const Tensor& max);
namespace detail {
Tensor clamp_between(const Tensor& x, const Tensor& min, const Tensor& max);
}
/// Bounds for each element, which broadcast; an undefined one bounds nothing. A template so that `{}` for a
/// bound still means a number.
Tensor clamp(const Tensor& x, const std::same_as<Tensor> auto& min, const std::same_as<Tensor> auto& max) {
  return detail::clamp_between(x, min, max);
}

}  // namespace tern
