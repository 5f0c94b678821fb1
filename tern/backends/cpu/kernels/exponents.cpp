// Scans of operands for their magnitudes.
#include "tern/backends/cpu/kernels/exponents.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "tern/base/parallel.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Calls f(begin, end) for parts of the rows.
template <class F>
void for_each_part(int64_t rows, int64_t columns, const F& f) {
  parallel_for(rows, std::max<int64_t>(1, 65536 / std::max<int64_t>(columns, 1)), f);
}

struct Magnitudes {
  uint16_t least = 0xffff, most = 0;  ///< the least is that above 0, less 1

  void add(const BFloat16* from, int64_t count) {
    constexpr uint16_t kMagnitude = 0x7fff;
    uint16_t lowest = least, highest = most;
    for (int64_t j = 0; j < count; ++j) {
      const uint16_t magnitude = from[j].bits & kMagnitude;
      const uint16_t above_zero = static_cast<uint16_t>(magnitude - 1);  // 0 becomes the largest
      lowest = above_zero < lowest ? above_zero : lowest;
      highest = magnitude > highest ? magnitude : highest;
    }
    least = lowest;
    most = highest;
  }
  void join(std::atomic<uint32_t>& all_least, std::atomic<uint32_t>& all_most) const {
    for (uint32_t before = all_least; least < before && !all_least.compare_exchange_weak(before, least);) {
    }
    for (uint32_t before = all_most; most > before && !all_most.compare_exchange_weak(before, most);) {
    }
  }
};

Exponents exponents(uint32_t least, uint32_t most) {
  constexpr uint32_t kInfinity = 0x7f80;
  return {(int64_t{least} + 1) >> 7, most < kInfinity};
}

}  // namespace

Exponents exponents_of(const BFloat16* from, int64_t rows, int64_t columns, int64_t row_stride) {
  if (row_stride == columns) return exponents_of(from, rows * columns);
  std::atomic<uint32_t> least = 0xffff, most = 0;
  for_each_part(rows, columns, [&](int64_t begin, int64_t end) {
    Magnitudes found;
    for (int64_t i = begin; i < end; ++i) found.add(from + i * row_stride, columns);
    found.join(least, most);
  });
  return exponents(least, most);
}

Exponents exponents_of(const BFloat16* from, int64_t count) {
  std::atomic<uint32_t> least = 0xffff, most = 0;
  for_each_part(count, 1, [&](int64_t begin, int64_t end) {
    Magnitudes found;
    found.add(from + begin, end - begin);
    found.join(least, most);
  });
  return exponents(least, most);
}

bool have_parts(const float* from, int64_t rows, int64_t columns, int64_t row_stride) {
  constexpr uint32_t kMagnitude = 0x7fffffff, kRoundsToInfinity = 0x7f7f8000;
  std::atomic<bool> all = true;
  for_each_part(rows, columns, [&](int64_t begin, int64_t end) {
    uint32_t most = 0;
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < columns; ++j)
        most = std::max(most, std::bit_cast<uint32_t>(from[i * row_stride + j]) & kMagnitude);
    if (most >= kRoundsToInfinity) all = false;
  });
  return all;
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
