// The microkernel of the matrix product: a tile of C of up to kMaxRows rows and a few registers of columns is
// held in registers while k runs. How matrices are cut into tiles is decided in gemm.cpp and conv_direct.cpp.
#pragma once

#include <array>
#include <utility>

#include "tern/backends/cpu/kernels/gemm_vec.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// Rows of the largest tile: kMaxRows * kTileVectors accumulators, kTileVectors columns of B and a broadcast
/// fill the registers (32 with AVX-512, else 16).
#if defined(__AVX512F__)
inline constexpr int kMaxRows = 14;
#else
inline constexpr int kMaxRows = 6;
#endif
inline constexpr int kTileVectors = 2;
template <class T>
inline constexpr int kTileColumns = kTileVectors* kLanes<T>;

/// What is done to a tile of sums before it is stored: relu(alpha * sum + beta * addend + row_bias).
template <class T>
struct Epilogue {
  const T* addend = nullptr;  ///< first element for the tile, or null; columns are adjacent
  int64_t addend_row_stride = 0;
  const T* row_bias = nullptr;  ///< one value for each row, or null
  T alpha = 1;
  T beta = 1;
  bool relu = false;
};

/// A tile: c[i, j] = epilogue(sum over p of a[i, p] * b[p, j]).
/// The row p of b starts at b + p * b_row_stride, or at b + b_offsets[p] where the kernel is an indirect one.
template <class T>
struct Tile {
  int64_t k = 0;
  const T* a = nullptr;
  int64_t a_row_stride = 0;
  int64_t a_col_stride = 0;
  const T* b = nullptr;
  int64_t b_row_stride = 0;
  const int32_t* b_offsets = nullptr;
  T* c = nullptr;
  int64_t c_row_stride = 0;
  int64_t tail = 0;  ///< columns in the last register of a partial tile
};

template <class T, int Rows, int Vectors, bool Partial, bool Indirect>
[[gnu::noinline]] void micro_kernel(const Tile<T>& tile, const Epilogue<T>& epilogue) {
  constexpr int L = kLanes<T>;
  constexpr int kGroups = (Rows + 3) / 4;  // rows are addressed in fours: base + {0, 1, 2, 3} * stride
  const int64_t rs = tile.a_row_stride, rs3 = 3 * rs, cs = tile.a_col_stride;
  const T* a[kGroups];
  for (int g = 0; g < kGroups; ++g) a[g] = tile.a + 4 * g * rs;
  const T* b = tile.b;
  const Tail<T> tail(Partial ? tile.tail : 0);

  // The results' cache lines come in while the sums run.
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Vectors; ++j) __builtin_prefetch(tile.c + i * tile.c_row_stride + j * L, 1);

  Vec<T> acc[Rows][Vectors];
  TERN_UNROLL for (int i = 0; i < Rows; ++i) {
    TERN_UNROLL for (int j = 0; j < Vectors; ++j) acc[i][j] = Vec<T>{};
  }
  for (int64_t p = 0; p < tile.k; ++p) {
    const T* row = Indirect ? b + tile.b_offsets[p] : b;
    // Packed operands come from the second-level cache, 16 steps ahead.
    __builtin_prefetch(a[0] + 16 * cs);
    if constexpr (!Indirect) {
      TERN_UNROLL for (int j = 0; j < Vectors; ++j) __builtin_prefetch(row + 16 * tile.b_row_stride + j * L);
    }
    Vec<T> bv[Vectors];
    TERN_UNROLL for (int j = 0; j < Vectors; ++j) {
      bv[j] = Partial && j == Vectors - 1 ? tail.load(row + j * L) : load(row + j * L);
    }
    TERN_UNROLL for (int i = 0; i < Rows; ++i) {
      const T* base = a[i / 4];
      const T* x = i % 4 == 0 ? base : i % 4 == 1 ? base + rs : i % 4 == 2 ? base + 2 * rs : base + rs3;
      Vec<T> av = splat(*x);
      TERN_UNROLL for (int j = 0; j < Vectors; ++j) acc[i][j] += av * bv[j];
    }
    TERN_UNROLL for (int g = 0; g < kGroups; ++g) a[g] += cs;
    if constexpr (!Indirect) b += tile.b_row_stride;
  }

  const bool scaled = epilogue.alpha != T(1), scaled_addend = epilogue.beta != T(1);
  TERN_UNROLL for (int i = 0; i < Rows; ++i) {
    TERN_UNROLL for (int j = 0; j < Vectors; ++j) {
      const bool partial = Partial && j == Vectors - 1;
      Vec<T> v = acc[i][j];
      if (scaled) v *= splat(epilogue.alpha);
      if (epilogue.addend != nullptr) {
        const T* from = epilogue.addend + i * epilogue.addend_row_stride + j * L;
        Vec<T> x = partial ? tail.load(from) : load(from);
        v += scaled_addend ? x * splat(epilogue.beta) : x;
      }
      if (epilogue.row_bias != nullptr) v += splat(epilogue.row_bias[i]);
      if (epilogue.relu) v = relu<T>(v);
      T* to = tile.c + i * tile.c_row_stride + j * L;
      if (partial)
        tail.store(to, v);
      else
        store(to, v);
    }
  }
}

template <class T>
using MicroKernel = void (*)(const Tile<T>&, const Epilogue<T>&);

namespace detail {
template <class T, int Vectors, bool Partial, bool Indirect, int... Row>
constexpr std::array<MicroKernel<T>, sizeof...(Row)> micro_kernels(std::integer_sequence<int, Row...>) {
  return {&micro_kernel<T, Row + 1, Vectors, Partial, Indirect>...};
}
}  // namespace detail

/// The kernel for `rows` (1 to MaxRows) and Vectors registers of columns.
template <class T, int MaxRows, int Vectors, bool Partial, bool Indirect>
[[gnu::always_inline]] inline MicroKernel<T> find_micro_kernel(int64_t rows) {
  static constexpr auto kernels =
      detail::micro_kernels<T, Vectors, Partial, Indirect>(std::make_integer_sequence<int, MaxRows>{});
  return kernels[static_cast<size_t>(rows - 1)];
}

/// Runs the kernel for a tile of `rows` x `columns`, rows <= MaxRows, columns <= kTileColumns.
template <class T, bool Indirect, int MaxRows = kMaxRows>
[[gnu::always_inline]] inline void run_tile(int64_t rows, int64_t columns, Tile<T>& tile,
                                            const Epilogue<T>& epilogue) {
  constexpr int L = kLanes<T>;
  if (columns == kTileColumns<T>) {
    find_micro_kernel<T, MaxRows, kTileVectors, false, Indirect>(rows)(tile, epilogue);
  } else if (columns > L) {
    tile.tail = columns - L;
    find_micro_kernel<T, MaxRows, kTileVectors, true, Indirect>(rows)(tile, epilogue);
  } else {
    tile.tail = columns;
    find_micro_kernel<T, MaxRows, 1, true, Indirect>(rows)(tile, epilogue);
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
