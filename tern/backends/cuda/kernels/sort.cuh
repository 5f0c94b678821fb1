// The radix sort that everything which sorts many elements goes through.
#pragma once

#include "tern/device/backend.h"

namespace tern::cuda_backend {

/// Elements that are sorted at once where they need not all be: for each of them there are up to 32 bytes of
/// working memory, and CUB's.
inline constexpr int64_t kMostSorted = int64_t{1} << 24;

/// A stable ascending sort by the lowest `bits` bits of the keys. In and out must not overlap. There is one
/// for keys and values of 32 bits, of 64 bits, and for keys of 64 with values of 32.
template <class Key, class Value>
void sort_pairs(const LaunchContext& context, const Key* keys, Key* sorted_keys, const Value* values,
                Value* sorted_values, int64_t count, int bits);

/// Bits of the largest number below `count`.
inline int bits_below(int64_t count) {
  int bits = 0;
  while (bits < 63 && (int64_t{1} << bits) < count) ++bits;
  return bits;
}

}  // namespace tern::cuda_backend
