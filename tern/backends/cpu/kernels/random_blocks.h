// Philox counters in blocks that the compiler vectorises, and loops over the blocks of a result.
#pragma once

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/core/philox.h"

namespace tern::cpu::TERN_CPU_VARIANT {

inline constexpr int kLanes = 64;  // counters of one block
using Words = uint32_t[4][kLanes];

/// Words of kLanes consecutive counters. Rounds are the outer loop, so that the inner one runs over vectors
/// of counters.
inline void philox_block(uint64_t seed, uint64_t counter, Words& w) {
  uint32_t(&c0)[kLanes] = w[0], (&c1)[kLanes] = w[1], (&c2)[kLanes] = w[2], (&c3)[kLanes] = w[3];
  for (int i = 0; i < kLanes; ++i) {
    uint64_t c = counter + static_cast<uint64_t>(i);
    c0[i] = static_cast<uint32_t>(c);
    c1[i] = static_cast<uint32_t>(c >> 32);
    c2[i] = c3[i] = 0;
  }
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
#pragma GCC ivdep
    for (int i = 0; i < kLanes; ++i) {
      uint64_t p0 = uint64_t{0xD2511F53u} * c0[i], p1 = uint64_t{0xCD9E8D57u} * c2[i];
      uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c1[i] = static_cast<uint32_t>(p1);
      c3[i] = static_cast<uint32_t>(p0);
      c0[i] = n0;
      c2[i] = n2;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

/// Calls `block(words, T* to, int64_t first, int64_t count)` for every block of kLanes * per_counter elements
/// of a contiguous result; it must write `count` elements.
template <int per_counter, class T, class Block>
void for_each_counter_block(T* out, int64_t numel, uint64_t seed, uint64_t position, const Block& block) {
  constexpr int64_t kBlock = kLanes * per_counter;
  const bool past_cache =
      numel * static_cast<int64_t>(sizeof(T)) >= kStreamBytes && reinterpret_cast<uintptr_t>(out) % 64 == 0;
  parallel_for((numel + kBlock - 1) / kBlock, kPointwiseGrain / 4 / kBlock, [&](int64_t begin, int64_t end) {
    alignas(64) Words words;
    alignas(64) T tile[kBlock];
    for (int64_t b = begin; b < end; ++b) {
      philox_block(seed, position + static_cast<uint64_t>(b) * kLanes, words);
      const int64_t first = b * kBlock, count = std::min(kBlock, numel - first);
      if (count == kBlock && past_cache) {
        block(words, tile, first, kBlock);
        stream_store(out + first, tile, kBlock * static_cast<int64_t>(sizeof(T)));
      } else {
        block(words, out + first, first, count);
      }
    }
#if defined(__AVX__)
    if (past_cache) _mm_sfence();
#endif
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
