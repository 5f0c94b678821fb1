// A padded image cut so that every tap of a convolution reads it at a constant distance: phase (i, j) holds
// the rows y and columns x of the padded image with y % stride_h == i and x % stride_w == j. Neighbouring
// outputs then read neighbouring elements, whatever the strides. Outputs are computed along whole rows of a
// phase; those that belong to its right border are left out in the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tern/backends/cpu/kernels/conv_paths.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// The elements of a row from `first` on, zero outside [0, size).
[[gnu::always_inline]] inline Vec<float> load_padded(const float* row, int64_t size, int64_t first) {
  constexpr int64_t L = kLanes<float>;
  if (first >= 0 && first + L <= size) return load(row + first);
  const int64_t skip = std::clamp<int64_t>(-first, 0, L);
  return Tail<float>(std::clamp<int64_t>(size - first, skip, L), skip).load(row + first);
}

/// to[x] = the element x - left of a row, zero outside, for x < w.
inline void copy_padded_row(const float* row, int64_t size, int64_t left, int64_t w, float* to) {
  constexpr int64_t L = kLanes<float>;
  int64_t x = 0;
  for (; x + L <= w; x += L) store(to + x, load_padded(row, size, x - left));
  if (x < w) Tail<float>(w - x).store(to + x, load_padded(row, size, x - left));
}

/// to [h, w] = a plane with `top` rows and `left` columns of zeros before it, cut off or followed by zeros.
inline void copy_padded(const float* plane, int64_t in_h, int64_t in_w, int64_t top, int64_t left, int64_t h,
                        int64_t w, float* to) {
  for (int64_t y = 0; y < h; ++y, to += w) {
    if (y < top || y - top >= in_h)
      std::fill_n(to, w, 0.0f);
    else
      copy_padded_row(plane + (y - top) * in_w, in_w, left, w, to);
  }
}

struct Phases {
  const Correlation& c;
  int64_t h, w;  ///< of one phase

  explicit Phases(const Correlation& correlation)
      : c(correlation),
        h(((c.out_h - 1) * c.stride_h + (c.kernel_h - 1) * c.dilation_h) / c.stride_h + 1),
        w(((c.out_w - 1) * c.stride_w + (c.kernel_w - 1) * c.dilation_w) / c.stride_w + 1) {}

  int64_t size() const { return h * w; }
  int64_t count() const { return c.stride_h * c.stride_w; }
  /// Elements of all phases of one channel.
  int64_t channel_size() const { return count() * size(); }
  /// Outputs in rows of w, up to the last one.
  int64_t columns() const { return (c.out_h - 1) * w + c.out_w; }

  /// The phase that a tap reads.
  int64_t phase_of(int64_t ky, int64_t kx) const {
    return ky * c.dilation_h % c.stride_h * c.stride_w + kx * c.dilation_w % c.stride_w;
  }
  /// The tap's distance from the output's place in that phase.
  int64_t distance(int64_t ky, int64_t kx) const {
    return ky * c.dilation_h / c.stride_h * w + kx * c.dilation_w / c.stride_w;
  }
  /// The same from the first phase of the channel.
  int64_t offset(int64_t ky, int64_t kx) const { return phase_of(ky, kx) * size() + distance(ky, kx); }

  /// One channel of an image to its phases.
  template <class T>
  void copy_channel(const T* plane, T* to) const {
    for (int64_t i = 0; i < c.stride_h; ++i, to += c.stride_w * size()) {
      for (int64_t y = 0; y < h; ++y) {
        const int64_t in_y = y * c.stride_h + i - c.pad_h;
        T* out = to + y * w;
        if (in_y < 0 || in_y >= c.in_h)
          for (int64_t j = 0; j < c.stride_w; ++j) std::fill_n(out + j * size(), w, T(0.0f));
        else
          copy_row(plane + in_y * c.in_w, out);
      }
    }
  }

  /// The elements [begin, end) of a row of a phase are pixels of the image: x is pixel x * stride_w + first.
  struct Inside {
    int64_t begin, end, first;
  };
  /// Of a phase with columns x % stride_w == j.
  Inside inside(int64_t j) const {
    const int64_t first = j - c.pad_w, s = c.stride_w;
    const int64_t begin = std::clamp<int64_t>(first < 0 ? (-first + s - 1) / s : 0, 0, w);
    const int64_t end = first >= c.in_w ? begin : std::clamp<int64_t>((c.in_w - 1 - first) / s + 1, begin, w);
    return {begin, end, first};
  }

 private:
  void copy_row(const float* row, float* to) const {
    if (c.stride_w == 1)
      copy_padded_row(row, c.in_w, c.pad_w, w, to);
    else if (c.stride_w == 2)
      copy_even_and_odd(row, to);
    else
      copy_each(row, to);
  }
  template <class T>
  void copy_row(const T* row, T* to) const {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 2)
      if (c.stride_w == 2) return copy_halves_of_words(row, to);
#endif
    if (c.stride_w > 1) return copy_each(row, to);
    const Inside in = inside(0);
    std::fill_n(to, in.begin, T(0.0f));
    std::copy(row + in.begin + in.first, row + in.end + in.first, to + in.begin);
    std::fill(to + in.end, to + w, T(0.0f));
  }

#if defined(__AVX512F__)
  /// The same as copy_even_and_odd, for elements of 16 bits.
  void copy_halves_of_words(const void* from, void* to) const {
    const uint16_t* row = static_cast<const uint16_t*>(from);
    uint16_t *even = static_cast<uint16_t*>(to), *odd = even + size();
    for (int64_t x = 0; x < w; x += 16) {
      const int64_t first = 2 * x - c.pad_w, begin = std::clamp<int64_t>(-first, 0, 32),
                    end = std::clamp<int64_t>(c.in_w - first, begin, 32);
      const __mmask32 inside = static_cast<__mmask32>((uint64_t{1} << end) - (uint64_t{1} << begin));
      const __mmask16 columns = static_cast<__mmask16>((1u << std::min<int64_t>(w - x, 16)) - 1);
      const __m512i words = _mm512_maskz_loadu_epi16(inside, row + first);
      _mm512_mask_cvtepi32_storeu_epi16(even + x, columns, words);
      _mm512_mask_cvtepi32_storeu_epi16(odd + x, columns, _mm512_maskz_srli_epi32(0xffff, words, 16));
    }
  }
#endif
  /// A padded row's even columns to `to`, the odd ones to the next phase.
  void copy_even_and_odd(const float* row, float* to) const {
    constexpr int64_t L = kLanes<float>;
    for (int64_t x = 0; x < w; x += L) {
      Vec<float> even = load_padded(row, c.in_w, 2 * x - c.pad_w),
                 odd = load_padded(row, c.in_w, 2 * x + L - c.pad_w);
      separate(even, odd, std::make_integer_sequence<int, L>());
      if (w - x >= L) {
        store(to + x, even);
        store(to + size() + x, odd);
      } else {
        const Tail<float> tail(w - x);
        tail.store(to + x, even);
        tail.store(to + size() + x, odd);
      }
    }
  }
  template <int... lane>
  static void separate(Vec<float>& a, Vec<float>& b, std::integer_sequence<int, lane...>) {
    const Vec<float> even = __builtin_shufflevector(a, b, (2 * lane)...);
    b = __builtin_shufflevector(a, b, (2 * lane + 1)...);
    a = even;
  }

  /// A padded row to the phases of its columns, one by one.
  template <class T>
  void copy_each(const T* row, T* to) const {
    for (int64_t j = 0; j < c.stride_w; ++j, to += size()) {
      const Inside in = inside(j);
      std::fill_n(to, w, T(0.0f));
      for (int64_t x = in.begin; x < in.end; ++x) to[x] = row[x * c.stride_w + in.first];
    }
  }
};

}  // namespace tern::cpu::TERN_CPU_VARIANT
