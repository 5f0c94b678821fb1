// The inverse sine and cosine, hyperbolic functions and their inverses (but tanh, which is in math.h), and
// two functions of pairs: branch-free forms of float and double that compilers vectorise on a CPU, within 4
// ulp; the tool chain's own on a GPU.
#pragma once

#include <cmath>
#include <limits>

#include "tern/kernels/math.h"
#include "tern/kernels/target.h"

namespace tern::math {

/// (asin(x) - x) / x with z = x^2 up to 1/4: Cephes' coefficients of asinf.c, fdlibm's of e_asin.c.
TERN_FN float asin_near(float z) {
  float p = 4.2163199048e-2f;
  p = p * z + 2.4181311049e-2f;
  p = p * z + 4.5470025998e-2f;
  p = p * z + 7.4953002686e-2f;
  return (p * z + 1.6666752422e-1f) * z;
}
TERN_FN double asin_near(double z) {
  double p = 3.47933107596021167570e-05;
  p = p * z + 7.91534994289814532176e-04;
  p = p * z - 4.00555345006794114027e-02;
  p = p * z + 2.01212532134862925881e-01;
  p = p * z - 3.25565818622400915405e-01;
  p = p * z + 1.66666666666666657415e-01;
  double q = 7.70381505559019352791e-02;
  q = q * z - 6.88283971605453293030e-01;
  q = q * z + 2.02094576023350569471e+00;
  q = q * z - 2.40339491173441421878e+00;
  return p * z / (q * z + 1.0);
}
/// asin(ax) up to 1/2, and beyond half the angle that is left to a right one; NaN for ax > 1.
template <class T>
TERN_FN T asin_or_half_rest(T ax, bool far) {
  const T left = T(0.5) * (T(1) - ax), z = far ? left : ax * ax;
  // A sum, since compilers would move a root that is chosen into a branch.
  const T s = std::sqrt(far ? left : T(0)) + (far ? T(0) : ax);
  return s + s * asin_near(z);
}
/// Half a right angle, and what its double is rounded by.
template <class T>
inline constexpr T kQuarter = static_cast<T>(0.78539816339744830962);
template <class T>
inline constexpr T kQuarterRest = sizeof(T) == 4 ? T(-2.18556941e-8) : T(3.061616997868382943065e-17);

/// NaN outside of [-1, 1].
template <class T>
TERN_FN T asin(T x) {
#if defined(__CUDA_ARCH__)
  return std::asin(x);
#else
  const T ax = std::abs(x);
  const bool far = ax > T(0.5);
  const T angle = asin_or_half_rest(ax, far);
  return std::copysign(far ? T(2) * ((kQuarter<T> - angle) + kQuarterRest<T>) : angle, x);
#endif
}
template <class T>
TERN_FN T acos(T x) {
#if defined(__CUDA_ARCH__)
  return std::acos(x);
#else
  const T ax = std::abs(x);
  const bool far = ax > T(0.5);
  const T angle = asin_or_half_rest(ax, far);
  const T signed_angle = std::copysign(angle, x);
  const T above = T(2) * angle, below = T(4) * kQuarter<T> - (above - T(4) * kQuarterRest<T>);
  const T near = T(2) * kQuarter<T> - (signed_angle - T(2) * kQuarterRest<T>);
  return far ? (x < T(0) ? below : above) : near;
#endif
}

/// (sinh(x) - x) / x with z = x^2 up to 1: Cephes' coefficients of sinhf.c, the Taylor series.
TERN_FN float sinh_near(float z) {
  float p = 2.03721912945e-4f;
  p = p * z + 8.33028376239e-3f;
  return (p * z + 1.66667160211e-1f) * z;
}
TERN_FN double sinh_near(double z) {
  double p = 1.0 / 355687428096000.0;
  p = p * z + 1.0 / 1307674368000.0;
  p = p * z + 1.0 / 6227020800.0;
  p = p * z + 1.0 / 39916800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z + 1.0 / 5040.0;
  p = p * z + 1.0 / 120.0;
  return (p * z + 1.0 / 6.0) * z;
}
template <class T>
TERN_FN T sinh(T x) {
#if defined(__CUDA_ARCH__)
  return std::sinh(x);
#else
  const T ax = std::abs(x), half = half_exp(ax);
  return std::copysign(ax > T(1) ? half - T(0.25) / half : ax + ax * sinh_near(ax * ax), x);
#endif
}
template <class T>
TERN_FN T cosh(T x) {
#if defined(__CUDA_ARCH__)
  return std::cosh(x);
#else
  const T half = half_exp(std::abs(x));
  return x != x ? x : half + T(0.25) / half;
#endif
}

/// Beyond this number it and its successor, and their squares, are the same in logarithms.
template <class T>
inline constexpr T kAreaLimit = T(1e18);

template <class T>
TERN_FN T asinh(T x) {
#if defined(__CUDA_ARCH__)
  return std::asinh(x);
#else
  const T ax = std::abs(x), z = ax * ax;
  const bool far = ax > kAreaLimit<T>;
  const T area = log1p(far ? ax : ax + z / (T(1) + std::sqrt(T(1) + z)));
  return std::copysign(area + (far ? T(0.69314718055994530942) : T(0)), x);
#endif
}
/// NaN below 1.
template <class T>
TERN_FN T acosh(T x) {
#if defined(__CUDA_ARCH__)
  return std::acosh(x);
#else
  const T t = x - T(1);
  const bool far = x > kAreaLimit<T>;
  const T area = log1p(far ? x : t + std::sqrt(t * (t + T(2))));
  const T result = area + (far ? T(0.69314718055994530942) : T(0));
  return x < T(1) ? std::numeric_limits<T>::quiet_NaN() : result;
#endif
}
/// Infinite at 1 and -1, NaN beyond.
template <class T>
TERN_FN T atanh(T x) {
#if defined(__CUDA_ARCH__)
  return std::atanh(x);
#else
  const T ax = std::abs(x);
  return std::copysign(T(0.5) * log1p(T(2) * ax / (T(1) - ax)), x);
#endif
}

/// The length of (a, b), without overflow on the way; infinite where a or b is, beside NaN too.
template <class T>
TERN_FN T hypot(T a, T b) {
#if defined(__CUDA_ARCH__)
  return std::hypot(a, b);
#else
  constexpr T kInf = std::numeric_limits<T>::infinity();
  const T aa = std::abs(a), ab = std::abs(b);
  const T high = aa > ab ? aa : ab, low = aa > ab ? ab : aa, ratio = low / high;
  T length = high * std::sqrt(T(1) + ratio * ratio);
  length = high == T(0) ? low : length;
  return ((aa == kInf) | (ab == kInf)) ? kInf : length;
#endif
}

/// log(e^(scale a) + e^(scale b)) / scale.
template <class T>
TERN_FN T logaddexp(T a, T b, T scale) {
  const T high = ((a != a) | (a > b)) ? a : b;
  const T distance = a == b ? T(0) : std::abs(a - b);  // equal infinities have none
  return high + log1p_of_share(exp(-scale * distance)) * (T(1) / scale);
}

}  // namespace tern::math
