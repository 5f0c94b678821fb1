// Elementary functions for element functors: branch-free float forms that compilers vectorise on a CPU
// (within 2 ulp unless said), the tool chain's own on a GPU. Double forms worth their own are in
// math_double.h, angles in trigonometry.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tern/kernels/math_double.h"
#include "tern/kernels/target.h"

namespace tern::math {

/// e^x as significand * 2^exponent, by Cody-Waite reduction and a degree-6 polynomial; for |x| < 127.
struct ExpParts {
  float significand;
  int32_t exponent;
};
TERN_FN ExpParts exp_parts(float x) {
  float n = x * 1.44269504088896341f + 12582912.0f;  // adding 1.5 * 2^23 rounds to an integer
  int32_t k = static_cast<int32_t>(as_bits(n)) - 0x4b400000;
  n -= 12582912.0f;
  float r = x - n * 0.693145751953125f;
  r -= n * 1.428606765330187e-06f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return {p * r * r + r + 1.0f, k};
}
TERN_FN float power_of_two(int32_t exponent) { return as_float(static_cast<uint32_t>(exponent + 127) << 23); }

/// e^x; overflow to inf, gradual underflow, NaN kept.
TERN_FN float exp(float x) {
#if defined(__CUDA_ARCH__)
  return ::expf(x);
#else
  // To 89 as signed numbers, then to -104 as unsigned ones: compilers make two instructions of that.
  int32_t most = std::min(static_cast<int32_t>(as_bits(x)), static_cast<int32_t>(as_bits(89.0f)));
  ExpParts parts = exp_parts(as_float(std::min(static_cast<uint32_t>(most), as_bits(-104.0f))));
  // 2^k in two factors, so that results below the normal range come out right.
  int32_t half = parts.exponent >> 1;
  float result = parts.significand * power_of_two(half) * power_of_two(parts.exponent - half);
  return x != x ? x : result;
#endif
}

/// e^x for x that is not positive, and 0 below the normal range: numbers there cost a CPU a hundred times
/// more, and -inf leads through them in exp. NaN kept.
TERN_FN float exp_nonpositive(float x) {
#if defined(__CUDA_ARCH__)
  return ::expf(x);
#else
  // 2^-127, which -88 leads to, has the bits of 0.
  ExpParts parts = exp_parts(as_float(std::min(as_bits(x), as_bits(-88.0f))));
  float result = parts.significand * power_of_two(parts.exponent);
  return x != x ? x : result;
#endif
}

/// x as (1 + mantissa) * 2^exponent, with 1 + mantissa from sqrt(1/2) to sqrt(2); for normal positive x.
struct LogParts {
  float mantissa;
  int32_t exponent;
};
TERN_FN LogParts log_parts(float x) {
  uint32_t above = as_bits(x) - 0x3f3504f3u;
  return {as_float(as_bits(x) - (above & 0xff800000u)) - 1.0f, static_cast<int32_t>(above) >> 23};
}
/// The same for any positive finite x, the exponent as a number.
struct LogNumbers {
  float mantissa, exponent;
};
TERN_FN LogNumbers log_parts_of_any(float x) {
  bool tiny = x < 1.17549435e-38f;
  LogParts parts = log_parts(tiny ? x * 8388608.0f : x);
  return {parts.mantissa, static_cast<float>(parts.exponent) - (tiny ? 23.0f : 0.0f)};
}
/// (log(1 + m) - m + m^2 / 2) / m^3.
TERN_FN float log_series(float m) {
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  return p * m + 3.3333331174e-1f;
}
/// log((1 + m) * 2^exponent) + rest.
TERN_FN float log_of(float m, float exponent, float rest) {
  float z = m * m;
  float y = m * z * log_series(m) + exponent * -2.12194440e-4f - 0.5f * z + rest;
  return m + y + exponent * 0.693359375f;
}
/// log(1 + m) * (factor + factor_rest) + whole + rest, where the product with m and m^2 are twice as exact;
/// |whole| is 0 or larger than that product.
TERN_FN float log_of_base(float m, float factor, float factor_rest, float whole, float rest) {
  float z = m * m;
  float y = m * z * log_series(m) - 0.5f * std::fma(m, m, -z) - 0.5f * z;
  float product = m * factor;
  float product_rest = std::fma(m, factor, -product) + m * factor_rest;
  float sum = whole + product;
  return sum + ((product - (sum - whole)) + (product_rest + (y * factor + rest)));
}
/// A logarithm of x where it is positive and finite; -inf at 0, NaN below. Inf and NaN stay.
TERN_FN float log_ends(float x, float logarithm) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  float at_zero = x == 0.0f ? -kInf : std::numeric_limits<float>::quiet_NaN();
  float result = x > 0.0f ? logarithm : at_zero;
  return x < kInf ? result : x;
}

/// Natural logarithm; -inf at 0, NaN below.
TERN_FN float log(float x) {
#if defined(__CUDA_ARCH__)
  return ::logf(x);
#else
  auto [m, e] = log_parts_of_any(x);
  return log_ends(x, log_of(m, e, 0.0f));
#endif
}

/// e^x - 1 without loss near 0, within 4 ulp.
TERN_FN float expm1(float x) {
#if defined(__CUDA_ARCH__)
  return ::expm1f(x);
#else
  float p = 1.9841270e-4f;
  p = p * x + 1.3888889e-3f;
  p = p * x + 8.3333333e-3f;
  p = p * x + 4.1666667e-2f;
  p = p * x + 1.6666667e-1f;
  p = p * x + 0.5f;
  float near = x + x * x * p;
  float ax = x < 0 ? -x : x;
  near = x == 0.0f ? x : near;  // keeps -0
  return ax < 0.35f ? near : exp(x) - 1.0f;
#endif
}

/// log(1 + x) without loss near 0.
TERN_FN float log1p(float x) {
#if defined(__CUDA_ARCH__)
  return ::log1pf(x);
#else
  float u = 1.0f + x;
  LogParts parts = log_parts(u);
  // Between sqrt(1/2) and sqrt(2) x is the mantissa's distance from 1; elsewhere what u lost is added, with 1
  // / u for the slope.
  float lost = x - (u - 1.0f);
  float slope = (1.0f - parts.mantissa + parts.mantissa * parts.mantissa) * power_of_two(-parts.exponent);
  float rest = ((parts.exponent == 0) | (lost == 0.0f)) ? 0.0f : lost * slope;
  float result = log_of(parts.exponent == 0 ? x : parts.mantissa, static_cast<float>(parts.exponent), rest);
  result = x == 0.0f ? x : result;  // keeps -0
  return log_ends(u, result);
#endif
}

/// Exact at powers of two.
TERN_FN float log2(float x) {
#if defined(__CUDA_ARCH__)
  return ::log2f(x);
#else
  auto [m, e] = log_parts_of_any(x);
  return log_ends(x, log_of_base(m, 1.44269502162933349609f, 1.92596299e-8f, e, 0.0f));
#endif
}

/// Exact at powers of ten.
TERN_FN float log10(float x) {
#if defined(__CUDA_ARCH__)
  return ::log10f(x);
#else
  auto [m, e] = log_parts_of_any(x);
  // log10(2) in two parts, the first of which times e is exact.
  return log_ends(x, log_of_base(m, 0.434294492006301879883f, -1.010305e-8f, e * 0.301025390625f,
                                 e * 4.60503898119521e-6f));
#endif
}

/// Below 0.625 a polynomial, above by e^2x; from 9.1 on it is 1.
TERN_FN float tanh(float x) {
#if defined(__CUDA_ARCH__)
  return ::tanhf(x);
#else
  float ax = magnitude(x);
  float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  float near = ax + ax * z * p;
  ExpParts e = exp_parts(2.0f * (ax < 9.1f ? ax : 9.1f));
  float far = 1.0f - 2.0f / (e.significand * power_of_two(e.exponent) + 1.0f);
  return std::copysign(ax >= 0.625f ? far : near, x);
#endif
}

/// e^x / 2 for x from 0 on, which overflows later than e^x.
TERN_FN float half_exp(float x) {
  ExpParts parts = exp_parts(x < 90.0f ? x : 90.0f);
  return 2.0f * (parts.significand * power_of_two(parts.exponent - 2));
}

/// 2^x, exact at whole numbers; fitted.
TERN_FN float exp2(float x) {
#if defined(__CUDA_ARCH__)
  return ::exp2f(x);
#else
  float clipped = x < -151.0f ? -151.0f : x;
  clipped = clipped > 129.0f ? 129.0f : clipped;
  float n = clipped + 12582912.0f;  // adding 1.5 * 2^23 rounds to an integer
  int32_t k = static_cast<int32_t>(as_bits(n)) - 0x4b400000;
  float r = clipped - (n - 12582912.0f);
  float p = 1.53534027e-4f;
  p = p * r + 1.33988750e-3f;
  p = p * r + 9.61843692e-3f;
  p = p * r + 5.55033237e-2f;
  p = p * r + 2.40226477e-1f;
  p = p * r + 6.93147182e-1f;
  int32_t half = k >> 1;  // as in exp
  float result = (p * r + 1.0f) * power_of_two(half) * power_of_two(k - half);
  return x != x ? x : result;
#endif
}

/// Error function: x times a polynomial in x^2 below 0.9, 1 - e^-p(|x|) above, where p is fitted to -log erfc
/// and from 4 on the result is 1.
TERN_FN float erf(float x) {
#if defined(__CUDA_ARCH__)
  return ::erff(x);
#else
  float z = x * x;
  float p = -6.0903426e-4f;
  p = p * z + 5.011958e-3f;
  p = p * z - 2.6778905e-2f;
  p = p * z + 1.1282141e-1f;
  p = p * z - 3.7612525e-1f;
  p = p * z + 1.2837915e-1f;
  float near = x + x * p;
  float ax = x < 0 ? -x : x;
  float t = ax < 4.0f ? ax : 4.0f;
  float q = -2.0252743e-4f;
  q = q * t + 3.1071800e-3f;
  q = q * t - 2.2478977e-2f;
  q = q * t + 1.04448035e-1f;
  q = q * t + 6.366017e-1f;
  q = q * t + 1.1280154f;
  q = q * t + 1.1470289e-4f;
  ExpParts parts = exp_parts(-q);
  float far = 1.0f - parts.significand * power_of_two(parts.exponent);
  far = x < 0 ? -far : far;
  return ax >= 0.9f ? far : near;
#endif
}

/// 1 - erf(x) without loss where that is little, within 6 ulp: e^(-x^2) times a polynomial in
/// 1 / (1 + |x| / 2), fitted.
TERN_FN float erfc(float x) {
#if defined(__CUDA_ARCH__)
  return ::erfcf(x);
#else
  float ax = magnitude(x);
  float a = ax > 10.5f ? 10.5f : ax;  // from there on it is 0
  float t = 1.0f / (1.0f + 0.5f * a);
  float p = -5.86417615e-2f;
  p = p * t + 2.82778472e-1f;
  p = p * t - 4.84057963e-1f;
  p = p * t + 2.75108457e-1f;
  p = p * t - 2.50042155e-2f;
  p = p * t + 2.02166304e-1f;
  p = p * t + 2.43196756e-1f;
  p = p * t + 2.82367319e-1f;
  p = p * t + 2.82086641e-1f;
  float z = a * a;
  ExpParts parts = exp_parts(-z);
  int32_t half = parts.exponent >> 1;  // as in exp
  float tail = p * t * parts.significand * power_of_two(half) * power_of_two(parts.exponent - half);
  tail -= tail * std::fma(a, a, -z);  // what the square was rounded by
  return x < 0.0f ? 2.0f - tail : tail;
#endif
}

/// log(1 + x) for x from 0 to 1, without loss near 0: the series of log((1 + s) / (1 - s)), economized.
TERN_FN float log1p_of_share(float x) {
  float s = x / (2.0f + x);
  float z = s * s;
  float p = 1.84e-1f;
  p = p * z + 2.2222222e-1f;
  p = p * z + 2.8571429e-1f;
  p = p * z + 4.0e-1f;
  p = p * z + 6.6666667e-1f;
  return 2.0f * s + s * z * p;
}
TERN_FN double log1p_of_share(double x) { return log1p(x); }

/// Distribution function and density of the standard normal distribution, within 3e-7; below 0 the function
/// is within 6e-7 * (1 + x^2 / 4) of itself, relatively.
template <class T>
struct Normal {
  T cdf, pdf;
};
/// The tail is e^(-x^2 / 2) times a polynomial in 1 / (1 + 0.35 |x|), fitted.
TERN_FN Normal<float> normal(float x) {
#if defined(__CUDA_ARCH__)
  return {0.5f * (1.0f + ::erff(x * 0.70710678118654752440f)),
          0.39894228040143267794f * ::expf(-0.5f * x * x)};
#else
  float t = 1.0f / (1.0f + 0.35f * magnitude(x));
  float power = x * x * -0.72134752044448170368f;  // of 2
  bool vanishes = power < -126.0f;
  float n = power + 12582912.0f;  // adding 1.5 * 2^23 rounds to an integer
  uint32_t scale = as_bits(n) << 23;
  float r = power - (n - 12582912.0f);
  float e = 1.32764721e-3f;
  e = e * r + 9.67554166e-3f;
  e = e * r + 5.55071328e-2f;
  e = e * r + 2.40221197e-1f;
  e = e * r + 6.93146967e-1f;
  e = e * r + 1.00000007f;
  e = vanishes ? 0.0f : as_float(as_bits(e) + scale);
  float p = 4.63449277e-2f;
  p = p * t - 1.91182809e-1f;
  p = p * t + 2.21639829e-1f;
  p = p * t + 5.46092393e-4f;
  p = p * t + 1.46677611e-1f;
  p = p * t + 1.36140250e-1f;
  p = p * t + 1.39834185e-1f;
  float tail = p * t * e;
  return {x < 0.0f ? tail : 1.0f - tail, 0.39894228040143267794f * e};
#endif
}

/// 1 / (1 + e^-x), within 3 ulp.
TERN_FN float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

/// a - trunc(a / b) * b, exactly, where remainder_is_near(a, b): the quotient is off by one at most.
template <class T>
TERN_FN T remainder_near(T a, T b) {
  T r = std::fma(-std::trunc(a / b), b, a);
  r = (((r < T(0)) != (a < T(0))) & (r != T(0))) ? r + std::copysign(b, a) : r;
  return std::copysign(r, a);
}
/// b is finite and no zero, and a / b has two bits less than a number has.
template <class T>
TERN_FN bool remainder_is_near(T a, T b) {
  constexpr T kQuotient = static_cast<T>(uint64_t{1} << (std::numeric_limits<T>::digits - 2));
  a = a < T(0) ? -a : a;
  b = b < T(0) ? -b : b;
  return (a < b * kQuotient) & (b <= std::numeric_limits<T>::max());
}

/// The function within 2e-16, and below 0 within 1e-15 * (1 + x^2) of itself, relatively.
TERN_FN Normal<double> normal(double x) {
#if defined(__CUDA_ARCH__)
  return {0.5 * (1.0 + ::erf(x * 0.70710678118654752440)), 0.39894228040143267794 * exp(-0.5 * x * x)};
#else
  double ax = x < 0 ? -x : x;
  double z = 0.5 * x * x;
  double e = exp(-z);
  double half = 0.35355339059327376220 * x;
  double near = half + half * erf_near(z);
  double tail = normal_far(ax) * e;
  double far = x < 0 ? tail : 1.0 - tail;
  return {ax >= 1.2 ? far : 0.5 + near, 0.39894228040143267794 * e};
#endif
}
TERN_FN double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

}  // namespace tern::math
