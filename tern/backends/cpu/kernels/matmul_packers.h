// Operands of products that are not packed as they are: 16-bit floats widened, and pairs of bfloat16.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "tern/backends/cpu/kernels/gemm.h"
#include "tern/backends/cpu/kernels/widen.h"
#include "tern/core/dtype.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// `index` is the row of A or the column of B, as in Packer.
template <class T>
struct Operand {
  const T* from;
  int64_t index_stride, k_stride;
};

/// Packs a matrix of 16-bit elements as floats. Every second element of bfloat16 changes places with the one
/// before it, so that products are added in the order in which processors add them by pairs.
template <class T>
class WideningPacker final : public Packer<float> {
 public:
  explicit WideningPacker(const Operand<T>& matrix) : matrix_(matrix) {}

  void pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, float* to) const override {
    const auto [source, index_stride, k_stride] = matrix_;
    const T* from = source + first * index_stride + k_first * k_stride;
    if (index_stride == 1) {
      for (int64_t p = 0; p < k_count; ++p) widen_row(to + p * width, from + p * k_stride, width);
    } else if (k_stride != 1) {
      for (int64_t p = 0; p < k_count; ++p)
        for (int64_t i = 0; i < width; ++i)
          to[p * width + i] = static_cast<float>(from[i * index_stride + p * k_stride]);
    } else {
      constexpr int64_t kChunk = 64;
      alignas(64) float wide[kTileColumns<float> * kChunk];
      for (int64_t p = 0; p < k_count; p += kChunk) {
        const int64_t count = std::min(kChunk, k_count - p);
        for (int64_t i = 0; i < width; ++i) widen_row(wide + i * kChunk, from + i * index_stride + p, count);
        pack_panel(wide, kChunk, int64_t{1}, width, count, to + p * width);
      }
    }
    if constexpr (std::is_same_v<T, BFloat16>)
      for (float* row = to; row + 2 * width <= to + k_count * width; row += 2 * width)
        std::swap_ranges(row, row + width, row + width);
  }

 private:
  Operand<T> matrix_;
};

/// Packs a matrix of bfloat16 as pairs of neighbours in k, a last one alone with zero.
class PairPacker final : public Packer<float> {
 public:
  PairPacker(const Operand<BFloat16>& matrix, int64_t k) : matrix_(matrix), k_(k) {}

  void pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, float* to) const override {
    const int64_t is = matrix_.index_stride, ks = matrix_.k_stride;
    const BFloat16* from = matrix_.from + first * is + 2 * k_first * ks;
    const int64_t values = std::min(2 * k_count, k_ - 2 * k_first);
    if (ks != 1) {
      for (int64_t p = 0; p < k_count; ++p, to += width) {
        const BFloat16 *low = from + 2 * p * ks, *high = low + ks;
        if (2 * p + 1 >= values)
          for (int64_t i = 0; i < width; ++i) to[i] = pair(low[i * is].bits, 0);
        else if (is == 1)
          for (int64_t i = 0; i < width; ++i) to[i] = pair(low[i].bits, high[i].bits);
        else
          for (int64_t i = 0; i < width; ++i) to[i] = pair(low[i * is].bits, high[i * is].bits);
      }
      return;
    }
    constexpr int64_t kChunk = 64;
    alignas(64) float words[kTileColumns<float> * kChunk];
    for (int64_t p = 0; p < k_count; p += kChunk) {
      const int64_t count = std::min(kChunk, k_count - p);
      const size_t bytes = static_cast<size_t>(std::min(2 * count, values - 2 * p)) * sizeof(BFloat16);
      for (int64_t i = 0; i < width; ++i) {
        words[i * kChunk + count - 1] = 0.0f;
        std::memcpy(words + i * kChunk, from + i * is + 2 * p, bytes);
      }
      pack_panel(words, kChunk, int64_t{1}, width, count, to + p * width);
    }
  }

 private:
  static float pair(uint16_t low, uint16_t high) { return std::bit_cast<float>(uint32_t{high} << 16 | low); }

  Operand<BFloat16> matrix_;
  int64_t k_;
};

}  // namespace tern::cpu::TERN_CPU_VARIANT
