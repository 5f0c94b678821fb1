// The product on AMX tiles, or by pairs of bfloat16 in vectors where there are none. Operands are packed in
// chunks that the last-level cache holds; each core then takes blocks of the result whose sums and operands
// its second-level cache holds. The semantics of the instructions are those of the "Intel Architecture
// Instruction Set Extensions Programming Reference", TDPBF16PS and VDPBF16PS.
#include "tern/backends/cpu/kernels/gemm_tiles.h"

#if defined(__AVX512F__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>

#include "tern/backends/cpu/kernels/gemm.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/transpose.h"
#include "tern/base/parallel.h"

namespace tern::cpu::TERN_CPU_VARIANT {

#if defined(__AVX512F__)
namespace {

/// Elements and bytes of one packed block: a whole tile.
constexpr int64_t kBlock = kTileWidth * kTileDepth;
constexpr int64_t kBlockBytes = kBlock * static_cast<int64_t>(sizeof(BFloat16));
static_assert(kBlockBytes == 1024);

/// Rows and columns of the result, and products of each, for which operands are packed at once.
constexpr int64_t kChunk = 2048, kChunkDepth = 4096;
/// Rows and columns of the result for which one core runs through k.
constexpr int64_t kCoreBlock = 256;
/// Blocks of k, of one part, for which two panels of A stay in the first-level cache: tiles read each once,
/// vectors both panels of B several times.
constexpr int64_t kPassBlocks = 32, kPairPassBlocks = 8;
/// Columns of the result up to which it does not pay to pack rows of A that lie in memory as tiles need them.
constexpr int64_t kInPlaceColumns = 1024;

/// The tile registers of this thread, all of 16 rows of 64 bytes, for the length of a scope.
class TileScope {
 public:
  explicit TileScope(bool amx) : amx_(amx) {
    if (!amx) return;
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } shape;
    static_assert(sizeof shape == 64);
    std::fill_n(shape.row_bytes, 8, uint16_t{64});
    std::fill_n(shape.rows, 8, uint8_t{kTileWidth});
    asm volatile("ldtilecfg %0" : : "m"(shape));
  }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
  ~TileScope() {
    if (amx_) asm volatile("tilerelease");
  }

 private:
  bool amx_;
};

// By their names, since the kernels are compiled for processors without them too. Tiles 0 to 3 hold sums, 4
// and 5 rows of A, 6 and 7 columns of B.
template <int tile>
[[gnu::always_inline]] inline void load_tile(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
[[gnu::always_inline]] inline void store_tile(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
[[gnu::always_inline]] inline void clear_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(tile));
}
template <int sum, int a, int b>
[[gnu::always_inline]] inline void multiply_tiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(a), "i"(b));
}

/// Calls f<tile, row, column>() for each tile of sums.
template <int Rows, int Columns, class F>
[[gnu::always_inline]] inline void for_each_sum(const F& f) {
  f.template operator()<0, 0, 0>();
  if constexpr (Columns == 2) f.template operator()<1, 0, 1>();
  if constexpr (Rows == 2) f.template operator()<2, 1, 0>();
  if constexpr (Rows == 2 && Columns == 2) f.template operator()<3, 1, 1>();
}

/// One or two panels of A: tiles of rows `row` bytes apart, the next ones of k `next` bytes further, those of
/// the second panel `second` bytes.
struct Panels {
  const char* first;
  int64_t row, next, second;
};

/// Adds `blocks` of k of one or two panels of A and packed panels of B, which lie b_second bytes apart, to
/// the sums at c (rows of `stride` bytes), or begins them.
template <int Rows, int Columns, int Parts>
[[gnu::noinline]] void tile_kernel(const Panels& panels, const BFloat16* b_blocks, int64_t b_second,
                                   int64_t blocks, float* c, int64_t stride, bool begin) {
  const auto at = [&](int row, int column) {
    return reinterpret_cast<char*>(c) + row * kTileWidth * stride + column * 64;
  };
  for_each_sum<Rows, Columns>([&]<int tile, int row, int column>() {
    if (begin)
      clear_tile<tile>();
    else
      load_tile<tile>(at(row, column), stride);
  });
  const char *a = panels.first, *b = reinterpret_cast<const char*>(b_blocks);
  const int64_t a_row = panels.row, a_next = panels.next, a_second = panels.second;
  const auto load_a = [&](int64_t part) {
    load_tile<4>(a + part, a_row);
    if constexpr (Rows == 2) load_tile<5>(a + part + a_second, a_row);
  };
  const auto load_b = [&](int64_t part) {
    load_tile<6>(b + part, 64);
    if constexpr (Columns == 2) load_tile<7>(b + part + b_second, 64);
  };
  const auto multiply = [&] {
    for_each_sum<Rows, Columns>(
        [&]<int tile, int row, int column>() { multiply_tiles<tile, 4 + row, 6 + column>(); });
  };
  for (int64_t p = 0; p < blocks; ++p, a += a_next, b += Parts * kBlockBytes) {
    load_a(0);
    if constexpr (Parts == 2) {
      load_b(kBlockBytes);
      multiply();
    }
    load_b(0);
    multiply();
    if constexpr (Parts == 2) {
      load_a(kBlockBytes);
      multiply();
    }
  }
  for_each_sum<Rows, Columns>(
      [&]<int tile, int row, int column>() { store_tile<tile>(at(row, column), stride); });
}

/// The same without tiles: a few rows of sums at a time in vectors.
template <int Rows, int Columns>
[[gnu::noinline]] void pair_kernel(const Panels& panels, const BFloat16* b_blocks, int64_t b_second,
                                   int64_t blocks, float* c, int64_t stride, bool begin) {
  constexpr int kRows = Columns == 2 ? 8 : 16, kFours = kRows / 4;
  const int64_t row = panels.row, row3 = 3 * row;
  for (int64_t first = 0; first < Rows * kTileWidth; first += kRows) {
    const auto at = [&](int64_t i, int64_t j) {
      return reinterpret_cast<float*>(reinterpret_cast<char*>(c) + (first + i) * stride) + j * kTileWidth;
    };
    Vec<float> sums[kRows][Columns];
    TERN_UNROLL for (int i = 0; i < kRows; ++i) {
      TERN_UNROLL for (int j = 0; j < Columns; ++j) sums[i][j] = begin ? Vec<float>{} : load(at(i, j));
    }
    const char* a[kFours];
    for (int g = 0; g < kFours; ++g)
      a[g] = panels.first + first / kTileWidth * panels.second + (first % kTileWidth + 4 * g) * row;
    const char* b = reinterpret_cast<const char*>(b_blocks);
    for (int64_t p = 0; p < blocks; ++p) {
      for (int64_t pair = 0; pair < kTileDepth / 2; ++pair, b += 64) {
        Vec<float> bv[Columns];
        TERN_UNROLL for (int j = 0; j < Columns; ++j) {
          bv[j] = load(reinterpret_cast<const float*>(b + j * b_second));
        }
        TERN_UNROLL for (int i = 0; i < kRows; ++i) {
          const char* x = a[i / 4] + (i % 4 == 3 ? row3 : i % 4 * row) + 4 * pair;
          const Vec<float> av = splat(*reinterpret_cast<const float*>(x));
          TERN_UNROLL for (int j = 0; j < Columns; ++j) add_product<Elements::Pairs>(sums[i][j], av, bv[j]);
        }
      }
      TERN_UNROLL for (int g = 0; g < kFours; ++g) a[g] += panels.next;
    }
    TERN_UNROLL for (int i = 0; i < kRows; ++i) {
      TERN_UNROLL for (int j = 0; j < Columns; ++j) store(at(i, j), sums[i][j]);
    }
  }
}

using TileKernel = void (*)(const Panels& panels, const BFloat16* b_blocks, int64_t b_second, int64_t blocks,
                            float* c, int64_t stride, bool begin);
template <int Parts>
TileKernel kernel_for(bool two_rows, bool two_columns) {
  if (two_rows) return two_columns ? tile_kernel<2, 2, Parts> : tile_kernel<2, 1, Parts>;
  return two_columns ? tile_kernel<1, 2, Parts> : tile_kernel<1, 1, Parts>;
}
TileKernel pair_kernel_for(bool two_rows, bool two_columns) {
  if (two_rows) return two_columns ? pair_kernel<2, 2> : pair_kernel<2, 1>;
  return two_columns ? pair_kernel<1, 2> : pair_kernel<1, 1>;
}

/// [index][k] becomes [pair][index][neighbour] and the other way round.
[[gnu::noinline]] void turn_blocks(BFloat16* blocks, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    float* words = reinterpret_cast<float*>(blocks + i * kBlock);
    transpose_square<16>(words, kTileWidth, words, kTileWidth);
  }
}

int64_t count_of(int64_t size, int64_t part) { return (size + part - 1) / part; }

/// Part of the result and of k for which operands are packed.
struct Chunk {
  int64_t i, rows, j, columns, k, depth;
  int64_t blocks() const { return count_of(depth, kTileDepth); }
  int64_t a_panels() const { return count_of(rows, kTileWidth); }
  int64_t b_panels() const { return count_of(columns, kTileWidth); }
};

/// Gives the sums of B^T A^T to the result of A B.
class TurnedResult final : public TileResult {
 public:
  explicit TurnedResult(const TileResult& result) : result_(result) {}
  void finish(int64_t i, int64_t j, int64_t rows, int64_t columns, float* sums,
              int64_t stride) const override {
    const Scratch<float> turned(rows * columns);
    transpose_elements(sizeof(float), sums, stride, rows, columns, turned.get(), rows);
    result_.finish(j, i, columns, rows, turned.get(), rows);
  }

 private:
  const TileResult& result_;
};

class TileGemm {
 public:
  TileGemm(int64_t m, int64_t n, int64_t k, const TilePacker& a, const TilePacker& b,
           const TileResult& result)
      : m_(m),
        n_(n),
        k_(k),
        a_(a),
        b_(b),
        result_(result),
        amx_(may_use_tiles()),
        parts_(a.parts()),
        depth_(count_of(count_of(k, count_of(k, kChunkDepth)), kTileDepth) * kTileDepth),
        rows_(std::min(kChunk, count_of(m, kTileWidth) * kTileWidth)),
        columns_(std::min(kChunk, count_of(n, kTileWidth) * kTileWidth)),
        threads_(threads_for(static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                             static_cast<double>(2 * parts_ - 1) / (amx_ ? kTileSpeed : kPairSpeed))),
        keeps_sums_(k > depth_),
        // Not a multiple of the first-level cache's ways apart.
        stride_((keeps_sums_ ? columns_ : std::min(columns_, kCoreBlock)) + 16),
        in_place_(n <= kInPlaceColumns && m % kTileWidth == 0 && k % kTileDepth == 0
                      ? a.rows()
                      : TilePacker::Rows{nullptr, 0}),
        a_packed_(in_place_.data != nullptr ? 0 : rows_ * depth_ * parts_),
        b_packed_(columns_ * depth_ * parts_),
        sums_((keeps_sums_ ? rows_ : threads_ * std::min(rows_, kCoreBlock)) * stride_) {}

  void run() {
    for (int64_t j = 0; j < n_; j += columns_) {
      for (int64_t i = 0; i < m_; i += rows_) {
        for (int64_t p = 0; p < k_; p += depth_) {
          const Chunk chunk{i, std::min(rows_, m_ - i), j, std::min(columns_, n_ - j),
                            p, std::min(depth_, k_ - p)};
          const int64_t panels = packed_a_panels(chunk) + chunk.b_panels();
          parallel_for(panels, threads_ > 1 ? 1 : panels,
                       [&](int64_t begin, int64_t end) { pack(chunk, begin, end); });
          const int64_t row_pairs = count_of(chunk.a_panels(), 2),
                        column_pairs = count_of(chunk.b_panels(), 2);
          const Grid grid = threads_ > 1 ? share_tiles(threads_, row_pairs, column_pairs) : Grid{};
          parallel_for(grid.rows * grid.columns, 1, [&](int64_t begin, int64_t end) {
            const TileScope scope(amx_);
            for (int64_t s = begin; s < end; ++s) {
              const int64_t r = s / grid.columns, c = s % grid.columns;
              multiply(chunk, s, row_pairs * r / grid.rows, row_pairs * (r + 1) / grid.rows,
                       column_pairs * c / grid.columns, column_pairs * (c + 1) / grid.columns);
            }
          });
        }
      }
    }
  }

 private:
  /// How many times as fast as the product of float that threads_for() expects.
  static constexpr double kTileSpeed = 8, kPairSpeed = 2;

  /// Elements of one packed block, all parts of it.
  int64_t block() const { return parts_ * kBlock; }

  int64_t packed_a_panels(const Chunk& chunk) const {
    return in_place_.data != nullptr ? 0 : chunk.a_panels();
  }

  /// Panels of A, then of B. Several of them take the same part of k, since neighbours share cache lines.
  void pack(const Chunk& chunk, int64_t begin, int64_t end) const {
    constexpr int64_t kTogether = 4, kPart = 8 * kTileDepth;
    for (int64_t group = begin; group < end; group += kTogether)
      for (int64_t k = 0; k < chunk.depth; k += kPart)
        for (int64_t q = group; q < std::min(end, group + kTogether); ++q)
          pack_panel(chunk, q, k, std::min(kPart, chunk.depth - k));
  }

  void pack_panel(const Chunk& chunk, int64_t q, int64_t k, int64_t count) const {
    const int64_t a_panels = packed_a_panels(chunk);
    const bool of_a = q < a_panels;
    const TilePacker& from = of_a ? a_ : b_;
    const int64_t panel = of_a ? q : q - a_panels, first = panel * kTileWidth;
    const int64_t width = std::min(kTileWidth, (of_a ? chunk.rows : chunk.columns) - first);
    BFloat16* to = (of_a ? a_packed_ : b_packed_).get() + (panel * chunk.blocks() + k / kTileDepth) * block();
    from.pack((of_a ? chunk.i : chunk.j) + first, width, chunk.k + k, count, to);
    if (from.order() != (of_a ? TileOrder::ByK : TileOrder::ByIndex))
      turn_blocks(to, count_of(count, kTileDepth) * parts_);
  }

  /// Pairs of panels [row_begin, row_end) x [column_begin, column_end).
  void multiply(const Chunk& chunk, int64_t share, int64_t row_begin, int64_t row_end, int64_t column_begin,
                int64_t column_end) const {
    constexpr int64_t kPairs = kCoreBlock / (2 * kTileWidth);
    for (int64_t c = column_begin; c < column_end; c += kPairs)
      for (int64_t r = row_begin; r < row_end; r += kPairs)
        multiply_block(chunk, share, r, std::min(row_end, r + kPairs), c, std::min(column_end, c + kPairs));
  }

  void multiply_block(const Chunk& chunk, int64_t share, int64_t row_begin, int64_t row_end,
                      int64_t column_begin, int64_t column_end) const {
    const int64_t blocks = chunk.blocks(), panel = blocks * block();
    const int64_t panel_bytes = panel * static_cast<int64_t>(sizeof(BFloat16));
    const int64_t i = 2 * row_begin * kTileWidth, j = 2 * column_begin * kTileWidth;
    // All of the chunk's, or this block's alone.
    float* sums =
        sums_.get() + (keeps_sums_ ? i * stride_ + j : share * std::min(rows_, kCoreBlock) * stride_);
    const int64_t pass_blocks = (amx_ ? kPassBlocks : kPairPassBlocks) / parts_;
    for (int64_t p = 0; p < blocks; p += pass_blocks) {
      const int64_t pass = std::min(pass_blocks, blocks - p);
      const bool begin = chunk.k == 0 && p == 0;
      for (int64_t r = row_begin; r < row_end; ++r) {
        const bool two_rows = 2 * r + 1 < chunk.a_panels();
        const int64_t row = 2 * r * kTileWidth;
        float* row_sums = sums + (row - i) * stride_;
        for (int64_t c = column_begin; c < column_end; ++c) {
          const bool two_columns = 2 * c + 1 < chunk.b_panels();
          const TileKernel kernel = !amx_         ? pair_kernel_for(two_rows, two_columns)
                                    : parts_ == 2 ? kernel_for<2>(two_rows, two_columns)
                                                  : kernel_for<1>(two_rows, two_columns);
          kernel(a_at(chunk, 2 * r, p), b_packed_.get() + 2 * c * panel + p * block(), panel_bytes, pass,
                 row_sums + 2 * c * kTileWidth - j, stride_ * static_cast<int64_t>(sizeof(float)), begin);
        }
      }
    }
    if (chunk.k + chunk.depth < k_) return;
    result_.finish(chunk.i + i, chunk.j + j, std::min(2 * row_end * kTileWidth, chunk.rows) - i,
                   std::min(2 * column_end * kTileWidth, chunk.columns) - j, sums, stride_);
  }

  /// Row panels from `panel` on, blocks of k from `index` on.
  Panels a_at(const Chunk& chunk, int64_t panel, int64_t index) const {
    if (in_place_.data != nullptr) {
      const int64_t row = in_place_.stride * static_cast<int64_t>(sizeof(BFloat16));
      const BFloat16* first =
          in_place_.data + (chunk.i + panel * kTileWidth) * in_place_.stride + chunk.k + index * kTileDepth;
      return {reinterpret_cast<const char*>(first), row, 64, kTileWidth * row};
    }
    const BFloat16* first = a_packed_.get() + (panel * chunk.blocks() + index) * block();
    const int64_t bytes = block() * static_cast<int64_t>(sizeof(BFloat16));
    return {reinterpret_cast<const char*>(first), 64, bytes, chunk.blocks() * bytes};
  }

  int64_t m_, n_, k_;
  const TilePacker &a_, &b_;
  const TileResult& result_;
  bool amx_;
  int64_t parts_, depth_, rows_, columns_, threads_;
  bool keeps_sums_;  ///< of one part of k for the next
  int64_t stride_;
  TilePacker::Rows in_place_;
  Scratch<BFloat16> a_packed_, b_packed_;
  Scratch<float> sums_;
};

}  // namespace

// Of asm/prctl.h, which older systems lack.
constexpr long kGetSupported = 0x1021, kRequestPermission = 0x1023, kTileData = 18;

bool has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kOfBFloat16 = 1u << 22, kTiles = 1u << 24, kConversions = 1u << 5;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kOfBFloat16) == 0 || (d & kTiles) == 0)
    return false;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0 || (a & kConversions) == 0) return false;
  uint64_t supported = 0;
  return syscall(SYS_arch_prctl, kGetSupported, &supported) == 0 && (supported >> kTileData & 1) != 0;
}

bool may_use_tiles() {
  static const bool answer = has_tiles() && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return answer;
}

void gemm_tiles(int64_t m, int64_t n, int64_t k, const TilePacker& a, const TilePacker& b,
                const TileResult& result) {
  const auto turned = [&](bool a_is_left) {
    const auto elements = [&](const TilePacker& operand, int64_t size, bool left) {
      return (operand.order() == TileOrder::ByK) == left ? 0.0
                                                         : static_cast<double>(size) * static_cast<double>(k);
    };
    return elements(a, m, a_is_left) + elements(b, n, !a_is_left);
  };
  const double of_result = 2.0 * static_cast<double>(m) * static_cast<double>(n);
  if (turned(true) > turned(false) + of_result)
    TileGemm(n, m, k, b, a, TurnedResult(result)).run();
  else
    TileGemm(m, n, k, a, b, result).run();
}
#else
bool has_tiles() { return false; }
bool may_use_tiles() { return false; }
#endif

}  // namespace tern::cpu::TERN_CPU_VARIANT
