// Elementary functions for element functors: branch-free float forms that compilers vectorise on a CPU
// (within 2 ulp unless said), the tool chain's own on a GPU and for double.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#if defined(__CUDACC__)
#define TERN_FN __host__ __device__ __forceinline__
#else
#define TERN_FN [[gnu::always_inline]] inline
#endif

namespace tern::math {

TERN_FN float as_float(uint32_t bits) { return std::bit_cast<float>(bits); }
TERN_FN uint32_t as_bits(float x) { return std::bit_cast<uint32_t>(x); }

/// e^x. Cody-Waite reduction and a degree-6 polynomial; overflow to inf, gradual underflow, NaN kept.
TERN_FN float exp(float x) {
#if defined(__CUDA_ARCH__)
  return ::expf(x);
#else
  float clipped = x < -104.0f ? -104.0f : x;
  clipped = clipped > 89.0f ? 89.0f : clipped;
  float n = clipped * 1.44269504088896341f + 12582912.0f;  // adding 1.5 * 2^23 rounds to an integer
  int32_t k = static_cast<int32_t>(as_bits(n)) - 0x4b400000;
  n -= 12582912.0f;
  float r = clipped - n * 0.693145751953125f;
  r -= n * 1.428606765330187e-06f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // 2^k in two factors, so that results below the normal range come out right.
  int32_t half = k >> 1;
  float low = as_float(static_cast<uint32_t>(half + 127) << 23);
  float high = as_float(static_cast<uint32_t>(k - half + 127) << 23);
  float result = p * low * high;
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

/// Error function, within 3 ulp (a rational form below 1, 1 - erfc above; W. J. Cody's and Cephes'
/// coefficients).
TERN_FN float erf(float x) {
#if defined(__CUDA_ARCH__)
  return ::erff(x);
#else
  float z = x * x;
  float p = 7.853861353153693e-5f;
  p = p * z - 8.010193625184903e-4f;
  p = p * z + 5.188327685732524e-3f;
  p = p * z - 2.685381193529856e-2f;
  p = p * z + 1.128358514861418e-1f;
  p = p * z - 3.761262582423300e-1f;
  p = p * z + 1.128379165726710f;
  float near = x * p;
  float ax = x < 0 ? -x : x;
  // erfc on [1, inf): e^(-x^2) times a polynomial in t = 1 / (1 + x/2) (Numerical Recipes' Chebyshev fit).
  float t = 1.0f / (1.0f + 0.5f * ax);
  float q = 0.17087277f;
  q = q * t - 0.82215223f;
  q = q * t + 1.48851587f;
  q = q * t - 1.13520398f;
  q = q * t + 0.27886807f;
  q = q * t - 0.18628806f;
  q = q * t + 0.09678418f;
  q = q * t + 0.37409196f;
  q = q * t + 1.00002368f;
  q = q * t - 1.26551223f;
  float far = 1.0f - t * exp(q - z);
  far = x < 0 ? -far : far;
  float result = ax < 1.0f ? near : far;
  return x != x ? x : result;
#endif
}

/// 1 / (1 + e^-x), within 3 ulp.
TERN_FN float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

TERN_FN double exp(double x) { return ::exp(x); }
TERN_FN double log(double x) { return ::log(x); }
TERN_FN double expm1(double x) { return ::expm1(x); }
TERN_FN double log1p(double x) { return ::log1p(x); }
TERN_FN double tanh(double x) { return ::tanh(x); }
TERN_FN double erf(double x) { return ::erf(x); }
TERN_FN double sigmoid(double x) { return 1.0 / (1.0 + ::exp(-x)); }

TERN_FN float pow(float x, float y) { return ::powf(x, y); }
TERN_FN double pow(double x, double y) { return ::pow(x, y); }

}  // namespace tern::math
