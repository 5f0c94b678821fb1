// Vectors of 64 bytes on every instruction set (the compiler splits them where registers are shorter), so that a
// reduction adds in the same order, and gives the same result, on all of them. The loops over them are in reduce_loops.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/core/dtype.h"

namespace tern::cpu::TERN_CPU_VARIANT::wide {

inline constexpr int kBytes = 64;

template <class C, int bytes = kBytes>
struct VecOf {
  typedef C type __attribute__((vector_size(bytes)));
};
template <class C>
using Vec = typename VecOf<C>::type;

/// Elements of one vector.
template <class C>
inline constexpr int kLanes = kBytes / static_cast<int>(sizeof(C));

template <class C>
[[gnu::always_inline]] inline void splat(Vec<C>& v, C x) {
  v = Vec<C>{} + x;
}

/// v = kLanes<C> elements from p, converted. Signed integers are sign-extended.
template <class C, class T>
[[gnu::always_inline]] inline void load(Vec<C>& v, const T* p) {
  if constexpr (std::is_same_v<C, T>) {
    std::memcpy(&v, p, sizeof v);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    typename VecOf<uint16_t, 32>::type bits;
    std::memcpy(&bits, p, sizeof bits);
    v = (Vec<float>)(__builtin_convertvector(bits, Vec<uint32_t>) << 16);
  } else if constexpr (std::is_same_v<T, Half>) {
#if defined(__AVX512F__)
    v = (Vec<float>)_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__F16C__)
    __m256 halves[2];
    for (int i = 0; i < 2; ++i)
      halves[i] = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8 * i)));
    std::memcpy(&v, halves, sizeof v);
#else
    for (int i = 0; i < kLanes<C>; ++i) v[i] = static_cast<float>(p[i]);
#endif
  } else {
    typename VecOf<T, kLanes<C> * static_cast<int>(sizeof(T))>::type elements;
    std::memcpy(&elements, p, sizeof elements);
    v = __builtin_convertvector(elements, Vec<C>);
  }
}

/// The signed integer as wide as C.
template <class C>
using Mask = std::conditional_t<
    sizeof(C) == 1, int8_t,
    std::conditional_t<sizeof(C) == 2, int16_t, std::conditional_t<sizeof(C) == 4, int32_t, int64_t>>>;

/// The same for `count` < kLanes<C> elements; the lanes after them hold anything. Memory before `limit` may be read.
template <class C, class T>
[[gnu::always_inline]] inline void load_some(Vec<C>& v, const T* p, int64_t count, const T* limit) {
  if (p + kLanes<C> <= limit) {
    load<C>(v, p);
  } else {
    v = Vec<C>{};
    for (int64_t i = 0; i < count; ++i) v[i] = static_cast<C>(static_cast<Compute<T>>(p[i]));
  }
}

/// Lanes from `count` on are taken from `rest`.
template <class C>
[[gnu::always_inline]] inline void keep_some(Vec<C>& v, int64_t count, const Vec<C>& rest) {
  using M = Mask<C>;
  Vec<M> lane, bound;
  for (int i = 0; i < kLanes<C>; ++i) lane[i] = static_cast<M>(i);
  splat(bound, static_cast<M>(count));
  v = lane < bound ? v : rest;
}

/// Elements of a row of T as the compute type; the row itself where that is the same.
template <class T>
[[gnu::always_inline]] inline const Compute<T>* to_compute(const T* p, int64_t n, Compute<T>* buffer) {
  using C = Compute<T>;
  if constexpr (std::is_same_v<C, T>) {
    return p;
  } else {
    int64_t i = 0;
    for (; i + kLanes<C> <= n; i += kLanes<C>) {
      Vec<C> v;
      load<C>(v, p + i);
      std::memcpy(buffer + i, &v, sizeof v);
    }
    for (; i < n; ++i) buffer[i] = static_cast<C>(p[i]);
    return buffer;
  }
}

/// The other way: writes compute values as T.
template <class T>
[[gnu::always_inline]] inline void from_compute(T* to, const Compute<T>* from, int64_t n) {
  if constexpr (std::is_same_v<Compute<T>, T>) {
    if (to != from) std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else {
    int64_t i = 0;
#if defined(__F16C__)
    if constexpr (std::is_same_v<T, Half>)
      for (; i + 8 <= n; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; ++i) to[i] = static_cast<T>(from[i]);
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT::wide
