// One SIMD register of float or double in the width of the variant: loads, stores and partial forms of both.
// Used by the matrix product and convolution kernels; the microkernels are in gemm_micro.h.
#pragma once

#include <cstdint>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "tern/backends/cpu/kernels/vector_bytes.h"

#if defined(__clang__)
#define TERN_UNROLL _Pragma("unroll")
#else
#define TERN_UNROLL _Pragma("GCC unroll 32")
#endif

namespace tern::cpu::TERN_CPU_VARIANT {

template <class T>
struct VecOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
  typedef T unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
};
template <class T>
using Vec = typename VecOf<T>::type;

/// Elements of one register.
template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
[[gnu::always_inline]] inline Vec<T> load(const T* p) {
  return *reinterpret_cast<const typename VecOf<T>::unaligned*>(p);
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, Vec<T> v) {
  *reinterpret_cast<typename VecOf<T>::unaligned*>(p) = v;
}

template <class T>
[[gnu::always_inline]] inline Vec<T> splat(T x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm512_set1_ps(x);
  else
    return (Vec<T>)_mm512_set1_pd(x);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm256_set1_ps(x);
  else
    return (Vec<T>)_mm256_set1_pd(x);
#else
  Vec<T> v;
  for (int i = 0; i < kLanes<T>; ++i) v[i] = x;
  return v;
#endif
}

/// max(v, 0); NaN stays NaN.
template <class T>
[[gnu::always_inline]] inline Vec<T> relu(Vec<T> v) {
  return v < Vec<T>{} ? Vec<T>{} : v;
}

/// The first `count` lanes of a register, 0 <= count <= kLanes; load() leaves out the first `skip` ones of
/// them. What the other lanes would read or write is not touched.
template <class T>
class Tail {
 public:
#if defined(__AVX512F__)
  [[gnu::always_inline]] explicit Tail(int64_t count, int64_t skip = 0)
      : mask_((1u << count) - (1u << skip)) {}
  [[gnu::always_inline]] Vec<T> load(const T* p) const {
    if constexpr (sizeof(T) == 4)
      return (Vec<T>)_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask_), p);
    else
      return (Vec<T>)_mm512_maskz_loadu_pd(static_cast<__mmask8>(mask_), p);
  }
  [[gnu::always_inline]] void store(T* p, Vec<T> v) const {
    if constexpr (sizeof(T) == 4)
      _mm512_mask_storeu_ps(p, static_cast<__mmask16>(mask_), (__m512)v);
    else
      _mm512_mask_storeu_pd(p, static_cast<__mmask8>(mask_), (__m512d)v);
  }

 private:
  uint32_t mask_;
#elif defined(__AVX2__)
  [[gnu::always_inline]] explicit Tail(int64_t count, int64_t skip = 0) : count_(count) {
    if constexpr (sizeof(T) == 4) {
      const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
      mask_ = _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(skip)), lane),
                                  _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane));
    } else {
      const __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
      mask_ = _mm256_andnot_si256(_mm256_cmpgt_epi64(_mm256_set1_epi64x(skip), lane),
                                  _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), lane));
    }
  }
  [[gnu::always_inline]] Vec<T> load(const T* p) const {
    if constexpr (sizeof(T) == 4)
      return (Vec<T>)_mm256_maskload_ps(p, mask_);
    else
      return (Vec<T>)_mm256_maskload_pd(p, mask_);
  }
  /// In pieces, since some processors take tens of steps for a masked store.
  [[gnu::always_inline]] void store(T* p, Vec<T> v) const {
    if (count_ == kLanes<T>) return TERN_CPU_VARIANT::store(p, v);
    typedef T Single __attribute__((may_alias));
    if constexpr (sizeof(T) == 4) {
      __m128 piece = _mm256_castps256_ps128((__m256)v);
      if (count_ & 4) {
        _mm_storeu_ps(p, piece);
        piece = _mm256_extractf128_ps((__m256)v, 1);
        p += 4;
      }
      if (count_ & 2) {
        typedef float Pair __attribute__((vector_size(8), aligned(alignof(float)), may_alias));
        *reinterpret_cast<Pair*>(p) = __builtin_shufflevector(piece, piece, 0, 1);
        piece = _mm_movehl_ps(piece, piece);
        p += 2;
      }
      if (count_ & 1) *reinterpret_cast<Single*>(p) = piece[0];
    } else {
      __m128d piece = _mm256_castpd256_pd128((__m256d)v);
      if (count_ & 2) {
        _mm_storeu_pd(p, piece);
        piece = _mm256_extractf128_pd((__m256d)v, 1);
        p += 2;
      }
      if (count_ & 1) *reinterpret_cast<Single*>(p) = piece[0];
    }
  }

 private:
  int64_t count_;
  __m256i mask_;
#else
  explicit Tail(int64_t count, int64_t skip = 0) : count_(count), skip_(skip) {}
  Vec<T> load(const T* p) const {
    Vec<T> v{};
    for (int64_t i = skip_; i < count_; ++i) v[i] = p[i];
    return v;
  }
  void store(T* p, Vec<T> v) const {
    for (int64_t i = 0; i < count_; ++i) p[i] = v[i];
  }

 private:
  int64_t count_, skip_;
#endif
};

}  // namespace tern::cpu::TERN_CPU_VARIANT
