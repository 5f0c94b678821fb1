// Transposition of small squares in registers: for packing, batch-minor image layouts, and copies between
// layouts whose fastest dimensions differ.
#pragma once

#include <utility>

#include "tern/backends/cpu/kernels/gemm_vec.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// Rows and columns of the square: one row fills a register, or 16 lanes of it.
template <class T>
inline constexpr int kTransposeTile = kLanes<T> < 16 ? kLanes<T> : 16;

template <class T, int n>
struct TransposeRow {
  typedef T type __attribute__((vector_size(n * sizeof(T))));
  typedef T unaligned __attribute__((vector_size(n * sizeof(T)), aligned(alignof(T)), may_alias));
};

/// Swaps the upper right and lower left d x d squares of every 2d x 2d square that rows a and b, d apart,
/// share.
template <int d, class Row, int... lane>
[[gnu::always_inline]] inline void exchange_squares(Row& a, Row& b, std::integer_sequence<int, lane...>) {
  constexpr int n = sizeof...(lane);
  Row upper = __builtin_shufflevector(a, b, (lane & d ? n + lane - d : lane)...);
  Row lower = __builtin_shufflevector(a, b, (lane & d ? n + lane : lane + d)...);
  a = upper;
  b = lower;
}

/// r[i][j] becomes r[j][i]; squares of side d come first, and d starts at half the rows.
template <int d = -1, class Row, int n>
[[gnu::always_inline]] inline void transpose_registers(Row (&r)[n]) {
  if constexpr (d < 0) {
    transpose_registers<n / 2>(r);
  } else if constexpr (d > 0) {
    TERN_UNROLL for (int i = 0; i < n; ++i) {
      if ((i & d) == 0) exchange_squares<d>(r[i], r[i + d], std::make_integer_sequence<int, n>());
    }
    transpose_registers<d / 2>(r);
  }
}

/// to[j * to_stride + i] = from[i * from_stride + j] for i, j < n, which is a power of two.
template <int n, class T>
[[gnu::always_inline]] inline void transpose_square(const T* from, int64_t from_stride, T* to,
                                                    int64_t to_stride) {
  using Unaligned = typename TransposeRow<T, n>::unaligned;
  typename TransposeRow<T, n>::type r[n];
  TERN_UNROLL for (int i = 0; i < n; ++i) r[i] = *reinterpret_cast<const Unaligned*>(from + i * from_stride);
  transpose_registers(r);
  TERN_UNROLL for (int j = 0; j < n; ++j) * reinterpret_cast<Unaligned*>(to + j * to_stride) = r[j];
}

/// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns; both at most kLanes. T is
/// float or double.
template <class T>
[[gnu::always_inline]] inline void transpose_block(const T* from, int64_t from_stride, int64_t rows,
                                                   int64_t columns, T* to, int64_t to_stride) {
  constexpr int L = kLanes<T>;
  if (rows == L && columns == L) return transpose_square<L>(from, from_stride, to, to_stride);
  const Tail<T> in(columns), out(rows);
  Vec<T> r[L];
  TERN_UNROLL for (int i = 0; i < L; ++i) r[i] = i < rows ? in.load(from + i * from_stride) : Vec<T>{};
  transpose_registers(r);
  TERN_UNROLL for (int j = 0; j < L; ++j) {
    if (j < columns) out.store(to + j * to_stride, r[j]);
  }
}

/// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns, of any size. The elements are
/// `item` bytes: 1, 2, 4 or 8; strides are in elements.
void transpose_elements(size_t item, const void* from, int64_t from_stride, int64_t rows, int64_t columns,
                        void* to, int64_t to_stride);

}  // namespace tern::cpu::TERN_CPU_VARIANT
