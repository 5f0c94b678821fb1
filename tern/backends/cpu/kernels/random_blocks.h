// Philox counters in blocks that the compiler vectorises, and loops over the blocks of a result.
#pragma once

#include <cstring>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/vector_bytes.h"
#include "tern/core/philox.h"

namespace tern::cpu::TERN_CPU_VARIANT {

inline constexpr int kLanes = 64;  // counters of one block
using Words = uint32_t[4][kLanes];

#if defined(__AVX2__)
typedef uint64_t PhiloxLanes __attribute__((vector_size(kVectorBytes)));

/// Products of the lower halves of all lanes.
[[gnu::always_inline]] inline PhiloxLanes low_products(PhiloxLanes a, uint32_t b) {
#if defined(__AVX512F__)
  // The form with a mask: of the other GCC 12 says that it uses what is not initialized.
  return (PhiloxLanes)_mm512_maskz_mul_epu32(0xff, (__m512i)a, _mm512_set1_epi64(b));
#else
  return (PhiloxLanes)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#endif
}

/// Words of kLanes consecutive counters. Each counter has lanes of 64 bits, in the lower half of which its
/// words are: even counters in one register, odd ones in another.
inline void philox_block(uint64_t seed, uint64_t counter, Words& w) {
  constexpr int kAtOnce = kVectorBytes / 4;
  for (int first = 0; first < kLanes; first += kAtOnce) {
    PhiloxLanes c[2][4];
    for (int odd = 0; odd < 2; ++odd) {
      for (int i = 0; i < kAtOnce / 2; ++i)
        c[odd][0][i] = counter + static_cast<uint64_t>(first + 2 * i + odd);
      c[odd][1] = c[odd][0] >> 32;
      c[odd][2] = c[odd][3] = PhiloxLanes{};
    }
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 2
      for (int odd = 0; odd < 2; ++odd) {
        const PhiloxLanes p0 = low_products(c[odd][0], 0xD2511F53u),
                          p1 = low_products(c[odd][2], 0xCD9E8D57u);
        c[odd][0] = (p1 >> 32) ^ c[odd][1] ^ k0;
        c[odd][2] = (p0 >> 32) ^ c[odd][3] ^ k1;
        c[odd][1] = p1;
        c[odd][3] = p0;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int j = 0; j < 4; ++j) {
      const PhiloxLanes words = (c[0][j] & 0xffffffffu) | c[1][j] << 32;
      std::memcpy(w[j] + first, &words, sizeof words);
    }
  }
}
#else
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
#endif

/// Numbers of 32 bits in the order of the counters: to[4 * i + k] = w[k][i].
template <class T>
void in_order(const T (&w)[4][kLanes], T* to) {
  typedef T Four __attribute__((vector_size(16)));
  for (int i = 0; i < kLanes; i += 4) {
    Four x[4];
    for (int k = 0; k < 4; ++k) std::memcpy(&x[k], w[k] + i, sizeof x[k]);
    const Four low01 = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5),
               low23 = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5),
               high01 = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7),
               high23 = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
    const Four y[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                       __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                       __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                       __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
    std::memcpy(to + 4 * i, y, sizeof y);
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
