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

/// The least magnitude above 0, less 1.
uint16_t least_above_zero(const BFloat16* from, int64_t count, uint16_t least) {
  constexpr uint16_t kMagnitude = 0x7fff;
  for (int64_t j = 0; j < count; ++j) {
    const uint16_t above = static_cast<uint16_t>((from[j].bits & kMagnitude) - 1);  // 0 becomes the largest
    least = above < least ? above : least;
  }
  return least;
}

void join(std::atomic<uint16_t>& total, uint16_t least) {
  for (uint16_t before = total; least < before && !total.compare_exchange_weak(before, least);) {
  }
}

}  // namespace

Exponents exponents_of(const BFloat16* from, int64_t rows, int64_t columns, int64_t row_stride) {
  if (row_stride == columns) return exponents_of(from, rows * columns);
  std::atomic<uint16_t> total = 0xffff;
  for_each_part(rows, columns, [&](int64_t begin, int64_t end) {
    uint16_t least = 0xffff;
    for (int64_t i = begin; i < end; ++i) least = least_above_zero(from + i * row_stride, columns, least);
    join(total, least);
  });
  return {(int64_t{total} + 1) >> 7};
}

Exponents exponents_of(const BFloat16* from, int64_t count) {
  std::atomic<uint16_t> total = 0xffff;
  for_each_part(count, 1, [&](int64_t begin, int64_t end) {
    join(total, least_above_zero(from + begin, end - begin, 0xffff));
  });
  return {(int64_t{total} + 1) >> 7};
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
