// Windows side by side: a row of input as the windows of a row of results meet it, so that loops run over the
// results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/kernels/pool.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// Positions first, first + step, ... below last along one dimension.
struct Window {
  int64_t first;
  int64_t last;
};

inline Window clipped_window(int64_t out, int64_t stride, int64_t padding, int64_t dilation, int64_t kernel,
                             int64_t size) {
  int64_t first = out * stride - padding;
  const int64_t last = std::min(first + (kernel - 1) * dilation + 1, size);
  if (first < 0) first += (-first + dilation - 1) / dilation * dilation;
  return {first, last};
}

/// Results in a row below which windows are walked one by one.
inline constexpr int64_t kLeastWindows = 4;

/// The elements that lie `position` after the beginning of each window of a row. Beyond the input they are
/// `padding`.
template <class T>
class WindowRow {
 public:
  using C = Compute<T>;

  WindowRow(const Pool2dShape& s, C padding)
      : size_(s.in_w),
        stride_(s.stride_w),
        before_(s.padding_w),
        padding_(padding),
        length_(s.out_w + (s.kernel_w - 1) * s.dilation_w / s.stride_w),
        values_(length_ * s.stride_w) {}

  void load(const T* row) {
    for (int64_t phase = 0; phase < stride_; ++phase) {
      C* to = values_.get() + phase * length_;
      const auto first_from = [&](int64_t column) {  // the first element of the phase at or after that column
        return std::clamp<int64_t>((column + before_ - phase + stride_ - 1) / stride_, 0, length_);
      };
      const int64_t begin = before_ > phase ? first_from(0) : 0, end = first_from(size_);
      std::fill(to, to + begin, padding_);
      copy(to + begin, row + begin * stride_ + phase - before_, end - begin);
      std::fill(to + end, to + length_, padding_);
    }
  }
  const C* at(int64_t position) const {
    return values_.get() + position % stride_ * length_ + position / stride_;
  }

 private:
  void copy(C* to, const T* from, int64_t n) const {
    if (stride_ == 1)
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<C>(from[i]);
    else if (stride_ == 2)
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<C>(from[2 * i]);
    else
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<C>(from[i * stride_]);
  }

  int64_t size_, stride_, before_;
  C padding_;
  int64_t length_;
  Scratch<C> values_;
};

/// best[j] = the larger of best[j] and v[j], in which case where[j] = first + j * step; NaN is larger than
/// all.
template <class C>
void take_larger(C* best, int32_t* where, const C* v, int32_t first, int32_t step, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const bool wins = (v[j] > best[j]) | (v[j] != v[j]);
    best[j] = wins ? v[j] : best[j];
    where[j] = wins ? first + static_cast<int32_t>(j) * step : where[j];
  }
}
template <class C>
void take_larger(C* best, const C* v, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) best[j] = ((v[j] > best[j]) | (v[j] != v[j])) ? v[j] : best[j];
}
template <class C>
void add_to(C* sums, const C* v, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) sums[j] += v[j];
}

/// The maxima of planes, a row of results at a time. Indices fit 32 bits.
template <class T>
class MaxRows {
 public:
  MaxRows(const Pool2dShape& s, bool indices_wanted)
      : s_(s), row_(s, kLowest), values_(s.out_w), numbers_(indices_wanted ? s.out_w : 0) {}

  void run(const T* in, T* out, int64_t* indices) {
    C* best = values_.get();
    int32_t* where = numbers_.get();
    for (int64_t i = 0; i < s_.out_h; ++i, out += s_.out_w) {
      const Window h = clipped_window(i, s_.stride_h, s_.padding_h, s_.dilation_h, s_.kernel_h, s_.in_h);
      std::fill_n(best, s_.out_w, kLowest);
      for (int64_t j = 0; indices != nullptr && j < s_.out_w; ++j) {
        const Window w = clipped_window(j, s_.stride_w, s_.padding_w, s_.dilation_w, s_.kernel_w, s_.in_w);
        where[j] =
            h.first < h.last && w.first < w.last ? static_cast<int32_t>(h.first * s_.in_w + w.first) : 0;
      }
      for (int64_t y = h.first; y < h.last; y += s_.dilation_h) {
        row_.load(in + y * s_.in_w);
        for (int64_t k = 0, x = 0; k < s_.kernel_w; ++k, x += s_.dilation_w) {
          if (indices != nullptr)
            take_larger(best, where, row_.at(x), static_cast<int32_t>(y * s_.in_w + x - s_.padding_w),
                        static_cast<int32_t>(s_.stride_w), s_.out_w);
          else
            take_larger(best, row_.at(x), s_.out_w);
        }
      }
      for (int64_t j = 0; j < s_.out_w; ++j) out[j] = static_cast<T>(best[j]);
      if (indices != nullptr) indices = std::copy_n(where, s_.out_w, indices);
    }
  }

 private:
  using C = Compute<T>;
  static constexpr C kLowest = std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                                                    : std::numeric_limits<C>::lowest();
  const Pool2dShape& s_;
  WindowRow<T> row_;
  Scratch<C> values_;
  Scratch<int32_t> numbers_;
};

}  // namespace tern::cpu::TERN_CPU_VARIANT
