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

}  // namespace

Exponents exponents_of(const BFloat16* from, int64_t rows, int64_t columns, int64_t row_stride) {
  constexpr uint16_t kMagnitude = 0x7fff, kInfinity = 0x7f80;
  std::atomic<uint16_t> total = 0xffff;
  std::atomic<bool> finite = true;
  for_each_part(rows, columns, [&](int64_t begin, int64_t end) {
    uint16_t least = 0xffff, most = 0;
    for (int64_t i = begin; i < end; ++i) {
      const BFloat16* row = from + i * row_stride;
      for (int64_t j = 0; j < columns; ++j) {
        const uint16_t magnitude = row[j].bits & kMagnitude;
        const uint16_t above_zero = static_cast<uint16_t>(magnitude - 1);  // 0 becomes the largest
        least = above_zero < least ? above_zero : least;
        most = magnitude > most ? magnitude : most;
      }
    }
    if (most >= kInfinity) finite = false;
    for (uint16_t before = total; least < before && !total.compare_exchange_weak(before, least);) {
    }
  });
  return {(int64_t{total} + 1) >> 7, finite};
}

Exponents exponents_of(const BFloat16* from, int64_t count) {
  constexpr int64_t kRow = 4096;
  const Exponents rows = exponents_of(from, count / kRow, kRow, kRow),
                  rest = exponents_of(from + count / kRow * kRow, 1, count % kRow, 0);
  return {std::min(rows.least, rest.least), rows.finite && rest.finite};
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
