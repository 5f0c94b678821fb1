// The blocked product of bfloat16 on the tile registers of processors with AMX, or by pairs on those with
// AVX512-BF16 alone: sums in float. Operands come in through packers, results go out block by block.
#pragma once

#include <cstdint>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "tern/core/dtype.h"

namespace tern::cpu::TERN_CPU_VARIANT {

#if defined(__AVX512F__)
inline constexpr bool kHasTiles = true;  ///< where has_tiles() or has_pairs()
#else
inline constexpr bool kHasTiles = false;
#endif

/// Whether this processor has tiles of bfloat16 and AVX512-BF16, and the system knows the tiles.
bool has_tiles();
/// Asks the system for them at the first call, for all threads: with them signals need larger stacks, so that
/// programs that never use them are spared.
bool may_use_tiles();

/// Whether this processor multiplies pairs of bfloat16.
bool has_pairs();

/// Rows of A, or columns of B, in one tile.
inline constexpr int64_t kTileWidth = 16;
/// Elements of k in one tile: one cache line.
inline constexpr int64_t kTileDepth = 32;

/// How the elements of a packed block of kTileWidth x kTileDepth lie.
enum class TileOrder {
  ByK,     ///< [index][k]
  ByIndex  ///< [pair of neighbours in k][index][neighbour]
};

/// Writes blocks of an operand; `index` is the row of A or the column of B. Elements of an operand in two
/// parts are sums of two bfloat16, a high and a low one: each block comes as one of high parts and one of low
/// parts.
class TilePacker {
 public:
  explicit TilePacker(TileOrder order, int64_t parts = 1) : order_(order), parts_(parts) {}
  TileOrder order() const { return order_; }
  int64_t parts() const { return parts_; }
  /// Elements [first, first + width) x [k_first, k_first + k_count) as blocks of kTileDepth of k, one after
  /// the other; width <= kTileWidth. What is beyond k_count must be 0; what is beyond width is not read.
  virtual void pack(int64_t first, int64_t width, int64_t k_first, int64_t k_count, BFloat16* to) const = 0;

  /// Rows of k that lie `stride` apart in memory; null where there are none.
  struct Rows {
    const BFloat16* data;
    int64_t stride;
  };
  virtual Rows rows() const { return {nullptr, 0}; }

 protected:
  ~TilePacker() = default;

 private:
  TileOrder order_;
  int64_t parts_;
};

/// Takes the sums of rows [i, i + rows) and columns [j, j + columns), whose rows are `stride` floats apart,
/// and may change them. Is called by several threads at once, once for each element.
class TileResult {
 public:
  virtual void finish(int64_t i, int64_t j, int64_t rows, int64_t columns, float* sums,
                      int64_t stride) const = 0;

 protected:
  ~TileResult() = default;
};

#if defined(__AVX512F__)
/// Two rows of 16 elements as pairs.
[[gnu::always_inline]] inline __m512i interleave(__m256i low, __m256i high) {
  typedef uint16_t Row __attribute__((vector_size(32)));
  return (__m512i)__builtin_shufflevector((Row)low, (Row)high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,
                                          22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                          31);
}
#endif

/// Whether a product is large enough to be packed for tiles, and fills them.
inline bool suits_tiles(int64_t m, int64_t n, int64_t k) {
  constexpr double kLeastProducts = 65536, kLeastResults = 128;
  constexpr int64_t kLeastDepth = 8;
  const double results = static_cast<double>(m) * static_cast<double>(n);
  return results >= kLeastResults && k >= kLeastDepth && results * static_cast<double>(k) >= kLeastProducts &&
         (may_use_tiles() || has_pairs());
}

/// result = A[m, k] @ B[k, n]. The order in which products are summed is the same for any sizes and threads.
/// Numbers below the normal ones are taken for 0, in operands, products and sums. Both operands have as many
/// parts, two where may_use_tiles() only; products of two low ones, which are next to nothing, are left out:
/// see G. Henry, P. T. P. Tang and A. Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for
/// higher-precision computations" (2019).
void gemm_tiles(int64_t m, int64_t n, int64_t k, const TilePacker& a, const TilePacker& b,
                const TileResult& result);

}  // namespace tern::cpu::TERN_CPU_VARIANT
