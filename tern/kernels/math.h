// Elementary functions for element functors: branch-free float forms that compilers vectorise on a CPU
// (within 2 ulp unless said), the tool chain's own on a GPU. Double forms worth their own are in
// math_double.h, angles in trigonometry.h.
#pragma once

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
  float clipped = x < -104.0f ? -104.0f : x;
  clipped = clipped > 89.0f ? 89.0f : clipped;
  ExpParts parts = exp_parts(clipped);
  // 2^k in two factors, so that results below the normal range come out right.
  int32_t half = parts.exponent >> 1;
  float result = parts.significand * power_of_two(half) * power_of_two(parts.exponent - half);
  return x != x ? x : result;
#endif
}

/// Natural logarithm; -inf at 0, NaN below.
TERN_FN float log(float x) {
#if defined(__CUDA_ARCH__)
  return ::logf(x);
#else
  bool tiny = x < 1.17549435e-38f;
  float scaled = tiny ? x * 8388608.0f : x;
  uint32_t bits = as_bits(scaled);
  int32_t e = static_cast<int32_t>((bits - 0x3f3504f3u) >> 23);  // mantissa in [sqrt(1/2), sqrt(2))
  e = e << 23 >> 23;
  float m = as_float(bits - (static_cast<uint32_t>(e) << 23)) - 1.0f;
  float exponent = static_cast<float>(e) - (tiny ? 23.0f : 0.0f);
  float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float y = m * z * p + exponent * -2.12194440e-4f - 0.5f * z;
  float result = m + y + exponent * 0.693359375f;
  result = x == 0.0f ? -std::numeric_limits<float>::infinity() : result;
  result = x < 0.0f || x != x ? std::numeric_limits<float>::quiet_NaN() : result;
  return x == std::numeric_limits<float>::infinity() ? x : result;
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
  float corrected = log(u) - ((u - 1.0f) - x) / u;
  corrected = u == 1.0f ? x : corrected;
  return u == std::numeric_limits<float>::infinity() || u <= 0.0f ? log(u) : corrected;
#endif
}

TERN_FN float tanh(float x) {
#if defined(__CUDA_ARCH__)
  return ::tanhf(x);
#else
  float ax = x < 0 ? -x : x;
  float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  float near = x + x * z * p;
  float e = exp(2.0f * ax);
  float far = 1.0f - 2.0f / (e + 1.0f);
  far = x < 0 ? -far : far;
  near = x == 0.0f ? x : near;  // keeps -0
  return ax < 0.625f ? near : far;
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

/// 1 / (1 + e^-x), within 3 ulp.
TERN_FN float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

TERN_FN double expm1(double x) { return ::expm1(x); }
TERN_FN double log1p(double x) { return ::log1p(x); }
TERN_FN double tanh(double x) { return ::tanh(x); }
TERN_FN double erf(double x) { return ::erf(x); }
TERN_FN double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

}  // namespace tern::math
