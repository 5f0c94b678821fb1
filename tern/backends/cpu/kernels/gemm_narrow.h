// The product of few rows of 16-bit floats.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// Rows up to which the weights of a layer are read where they are.
inline constexpr int64_t kNarrowRows = 8;
/// The same where the rows of the weights are side by side, and not their columns.
inline constexpr int64_t kNarrowRowsOfRows = 4;
/// Rows of weights that are read at once.
inline constexpr int64_t kRowsAtOnce = 8;

/// out[m, n] = a @ b with sums in float, for rows of a (a_stride apart) and columns of b (b_stride apart)
/// whose elements are adjacent. T is Half or BFloat16. The same bits on every variant and for any number of
/// rows.
template <class T>
void gemm_narrow_dot(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_stride, const T* b,
                     int64_t b_stride, float* out);

/// The same for rows of b (b_stride apart) whose elements are adjacent.
template <class T>
void gemm_narrow_rows(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_stride, const T* b,
                      int64_t b_stride, float* out);

/// sums[j] += x[0] * w[0, j] + x[1] * w[1, j] + ..., in this order, for up to kRowsAtOnce rows.
template <class T>
void add_narrow_rows(const float* x, const T* w, int64_t w_stride, int64_t rows, int64_t columns,
                     float* sums);

}  // namespace tern::cpu::TERN_CPU_VARIANT
