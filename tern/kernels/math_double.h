// e^x, the logarithm, the error function and powers in double, branch-free so that compilers vectorise them.
// The float forms are in math.h.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tern/kernels/target.h"

namespace tern::math {

/// The last seven terms of the series of e^r - 1, after those of higher degree in `p`.
TERN_FN double expm1_series(double p, double r) {
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  return p * r * r + r;
}
/// e^r - 1 for little r: the Taylor series to degree 13.
TERN_FN double expm1_near(double r) {
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  return expm1_series(p, r);
}
/// e^(x - n log 2) - 1, where that is little, by Cody-Waite reduction.
TERN_FN double expm1_of_rest(double x, double n) {
  double r = x - n * 6.93147180369123816490e-01;
  r -= n * 1.90821492927058770002e-10;
  return expm1_near(r);
}
/// x * 2^k in two factors, so that results below the normal range come out right.
TERN_FN double times_power(double x, int64_t k) {
  int64_t half = (k + 2048) / 2 - 1024;
  double low = std::bit_cast<double>(static_cast<uint64_t>(half + 1023) << 52);
  double high = std::bit_cast<double>(static_cast<uint64_t>(k - half + 1023) << 52);
  return x * low * high;
}
/// The five terms of lowest degree but one of log((1 + s) / (1 - s)) / s, z = s^2, after those of higher
/// degree in `p`.
TERN_FN double log_series(double p, double z) {
  p = p * z + 2.0 / 11.0;
  p = p * z + 2.0 / 9.0;
  p = p * z + 2.0 / 7.0;
  p = p * z + 2.0 / 5.0;
  return p * z + 2.0 / 3.0;
}

/// e^x within 1 ulp; overflow to inf, gradual underflow, NaN kept.
TERN_FN double exp(double x) {
#if defined(__CUDA_ARCH__)
  return ::exp(x);
#else
  double clipped = x < -750.0 ? -750.0 : x;
  clipped = clipped > 710.0 ? 710.0 : clipped;
  double n = clipped * 1.44269504088896340736 + 6755399441055744.0;  // adding 1.5 * 2^52 rounds to an integer
  int64_t k = std::bit_cast<int64_t>(n) - 0x4338000000000000;
  double result = times_power(expm1_of_rest(clipped, n - 6755399441055744.0) + 1.0, k);
  return x != x ? x : result;
#endif
}

/// As the float form (math.h).
TERN_FN double exp_nonpositive(double x) {
#if defined(__CUDA_ARCH__)
  return ::exp(x);
#else
  double clipped = x < -709.0 ? -709.0 : x;
  double n = clipped * 1.44269504088896340736 + 6755399441055744.0;  // as in exp
  int64_t k = std::bit_cast<int64_t>(n) - 0x4338000000000000;
  double power = std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52);
  return (expm1_of_rest(clipped, n - 6755399441055744.0) + 1.0) * power;
#endif
}

/// e^x / 2 for x from 0 on, which overflows later than e^x.
TERN_FN double half_exp(double x) {
  double clipped = x < 711.0 ? x : 711.0;
  double n = clipped * 1.44269504088896340736 + 6755399441055744.0;  // as in exp
  int64_t k = std::bit_cast<int64_t>(n) - 0x4338000000000000;
  return times_power(expm1_of_rest(clipped, n - 6755399441055744.0) + 1.0, k - 1);
}

/// 2^x within 1 ulp, exact at whole numbers.
TERN_FN double exp2(double x) {
#if defined(__CUDA_ARCH__)
  return ::exp2(x);
#else
  double clipped = x < -1080.0 ? -1080.0 : x;
  clipped = clipped > 1025.0 ? 1025.0 : clipped;
  double n = clipped + 6755399441055744.0;  // adding 1.5 * 2^52 rounds to an integer
  int64_t k = std::bit_cast<int64_t>(n) - 0x4338000000000000;
  double r = (clipped - (n - 6755399441055744.0)) * 0.69314718055994530942;
  double result = times_power(expm1_near(r) + 1.0, k);
  return x != x ? x : result;
#endif
}

/// e^x - 1 within 2 ulp.
TERN_FN double expm1(double x) {
#if defined(__CUDA_ARCH__)
  return ::expm1(x);
#else
  double clipped = x < -40.0 ? -40.0 : x;  // from there on it is -1
  clipped = clipped > 710.0 ? 710.0 : clipped;
  double n = clipped * 1.44269504088896340736 + 6755399441055744.0;  // as in exp
  int64_t k = std::bit_cast<int64_t>(n) - 0x4338000000000000;
  double p = expm1_of_rest(clipped, n - 6755399441055744.0);
  double half =
      std::bit_cast<double>(static_cast<uint64_t>(k + 1022) << 52);  // 2^(k - 1), which never overflows
  double result = k == 0 ? p : 2.0 * (half * p + (half - 0.5));
  return ((x != x) | (x == 0.0)) ? x : result;  // keeps -0
#endif
}

/// A positive number as (1 + f) * 2^e, with 1 + f in [sqrt(1/2), sqrt(2)).
struct LogPartsDouble {
  double f, e;
};
TERN_FN LogPartsDouble log_parts(double x) {
  bool tiny = x < 2.2250738585072014e-308;
  uint64_t bits = std::bit_cast<uint64_t>(tiny ? x * 18014398509481984.0 : x);  // 2^54
  uint64_t above = bits - 0x3fe6a09e667f3bcd;
  double e = static_cast<double>(static_cast<int32_t>(above >> 32) >> 20) - (tiny ? 54.0 : 0.0);
  return {std::bit_cast<double>(bits - (above & 0xfff0000000000000)) - 1.0, e};
}
/// log(1 + f) = f - log_defect(f, rest) where `rest` is added besides. The series of log((1 + s) / (1 - s)),
/// arranged as in fdlibm's e_log.c.
TERN_FN double log_defect(double f, double rest) {
  double s = f / (2.0 + f);
  double z = s * s;
  double p = 2.0 / 23.0;
  p = p * z + 2.0 / 21.0;
  p = p * z + 2.0 / 19.0;
  p = p * z + 2.0 / 17.0;
  p = p * z + 2.0 / 15.0;
  p = p * z + 2.0 / 13.0;
  p = log_series(p, z);
  p *= z;
  double half_square = 0.5 * f * f;
  return half_square - (s * (half_square + p) + rest);
}
/// As the float form (math.h).
TERN_FN double log_ends(double x, double logarithm) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  double at_zero = x == 0.0 ? -kInf : std::numeric_limits<double>::quiet_NaN();
  double result = x > 0.0 ? logarithm : at_zero;
  return x < kInf ? result : x;
}

/// Natural logarithm within 1 ulp; -inf at 0, NaN below.
TERN_FN double log(double x) {
#if defined(__CUDA_ARCH__)
  return ::log(x);
#else
  auto [f, e] = log_parts(x);
  return log_ends(x, e * 6.93147180369123816490e-01 - (log_defect(f, e * 1.90821492927058770002e-10) - f));
#endif
}

/// log(1 + x) within 2 ulp, near 0 too.
TERN_FN double log1p(double x) {
#if defined(__CUDA_ARCH__)
  return ::log1p(x);
#else
  double u = 1.0 + x;
  auto [mantissa, e] = log_parts(u);
  bool near = e == 0.0;
  double f = near ? x : mantissa;
  double lost = near ? 0.0 : (x - (u - 1.0)) / u;  // what the sum was rounded by
  double result = e * 6.93147180369123816490e-01 - (log_defect(f, e * 1.90821492927058770002e-10 + lost) - f);
  return x == 0.0 ? x : log_ends(u, result);  // keeps -0
#endif
}

/// Within 2 ulp, and exact at powers of two.
TERN_FN double log2(double x) {
#if defined(__CUDA_ARCH__)
  return ::log2(x);
#else
  auto [f, e] = log_parts(x);
  double rest = f - log_defect(f, 0.0);
  return log_ends(x, e + (rest * 1.44269504088896338700 + rest * 2.0355273740931033e-17));
#endif
}

/// Within 2 ulp, and exact at powers of ten.
TERN_FN double log10(double x) {
#if defined(__CUDA_ARCH__)
  return ::log10(x);
#else
  auto [f, e] = log_parts(x);
  double rest = f - log_defect(f, 0.0);
  // log10(2) in two parts, the first of which times e is exact.
  return log_ends(x, e * 3.01029995663611771306e-01 +
                         (e * 3.69423907715893078616e-13 + rest * 4.34294481903251816668e-01));
#endif
}

/// Hyperbolic tangent within 2 ulp: below 0.625 a quotient of polynomials, as in Cephes' tanh.c.
TERN_FN double tanh(double x) {
#if defined(__CUDA_ARCH__)
  return ::tanh(x);
#else
  double ax = x < 0 ? -x : x;
  double z = x * x;
  double p = -9.64399179425052238628e-1;
  p = p * z - 9.92877231001918586564e1;
  p = p * z - 1.61468768441708447952e3;
  double q = z + 1.12811678491632931402e2;
  q = q * z + 2.23548839060100448583e3;
  q = q * z + 4.84406305325125486048e3;
  bool near = ax < 0.625;
  double quotient = (near ? p : -2.0) / (near ? q : exp(2.0 * ax) + 1.0);
  double far = 1.0 + quotient;
  double result = near ? x + x * z * quotient : x < 0 ? -far : far;
  return x == 0.0 ? x : result;  // keeps -0
#endif
}

/// erf(x) = x + x * erf_near(x^2) for |x| < 0.85.
TERN_FN double erf_near(double z) {
  double p = 1.0675693706713948e-08;
  p = p * z - 1.5697115571004142e-07;
  p = p * z + 1.6399123262977372e-06;
  p = p * z - 1.4921921653420798e-05;
  p = p * z + 0.00012055190337021296;
  p = p * z - 0.0008548323506677763;
  p = p * z + 0.00522397757126982;
  p = p * z - 0.026866170640255645;
  p = p * z + 0.11283791670932594;
  p = p * z - 0.3761263890318335;
  return p * z + 0.12837916709551256;
}
/// The integral of the standard normal density from a on is e^(-a^2 / 2) * normal_far(a), for 1.2 <= a < 39;
/// fitted.
TERN_FN double normal_far(double a) {
  double t = 1.0 / (a + 4.0);
  double q = 1.0 - 8.0 * t;
  double p = 2.8927894357311355e-08;
  p = p * q - 2.2800230859676622e-07;
  p = p * q + 1.7420695528294647e-07;
  p = p * q + 1.1244574454417068e-06;
  p = p * q - 6.018458973145202e-07;
  p = p * q - 5.97496103735922e-06;
  p = p * q + 7.169034649990956e-07;
  p = p * q + 3.5159962012293245e-05;
  p = p * q - 1.9100375747351925e-06;
  p = p * q - 0.0002310973716826225;
  p = p * q + 0.00013334470810187336;
  p = p * q + 0.0016308186814091212;
  p = p * q - 0.003479692405133391;
  p = p * q - 0.00754018897790664;
  p = p * q + 0.0603965748925528;
  p = p * q - 0.18652185795939777;
  p = p * q + 0.3871374007421895;
  p = p * q - 0.607896641971894;
  p = p * q + 0.7552851304157515;
  return p * t;
}
/// Error function within 2 ulp.
TERN_FN double erf(double x) {
#if defined(__CUDA_ARCH__)
  return ::erf(x);
#else
  double ax = x < 0 ? -x : x;
  double z = x * x;
  double near = x + x * erf_near(z);
  double far = 1.0 - 2.0 * normal_far(1.41421356237309504880 * ax) * exp(-z);
  far = x < 0 ? -far : far;
  return ax >= 0.85 ? far : near;
#endif
}

/// 1 - erf(x) without loss where that is little, within 8 ulp.
TERN_FN double erfc(double x) {
#if defined(__CUDA_ARCH__)
  return ::erfc(x);
#else
  double near = 1.0 - (x + x * erf_near(x * x));
  double ax = x < 0 ? -x : x;
  double a = ax < 27.3 ? ax : 27.3;  // from there on it is 0
  double z = a * a;
  double tail = 2.0 * normal_far(1.41421356237309504880 * a) * exp(-z);
  tail -= tail * std::fma(a, a, -z);  // what the square was rounded by
  return ax >= 0.85 ? (x < 0 ? 2.0 - tail : tail) : near;
#endif
}

/// Natural logarithm of a positive float, within 3e-12 of itself.
TERN_FN double log_wide(float x) {
  uint64_t bits = std::bit_cast<uint64_t>(static_cast<double>(x));
  uint64_t above = bits - 0x3fe6a09e667f3bcd;  // mantissa in [sqrt(1/2), sqrt(2))
  double e = static_cast<double>(static_cast<int32_t>(above >> 32) >> 20);
  double f = std::bit_cast<double>(bits - (above & 0xfff0000000000000)) - 1.0;
  double s = f / (2.0 + f);
  double z = s * s;
  double p = log_series(2.0 / 13.0, z);
  return e * 0.69314718055994530942 + s * (p * z + 2.0);
}

/// e^x for a result that is rounded to float, within 3e-10 of itself; 0 and inf where float has no other.
TERN_FN double exp_wide(double x) {
  double clipped = x < -104.0 ? -104.0 : x;
  clipped = clipped > 89.0 ? 89.0 : clipped;
  double n = clipped * 1.44269504088896340736 + 6755399441055744.0;  // adding 1.5 * 2^52 rounds to an integer
  uint64_t scale = std::bit_cast<uint64_t>(n) << 52;
  double r = clipped - (n - 6755399441055744.0) * 0.69314718055994530942;
  double p = expm1_series(1.0 / 40320.0, r) + 1.0;
  double result = std::bit_cast<double>(std::bit_cast<uint64_t>(p) + scale);
  return x != x ? x : result;
}

/// x^y by way of double; the special values are those of C's pow.
TERN_FN float pow(float x, float y) {
#if defined(__CUDA_ARCH__)
  return ::powf(x, y);
#else
  constexpr double kInf = std::numeric_limits<double>::infinity();
  float ax = magnitude(x);
  double logarithm = ax == 0.0f ? -kInf : ax <= std::numeric_limits<float>::max() ? log_wide(ax) : kInf;
  float power = static_cast<float>(exp_wide(static_cast<double>(y) * logarithm));
  power = ax == 1.0f ? 1.0f : power;  // y may be infinite
  bool whole = std::trunc(y) == y;    // infinities too
  bool odd = whole & (std::trunc(0.5f * y) != 0.5f * y);
  power = (is_negative(x) & odd) ? -power : power;
  power = ((x < 0.0f) & !whole & (ax != std::numeric_limits<float>::infinity()))
              ? std::numeric_limits<float>::quiet_NaN()
              : power;
  power = x != x ? x : power;
  return ((x == 1.0f) | (y == 0.0f)) ? 1.0f : power;
#endif
}
TERN_FN double pow(double x, double y) { return ::pow(x, y); }

}  // namespace tern::math
