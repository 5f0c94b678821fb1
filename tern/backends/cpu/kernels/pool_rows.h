// Windows side by side: a row of input as the windows of a row of results meet it, so that loops run over the
// results.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/kernels/pool.h"

namespace tern::cpu::TERN_CPU_VARIANT {

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

}  // namespace tern::cpu::TERN_CPU_VARIANT
