// The product of few rows of 16-bit floats.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// Rows up to which the weights of a layer are read where they are.
inline constexpr int64_t kNarrowRows = 8;

/// out[m, n] = a @ b with sums in float, for rows of a (a_stride apart) and columns of b (b_stride apart)
/// whose elements are adjacent. T is Half or BFloat16. The same bits on every variant and for any number of
/// rows.
template <class T>
void gemm_narrow_dot(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_stride, const T* b,
                     int64_t b_stride, float* out);

}  // namespace tern::cpu::TERN_CPU_VARIANT
