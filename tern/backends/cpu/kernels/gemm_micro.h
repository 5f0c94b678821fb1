// The microkernel of the matrix product: a tile of C of up to kMaxRows rows and a few registers of columns is
// held in registers while k runs. How matrices are cut into tiles is decided in gemm.cpp, conv_indirect.cpp
// and conv_direct*.cpp.
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

/// The operand that is read where it is, each k at an offset of its own.
enum class Indirect { None, A, B };

/// What an element of A and B is: a float, or a pair of bfloat16 (the first in the lower half) whose products
/// are both added, the second one's first, each with one rounding.
enum class Elements { Values, Pairs };
#if defined(__AVX512F__)
inline constexpr bool kHasPairs = true;  ///< where the processor has AVX512-BF16
#else
inline constexpr bool kHasPairs = false;
#endif

/// A tile: c[i, j] = epilogue(sum over p of a[i, p] * b[p, j]).
/// Column p of a is at a + p * a_col_stride, and row p of b at b + p * b_row_stride; that of an indirect
/// operand at + offsets[p]. The rows of an indirect a from (number of rows + 1) / 2 on start at a +
/// a_second_half.
template <class T>
struct Tile {
  int64_t k = 0;
  const T* a = nullptr;
  int64_t a_row_stride = 0;
  int64_t a_col_stride = 0;
  int64_t a_second_half = 0;
  const T* b = nullptr;
  int64_t b_row_stride = 0;
  const int32_t* offsets = nullptr;
  T* c = nullptr;
  int64_t c_row_stride = 0;
  int64_t tail = 0;  ///< columns in the last register of a partial tile
};

/// sum += a * b.
template <Elements elements, class V>
[[gnu::always_inline]] inline void add_product(V& sum, const V& a, const V& b) {
  if constexpr (elements == Elements::Values) {
    sum += a * b;
  } else {
#if defined(__AVX512F__)
    // By its name, since the kernels are compiled for processors without it too.
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#endif
  }
}

template <class T, int Rows, int Vectors, bool Partial, Indirect indirect, Elements elements>
[[gnu::noinline]] void micro_kernel(const Tile<T>& tile, const Epilogue<T>& epilogue) {
  constexpr int L = kLanes<T>, kLineVectors = 64 / kVectorBytes;
  // Rows are addressed in fours: base + {0, 1, 2, 3} * stride. The fours of an indirect a start anew at its
  // half.
  constexpr int kHalf = indirect == Indirect::A ? (Rows + 1) / 2 : Rows, kFours = (kHalf + 3) / 4;
  constexpr int kGroups = kHalf < Rows ? 2 * kFours : kFours;
  const int64_t rs = tile.a_row_stride, rs3 = 3 * rs, cs = tile.a_col_stride;
  const T* a[kGroups];
  for (int g = 0; g < kGroups; ++g)
    a[g] = tile.a + (g < kFours ? 4 * g * rs : tile.a_second_half + 4 * (g - kFours) * rs);
  const T* b = tile.b;
  const Tail<T> tail(Partial ? tile.tail : 0);

  // The results' cache lines come in while the sums run.
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Vectors; j += kLineVectors)
      __builtin_prefetch(tile.c + i * tile.c_row_stride + j * L, 1);

  Vec<T> acc[Rows][Vectors];
  TERN_UNROLL for (int i = 0; i < Rows; ++i) {
    TERN_UNROLL for (int j = 0; j < Vectors; ++j) acc[i][j] = Vec<T>{};
  }
  for (int64_t p = 0; p < tile.k; ++p) {
    const T* row = indirect == Indirect::B ? b + tile.offsets[p] : b;
    const int64_t a_offset = indirect == Indirect::A ? tile.offsets[p] : 0;
    // Packed operands come from the second-level cache, 16 steps ahead; tiles of more registers are less
    // deep.
    if constexpr (indirect != Indirect::A) __builtin_prefetch(a[0] + 16 * cs);
    if constexpr (indirect != Indirect::B && Vectors <= kTileVectors) {
      TERN_UNROLL for (int j = 0; j < Vectors; j += kLineVectors)
          __builtin_prefetch(row + 16 * tile.b_row_stride + j * L);
    }
    Vec<T> bv[Vectors];
    TERN_UNROLL for (int j = 0; j < Vectors; ++j) {
      bv[j] = Partial && j == Vectors - 1 ? tail.load(row + j * L) : load(row + j * L);
    }
    TERN_UNROLL for (int i = 0; i < Rows; ++i) {
      const int in_half = i % kHalf;
      const T* base = a[i / kHalf * kFours + in_half / 4] + a_offset;
      const T* x = base + (in_half % 4 == 3 ? rs3 : in_half % 4 * rs);
      Vec<T> av = splat(*x);
      TERN_UNROLL for (int j = 0; j < Vectors; ++j) add_product<elements>(acc[i][j], av, bv[j]);
    }
    if constexpr (indirect != Indirect::A) {
      TERN_UNROLL for (int g = 0; g < kGroups; ++g) a[g] += cs;
    }
    if constexpr (indirect != Indirect::B) b += tile.b_row_stride;
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
template <class T, int Vectors, bool Partial, Indirect indirect, Elements elements, int... Row>
constexpr std::array<MicroKernel<T>, sizeof...(Row)> micro_kernels(std::integer_sequence<int, Row...>) {
  return {&micro_kernel<T, Row + 1, Vectors, Partial, indirect, elements>...};
}
}  // namespace detail

/// The kernel for `rows` (1 to MaxRows) and Vectors registers of columns.
template <class T, int MaxRows, int Vectors, bool Partial, Indirect indirect,
          Elements elements = Elements::Values>
[[gnu::always_inline]] inline MicroKernel<T> find_micro_kernel(int64_t rows) {
  static constexpr auto kernels = detail::micro_kernels<T, Vectors, Partial, indirect, elements>(
      std::make_integer_sequence<int, MaxRows>{});
  return kernels[static_cast<size_t>(rows - 1)];
}

/// Runs the kernel for a tile whose columns fill one or kTileVectors registers.
template <Indirect indirect, class T>
[[gnu::always_inline]] inline void run_whole_tile(int64_t rows, int64_t columns, const Tile<T>& tile,
                                                  const Epilogue<T>& epilogue) {
  if (columns == kTileColumns<T>)
    find_micro_kernel<T, kMaxRows, kTileVectors, false, indirect>(rows)(tile, epilogue);
  else
    find_micro_kernel<T, kMaxRows, 1, false, indirect>(rows)(tile, epilogue);
}

/// Runs the kernel for a tile of `rows` x `columns`, rows <= MaxRows, columns <= kTileColumns.
template <class T, Indirect indirect, int MaxRows = kMaxRows, Elements elements = Elements::Values>
[[gnu::always_inline]] inline void run_tile(int64_t rows, int64_t columns, Tile<T>& tile,
                                            const Epilogue<T>& epilogue) {
  constexpr int L = kLanes<T>;
  if (columns == kTileColumns<T>) {
    find_micro_kernel<T, MaxRows, kTileVectors, false, indirect, elements>(rows)(tile, epilogue);
  } else if (columns > L) {
    tile.tail = columns - L;
    find_micro_kernel<T, MaxRows, kTileVectors, true, indirect, elements>(rows)(tile, epilogue);
  } else {
    tile.tail = columns;
    find_micro_kernel<T, MaxRows, 1, true, indirect, elements>(rows)(tile, epilogue);
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
