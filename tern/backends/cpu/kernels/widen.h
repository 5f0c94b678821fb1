// The type in which an element is computed with, and rows of the 16-bit floats as rows of float and back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "tern/backends/cpu/kernels/vector_bytes.h"
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

/// Elements that fit one vector register as numbers of 32 bits, or two of the narrowest.
inline constexpr int64_t kWideLanes = std::max(8, kVectorBytes / 4);

#if defined(__AVX512F__)
// The forms with a mask: of the others GCC 12 says that they use what is not initialized.
[[gnu::always_inline]] inline __m512 widen_half(__m256i bits) { return _mm512_maskz_cvtph_ps(0xffff, bits); }
/// Bits go to the upper halves of the numbers by one permutation, and back by another.
[[gnu::always_inline]] inline __m512 widen_bfloat16(__m256i bits) {
  const __m512i from = _mm512_maskz_slli_epi32(
      0xffff, _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), 16);
  const __m512i wide = _mm512_maskz_inserti64x4(0xff, _mm512_setzero_si512(), bits, 0);
  return _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, from, wide));
}
[[gnu::always_inline]] inline __m256i narrow_half(__m512 x) {
  return _mm512_maskz_cvtps_ph(0xffff, x, _MM_FROUND_TO_NEAREST_INT);
}
/// As detail::float_to_bfloat16_bits.
[[gnu::always_inline]] inline __m256i narrow_bfloat16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x),
                upper = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 31, 29,
                                         27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  const __m512i half = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
  const __m512i up = _mm512_mask_add_epi32(half, odd, half, _mm512_set1_epi32(1));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i rounded = _mm512_mask_mov_epi32(up, nan, _mm512_set1_epi32(0x7fc00000));
  return _mm512_maskz_extracti64x4_epi64(0xff, _mm512_maskz_permutexvar_epi16(0xffffffff, upper, rounded), 0);
}
#elif defined(__AVX2__)
[[gnu::always_inline]] inline __m256 widen_half(__m128i bits) { return _mm256_cvtph_ps(bits); }
[[gnu::always_inline]] inline __m256 widen_bfloat16(__m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
[[gnu::always_inline]] inline __m128i narrow_half(__m256 x) {
  return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}
/// As detail::float_to_bfloat16_bits.
[[gnu::always_inline]] inline __m128i narrow_bfloat16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x), upper = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i number = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_ORD_Q));
  const __m256i rounded = _mm256_blendv_epi8(_mm256_set1_epi32(0x7fc0), _mm256_srli_epi32(up, 16), number);
  return _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
}
#endif

/// kWideLanes elements as numbers of the compute type. Where `to` is a local array the compiler keeps it in a
/// register.
template <class T>
[[gnu::always_inline]] inline void widen_lanes(Compute<T>* to, const T* from) {
#if defined(__AVX2__)
  if constexpr (kWidened<T>) {
#if defined(__AVX512F__)
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
#else
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
#endif
    const auto wide = std::is_same_v<T, Half> ? widen_half(bits) : widen_bfloat16(bits);
    std::memcpy(to, &wide, sizeof wide);
    return;
  }
#endif
  for (int64_t i = 0; i < kWideLanes; ++i) to[i] = static_cast<Compute<T>>(from[i]);
}

/// The other way: numbers of the compute type as kWideLanes elements.
template <class T>
[[gnu::always_inline]] inline void narrow_lanes(T* to, const Compute<T>* from) {
#if defined(__AVX2__)
  if constexpr (kWidened<T>) {
#if defined(__AVX512F__)
    const __m512 wide = _mm512_loadu_ps(from);
#else
    const __m256 wide = _mm256_loadu_ps(from);
#endif
    const auto bits = std::is_same_v<T, Half> ? narrow_half(wide) : narrow_bfloat16(wide);
    std::memcpy(to, &bits, sizeof bits);
    return;
  }
#endif
  for (int64_t i = 0; i < kWideLanes; ++i) to[i] = static_cast<T>(from[i]);
}

/// kWideLanes elements, of which `count` are those at `from` and the others 0.
template <class T>
struct PaddedLanes {
  T data[kWideLanes] = {};
  PaddedLanes(const T* from, int64_t count) {
    std::memcpy(static_cast<void*>(data), from, static_cast<size_t>(count) * sizeof(T));
  }
};

template <class T>
[[gnu::noinline]] void widen_row(float* to, const T* from, int64_t n) {
  int64_t i = 0;
  for (; i + kWideLanes <= n; i += kWideLanes) widen_lanes(to + i, from + i);
  for (; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

template <class T>
[[gnu::noinline]] void narrow_row(T* to, const float* from, int64_t n) {
  int64_t i = 0;
  for (; i + kWideLanes <= n; i += kWideLanes) narrow_lanes(to + i, from + i);
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
