// The one radix sort that everything which sorts goes through: 64-bit keys with 64-bit values.
#pragma once

#include "tern/device/backend.h"

namespace tern::cuda_backend {

/// Elements that are sorted at once where they need not all be: for each of them there are 32 bytes of
/// working memory, and CUB's.
inline constexpr int64_t kMostSorted = int64_t{1} << 24;

/// A stable ascending sort by the lowest `bits` bits of the keys. In and out must not overlap.
void sort_pairs(const LaunchContext& context, const uint64_t* keys, uint64_t* sorted_keys,
                const int64_t* values, int64_t* sorted_values, int64_t count, int bits);

/// Bits of the largest number below `count`.
inline int bits_below(int64_t count) {
  int bits = 0;
  while (bits < 63 && (int64_t{1} << bits) < count) ++bits;
  return bits;
}

}  // namespace tern::cuda_backend
