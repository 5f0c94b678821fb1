// The type in which an element is computed with, and rows of the 16-bit floats as rows of float and back.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "tern/core/dtype.h"

namespace tern::cpu::TERN_CPU_VARIANT {

template <class T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<Half> {
  using type = float;
};
template <>
struct ComputeOf<BFloat16> {
  using type = float;
};
template <class T>
using Compute = typename ComputeOf<T>::type;
template <class T>
inline constexpr bool kWidened = !std::is_same_v<Compute<T>, T>;

/// Elements that loops over 16-bit floats widen at a time.
inline constexpr int64_t kWideTile = 512;

template <class T>
[[gnu::noinline]] void widen_row(float* to, const T* from, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, Half>)
    for (; i + 16 <= n; i += 16)
      _mm512_storeu_ps(to + i, _mm512_maskz_cvtph_ps(
                                   0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i))));
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, Half>)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
#endif
  for (; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

template <class T>
[[gnu::noinline]] void narrow_row(T* to, const float* from, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, Half>)
    for (; i + 16 <= n; i += 16)
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(to + i),
          _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, Half>)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i) to[i] = static_cast<T>(from[i]);
}

/// Elements of a row of T as the compute type; the row itself where that is the same.
template <class T>
[[gnu::always_inline]] inline const Compute<T>* to_compute(const T* p, int64_t n, Compute<T>* buffer) {
  if constexpr (kWidened<T>) {
    widen_row(buffer, p, n);
    return buffer;
  } else {
    return p;
  }
}

/// The other way: writes compute values as T.
template <class T>
[[gnu::always_inline]] inline void from_compute(T* to, const Compute<T>* from, int64_t n) {
  if constexpr (kWidened<T>)
    narrow_row(to, from, n);
  else if (to != from)
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
