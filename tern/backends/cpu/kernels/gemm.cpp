// The blocked matrix product: cutting into blocks that stay in the caches, packing, and sharing out over
// cores. Sizes of blocks follow K. Goto and R. van de Geijn, "Anatomy of high-performance matrix
// multiplication" (2008).
#include "tern/backends/cpu/kernels/gemm.h"

#include <algorithm>

#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/transpose.h"
#include "tern/base/parallel.h"

namespace tern::cpu::TERN_CPU_VARIANT {

template <class T>
void pack_panel(const T* from, int64_t index_stride, int64_t k_stride, int64_t width, int64_t k_count,
                T* to) {
  constexpr int64_t L = kLanes<T>;
  if (index_stride == 1) {
    if (width == 2 * L) {
      // What the next panel will read, which no processor foresees where each row has a page of its own.
      const bool fetches_ahead = k_stride * static_cast<int64_t>(sizeof(T)) > 4096;
      for (int64_t p = 0; p < k_count; ++p, from += k_stride, to += width) {
        store(to, load(from));
        store(to + L, load(from + L));
        if (!fetches_ahead) continue;
        __builtin_prefetch(from + 2 * L, 0, 2);
        __builtin_prefetch(from + 3 * L, 0, 2);
      }
      return;
    }
    const Tail<T> tail(width % L);
    for (int64_t p = 0; p < k_count; ++p, from += k_stride, to += width) {
      int64_t i = 0;
      for (; i + L <= width; i += L) store(to + i, load(from + i));
      tail.store(to + i, tail.load(from + i));
    }
    return;
  }
  if (k_stride == 1) {
    for (int64_t p = 0; p < k_count; p += L)
      for (int64_t i = 0; i < width; i += L)
        transpose_block(from + i * index_stride + p, index_stride, std::min(L, width - i),
                        std::min(L, k_count - p), to + p * width + i, width);
    return;
  }
  for (int64_t p = 0; p < k_count; ++p)
    for (int64_t i = 0; i < width; ++i) to[p * width + i] = from[i * index_stride + p * k_stride];
}

namespace {

/// Bytes of A that one core keeps in its second-level cache.
constexpr int64_t kBlockBytes = 384 * 1024;
/// Columns of B that are packed at once; they stay in the last-level cache.
constexpr int64_t kMaxColumns = 4096;
/// Results up to which one core computes a sum of few outer products.
constexpr int64_t kOuterElements = 65536;

template <class T>
class BlockedGemm {
 public:
  explicit BlockedGemm(const Gemm<T>& g) : g_(g), row_tiles_((g.m + kMaxRows - 1) / kMaxRows) {
    a_packed_ = g.pack_a != nullptr ||
                (g.m * g.k > kDirectElements && g.n > W * (g.a_col_stride == 1 ? kDirectPanels : 2));
    b_packed_ = g.pack_b != nullptr || g.b_col_stride != 1 ||
                (row_tiles_ > 2 && (g.n > 4 * kTileColumns<T> || g.k > kMaxDepth<T>));
    depth_ = g.k > 0 && row_tiles_ == 1 && !b_packed_ && !a_packed_ ? g.k : pass_depth<T>(g.k);
    if (g.pass_depth > 0) depth_ = g.pass_depth;
    const int64_t tile_bytes = kMaxRows * depth_ * static_cast<int64_t>(sizeof(T));
    // Rows of A that are read where they are come again for each panel, too.
    const bool in_blocks = a_packed_ || (b_packed_ && g.n > 2 * W);
    block_tiles_ = in_blocks ? std::clamp<int64_t>(kBlockBytes / tile_bytes, 1, row_tiles_) : row_tiles_;
    columns_ = b_packed_ ? std::min(kMaxColumns, (g.n + W - 1) / W * W) : g.n;
  }

  void run() {
    const double work = static_cast<double>(g_.m) * static_cast<double>(g_.n) * static_cast<double>(g_.k);
    const int64_t threads = threads_for(work);
    const int64_t panels = (std::min(columns_, g_.n) + W - 1) / W;
    const Grid grid = threads > 1 ? share_tiles(threads, row_tiles_, panels) : Grid{};
    // Panels of B that one core alone reads, and once, are packed just before and stay in its cache, where
    // all of them would not.
    const bool once = b_packed_ && grid.rows == 1 && block_tiles_ >= row_tiles_ &&
                      panels * W * depth_ * static_cast<int64_t>(sizeof(T)) > 2 * kBlockBytes;
    const int64_t shares = grid.rows * grid.columns;
    const int64_t a_share =
        a_packed_ ? round_to_line<T>(std::min(g_.m, block_tiles_ * kMaxRows) * depth_) : 0;
    const int64_t panel_share = once ? round_to_line<T>(W * depth_) : 0;  // else all panels are everyone's
    const int64_t b_size = once        ? panel_share * shares
                           : b_packed_ ? round_to_line<T>(panels * W * depth_)
                                       : 0;
    const Scratch<T> scratch(b_size + a_share * shares);
    T *const packed_b = scratch.get(), *const packed_a = packed_b + b_size;

    for (int64_t j = 0; j < g_.n; j += columns_) {
      const int64_t n = std::min(columns_, g_.n - j);
      int64_t p = 0;
      do {  // once for k == 0 too: the epilogue is still to be done
        const int64_t depth = std::min(depth_, g_.k - p);
        const Block block{j, n, p, depth, once};
        const int64_t block_panels = (n + W - 1) / W;
        if (b_packed_ && !once) {
          const int64_t grain = threads > 1 ? std::max<int64_t>(1, 16384 / (W * depth)) : block_panels;
          parallel_for(block_panels, grain, [&](int64_t begin, int64_t end) {
            for (int64_t q = begin; q < end; ++q) pack_b(block, q, packed_b + q * W * depth);
          });
        }
        if (shares == 1) {
          multiply(block, 0, row_tiles_, 0, block_panels, packed_b, packed_a);
        } else {
          parallel_for(shares, 1, [&](int64_t begin, int64_t end) {
            for (int64_t s = begin; s < end; ++s) {
              const int64_t r = s / grid.columns, c = s % grid.columns;
              multiply(block, row_tiles_ * r / grid.rows, row_tiles_ * (r + 1) / grid.rows,
                       block_panels * c / grid.columns, block_panels * (c + 1) / grid.columns,
                       packed_b + s * panel_share, packed_a + s * a_share);
            }
          });
        }
        p += depth_;
      } while (p < g_.k);
    }
  }

 private:
  static constexpr int64_t W = kTileColumns<T>;
  static constexpr int64_t kDirectElements = 65536;
  /// Panels for which rows of A that are longer are not worth packing. More rows at a time than a first cache
  /// has ways, which may all start at the same place of a page, are.
  static constexpr int64_t kDirectPanels = kMaxRows <= 8 ? 8 : 2;

  /// Columns [j, j + n) and depths [p, p + depth) of the product. Panels of B are packed all at once, or each
  /// before it is read.
  struct Block {
    int64_t j, n, p, depth;
    bool once;
  };

  /// Rows are spread evenly over the tiles.
  int64_t first_row(int64_t tile) const { return g_.m * tile / row_tiles_; }

  void pack_b(const Block& block, int64_t q, T* to) const {
    const int64_t j = block.j + q * W, width = std::min(W, block.n - q * W);
    if (g_.pack_b != nullptr)
      g_.pack_b->pack(j, width, block.p, block.depth, to);
    else
      pack_panel(g_.b + block.p * g_.b_row_stride + j * g_.b_col_stride, g_.b_col_stride, g_.b_row_stride,
                 width, block.depth, to);
  }

  void pack_a(const Block& block, int64_t first_tile, int64_t last_tile, T* to) const {
    for (int64_t t = first_tile; t < last_tile; ++t) {
      const int64_t i = first_row(t), rows = first_row(t + 1) - i;
      if (g_.pack_a != nullptr)
        g_.pack_a->pack(i, rows, block.p, block.depth, to);
      else
        pack_panel(g_.a + i * g_.a_row_stride + block.p * g_.a_col_stride, g_.a_row_stride, g_.a_col_stride,
                   rows, block.depth, to);
      to += rows * block.depth;
    }
  }

  void multiply(const Block& block, int64_t first_tile, int64_t last_tile, int64_t first_panel,
                int64_t last_panel, T* packed_b, T* packed_a) const {
    const bool first = block.p == 0, last = block.p + block.depth == g_.k;
    Epilogue<T> epilogue = g_.epilogue;
    if (!first) {
      epilogue.addend = g_.c;
      epilogue.addend_row_stride = g_.c_row_stride;
      epilogue.beta = 1;
      epilogue.row_bias = nullptr;
    }
    if (!last) epilogue.relu = false;

    for (int64_t t0 = first_tile; t0 < last_tile; t0 += block_tiles_) {
      const int64_t t1 = std::min(last_tile, t0 + block_tiles_), base = first_row(t0);
      if (a_packed_) pack_a(block, t0, t1, packed_a);
      for (int64_t q = first_panel; q < last_panel; ++q) {
        const int64_t j = block.j + q * W, width = std::min(W, block.n - q * W);
        Tile<T> tile;
        tile.k = block.depth;
        tile.c_row_stride = g_.c_row_stride;
        if (b_packed_) {
          T* panel = packed_b + (block.once ? 0 : q * W * block.depth);
          if (block.once) pack_b(block, q, panel);
          tile.b = panel;
          tile.b_row_stride = width;
        } else {
          tile.b = g_.b + block.p * g_.b_row_stride + j;
          tile.b_row_stride = g_.b_row_stride;
        }
        for (int64_t t = t0; t < t1; ++t) {
          const int64_t i = first_row(t), rows = first_row(t + 1) - i;
          if (a_packed_) {
            tile.a = packed_a + (i - base) * block.depth;
            tile.a_row_stride = 1;
            tile.a_col_stride = rows;
          } else {
            tile.a = g_.a + i * g_.a_row_stride + block.p * g_.a_col_stride;
            tile.a_row_stride = g_.a_row_stride;
            tile.a_col_stride = g_.a_col_stride;
          }
          tile.c = g_.c + i * g_.c_row_stride + j;
          Epilogue<T> here = epilogue;
          if (here.addend != nullptr) here.addend += i * here.addend_row_stride + j;
          if (here.row_bias != nullptr) here.row_bias += i;
          if constexpr (kHasPairs && std::is_same_v<T, float>) {
            if (g_.elements == Elements::Pairs) {
              run_tile<T, Indirect::None, kMaxRows, Elements::Pairs>(rows, width, tile, here);
              continue;
            }
          }
          run_tile<T, Indirect::None>(rows, width, tile, here);
        }
      }
    }
  }

  const Gemm<T>& g_;
  int64_t row_tiles_;
  int64_t depth_;
  int64_t block_tiles_;
  int64_t columns_;
  bool a_packed_;
  bool b_packed_;
};

}  // namespace

Grid share_tiles(int64_t threads, int64_t row_tiles, int64_t panels) {
  Grid best;
  int64_t least = row_tiles * panels;
  for (int64_t r = 1; r <= std::min(threads, row_tiles); ++r) {
    const int64_t c = std::min(threads / r, panels);
    const int64_t largest = ((row_tiles + r - 1) / r) * ((panels + c - 1) / c);
    if (largest <= least) {
      least = largest;
      best = {r, c};
    }
  }
  return best;
}

bool has_pairs() {
#if defined(__AVX512F__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

template <class T>
void gemm(const Gemm<T>& g) {
  if (g.m == 0 || g.n == 0) return;
  if (g.pack_a == nullptr && g.pack_b == nullptr) {
    if (g.k >= 1 && g.k <= kOuterDepth && g.b_col_stride == 1 && g.m * g.n <= kOuterElements)
      return gemm_outer(g);
    if (g.m <= kWideRows && g.b_col_stride == 1) return gemm_wide(g);
    if (kHasDot && g.m <= kDotRows && g.b_row_stride == 1 && g.a_col_stride == 1) return gemm_dot(g);
  }
  BlockedGemm<T>(g).run();
}

template void gemm(const Gemm<float>&);
template void gemm(const Gemm<double>&);
template void pack_panel(const float*, int64_t, int64_t, int64_t, int64_t, float*);
template void pack_panel(const double*, int64_t, int64_t, int64_t, int64_t, double*);

}  // namespace tern::cpu::TERN_CPU_VARIANT
