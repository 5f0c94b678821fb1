// Transposition of small blocks in registers, the building stone of packing and of batch-minor image layouts.
#pragma once

#include "tern/backends/cpu/kernels/gemm_vec.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// r[i][j] becomes r[j][i].
[[gnu::always_inline]] inline void transpose_registers(Vec<float> (&r)[kLanes<float>]) {
  constexpr int L = kLanes<float>;
#if defined(__AVX512F__)
  Vec<float> t[L], q[L];
  TERN_UNROLL for (int i = 0; i < L; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    t[i + 1] =
        __builtin_shufflevector(r[i], r[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
  TERN_UNROLL for (int i = 0; i < L;
                   i += 4) {  // q[i + j]: in quarter l the column 4 l + j of rows i .. i + 3
    TERN_UNROLL for (int j = 0; j < 2; ++j) {
      q[i + 2 * j] = __builtin_shufflevector(t[i + j], t[i + j + 2], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25,
                                             12, 13, 28, 29);
      q[i + 2 * j + 1] = __builtin_shufflevector(t[i + j], t[i + j + 2], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11,
                                                 26, 27, 14, 15, 30, 31);
    }
  }
  TERN_UNROLL for (int j = 0; j < 4; ++j) {
    Vec<float> even[2], odd[2];  // quarters 0 and 2, 1 and 3, of the upper and the lower rows
    TERN_UNROLL for (int h = 0; h < 2; ++h) {
      even[h] = __builtin_shufflevector(q[8 * h + j], q[8 * h + 4 + j], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18,
                                        19, 24, 25, 26, 27);
      odd[h] = __builtin_shufflevector(q[8 * h + j], q[8 * h + 4 + j], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22,
                                       23, 28, 29, 30, 31);
    }
    r[j] =
        __builtin_shufflevector(even[0], even[1], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    r[8 + j] =
        __builtin_shufflevector(even[0], even[1], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    r[4 + j] =
        __builtin_shufflevector(odd[0], odd[1], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    r[12 + j] =
        __builtin_shufflevector(odd[0], odd[1], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  }
#elif defined(__AVX2__)
  Vec<float> t[L], q[L];
  TERN_UNROLL for (int i = 0; i < L; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  TERN_UNROLL for (int i = 0; i < L; i += 4) {
    TERN_UNROLL for (int j = 0; j < 2; ++j) {
      q[i + 2 * j] = __builtin_shufflevector(t[i + j], t[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      q[i + 2 * j + 1] = __builtin_shufflevector(t[i + j], t[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  TERN_UNROLL for (int j = 0; j < 4; ++j) {
    r[j] = __builtin_shufflevector(q[j], q[4 + j], 0, 1, 2, 3, 8, 9, 10, 11);
    r[4 + j] = __builtin_shufflevector(q[j], q[4 + j], 4, 5, 6, 7, 12, 13, 14, 15);
  }
#else
  Vec<float> t[L];
  TERN_UNROLL for (int j = 0; j < L; ++j) t[j] = Vec<float>{r[0][j], r[1][j], r[2][j], r[3][j]};
  TERN_UNROLL for (int j = 0; j < L; ++j) r[j] = t[j];
#endif
}

/// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns; both at most kLanes.
template <class T>
[[gnu::always_inline]] inline void transpose_block(const T* from, int64_t from_stride, int64_t rows,
                                                   int64_t columns, T* to, int64_t to_stride) {
  if constexpr (sizeof(T) == 4) {
    constexpr int L = kLanes<float>;
    Vec<float> r[L];
    if (rows == L && columns == L) {
      TERN_UNROLL for (int i = 0; i < L; ++i) r[i] = load(from + i * from_stride);
      transpose_registers(r);
      TERN_UNROLL for (int j = 0; j < L; ++j) store(to + j * to_stride, r[j]);
    } else {
      const Tail<float> in(columns), out(rows);
      TERN_UNROLL for (int i = 0; i < L; ++i) r[i] =
          i < rows ? in.load(from + i * from_stride) : Vec<float>{};
      transpose_registers(r);
      TERN_UNROLL for (int j = 0; j < L; ++j) {
        if (j < columns) out.store(to + j * to_stride, r[j]);
      }
    }
  } else {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
