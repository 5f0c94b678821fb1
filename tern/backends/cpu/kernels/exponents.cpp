// Scans of operands for their magnitudes.
#include "tern/backends/cpu/kernels/exponents.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>

#include "tern/base/parallel.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Calls f(row) for parts of the rows.
template <class T, class F>
void for_each_row(const T* from, int64_t rows, int64_t columns, int64_t row_stride, const F& f) {
  parallel_for(rows, std::max<int64_t>(1, 65536 / std::max<int64_t>(columns, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) f(from + i * row_stride);
               });
}

template <class T, class Better>
void update(std::atomic<T>& total, T value, Better better) {
  for (T before = total; better(value, before) && !total.compare_exchange_weak(before, value);) {
  }
}

}  // namespace

Exponents exponents_of(const BFloat16* from, int64_t rows, int64_t columns, int64_t row_stride) {
  constexpr uint16_t kMagnitude = 0x7fff, kInfinity = 0x7f80;
  std::atomic<uint16_t> least = 0xffff, most = 0;
  for_each_row(from, rows, columns, row_stride, [&](const BFloat16* row) {
    uint16_t row_least = 0xffff, row_most = 0;
    for (int64_t j = 0; j < columns; ++j) {
      const uint16_t magnitude = row[j].bits & kMagnitude;
      const uint16_t above_zero = static_cast<uint16_t>(magnitude - 1);  // 0 becomes the largest
      row_least = above_zero < row_least ? above_zero : row_least;
      row_most = magnitude > row_most ? magnitude : row_most;
    }
    update(least, row_least, std::less<>());
    update(most, row_most, std::greater<>());
  });
  return {(int64_t{least} + 1) >> 7, most < kInfinity};
}

bool have_parts(const float* from, int64_t rows, int64_t columns, int64_t row_stride) {
  constexpr uint32_t kMagnitude = 0x7fffffff, kRoundsToInfinity = 0x7f7f8000;
  std::atomic<bool> all = true;
  for_each_row(from, rows, columns, row_stride, [&](const float* row) {
    uint32_t largest = 0;
    for (int64_t j = 0; j < columns; ++j)
      largest = std::max(largest, std::bit_cast<uint32_t>(row[j]) & kMagnitude);
    if (largest >= kRoundsToInfinity) all = false;
  });
  return all;
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
