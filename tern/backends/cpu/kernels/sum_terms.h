// Sums of terms of the elements of rows, without a buffer for the terms.
#pragma once

#include <algorithm>
#include <array>

#include "tern/backends/cpu/kernels/gemm_vec.h"
#include "tern/backends/cpu/kernels/reduce_vector.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// N sums over the n elements of some rows: `terms(sums, x...)` adds what one element of each row gives to
/// sums[0], ..., sums[N - 1]. It is called with single numbers of the compute type and with registers of
/// them. The order of the additions is the same on all variants. For n of a few thousand: sums stay as wide
/// as C.
template <int N, class Terms, class T, class... Others>
std::array<Compute<T>, N> sum_terms(int64_t n, const Terms& given, const T* row, const Others*... others) {
  using C = Compute<T>;
  using V = wide::Register<C>;
  constexpr int kParts = wide::kParts, kBlocks = 4 / N;
  constexpr int64_t L = wide::kRegisterLanes<C>, kBlock = kParts * L;
  const Terms terms = given;
  const auto add = [&](V* sums, int64_t i) {
    const auto loaded = [i](const auto* from) {
      V v;
      wide::load_register<C>(v, from + i);
      return v;
    };
    terms(sums, loaded(row), loaded(others)...);
  };

  V sums[kBlocks * kParts][N] = {};
  int64_t i = 0;
#pragma GCC unroll 1
  for (; i + kBlocks * kBlock <= n; i += kBlocks * kBlock) {
    TERN_UNROLL for (int p = 0; p < kBlocks * kParts; ++p) add(sums[p], i + p * L);
  }
  TERN_UNROLL for (int block = 0; block + 1 < kBlocks; ++block) {
    if (i + kBlock > n) break;
    TERN_UNROLL for (int p = 0; p < kParts; ++p) add(sums[block * kParts + p], i + p * L);
    i += kBlock;
  }
  C rest[N] = {};
  if (i < n && n >= kBlock) {
    // The last whole block once more, without the lanes that were counted.
    V last[kParts][N] = {};
    TERN_UNROLL for (int p = 0; p < kParts; ++p) add(last[p], n - kBlock + p * L);
    TERN_UNROLL for (int s = 0; s < N; ++s) {
      wide::Block<C> block;
      TERN_UNROLL for (int p = 0; p < kParts; ++p) block.part[p] = last[p][s];
      wide::drop_lanes(block, kBlock - (n - i), C(0));
      TERN_UNROLL for (int p = 0; p < kParts; ++p) sums[(kBlocks - 1) * kParts + p][s] += block.part[p];
    }
    i = n;
  }
#pragma GCC unroll 1
  for (; i < n; ++i) terms(rest, static_cast<C>(row[i]), static_cast<C>(others[i])...);

  std::array<C, N> results;
  TERN_UNROLL for (int s = 0; s < N; ++s) {
    TERN_UNROLL for (int p = kParts; p < kBlocks * kParts; ++p) sums[p % kParts][s] += sums[p][s];
    alignas(wide::kBlockBytes) C lanes[kBlock];
    TERN_UNROLL for (int p = 0; p < kParts; ++p) std::memcpy(lanes + p * L, &sums[p][s], sizeof(V));
    for (int64_t width = kBlock / 2; width > 0; width /= 2)
      for (int64_t j = 0; j < width; ++j) lanes[j] += lanes[j + width];
    results[s] = lanes[0] + rest[s];
  }
  return results;
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
