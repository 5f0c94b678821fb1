// Argument structs of the kernels that make tensors from little or nothing: ranges and triangles. fill is in
// kernels/pointwise.h, random numbers are in kernels/random.h.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

/// out[i] = start + i * step for i < pivot, end - (count - 1 - i) * step from there on; contiguous, every
/// dtype but bool. Integer dtypes compute in int64 with the integer fields when `integers`, otherwise all
/// compute in double and integers cut the result toward zero.
struct RangeArgs {
  DType dtype;
  bool integers;
  void* out;
  int64_t count;
  int64_t pivot;
  double start, step, end;
  int64_t integer_start, integer_step;
};

/// out[b, i, j] = in[b, i, j] where j - i <= diagonal (lower) or >= diagonal (upper), 0 elsewhere. Both
/// contiguous, of one dtype; elements are moved as bits. out may be in itself.
struct TriangleArgs {
  DType dtype;
  bool upper;
  void* out;
  const void* in;
  int64_t batch, rows, cols;
  int64_t diagonal;
};

#define TERN_CREATION_KERNELS(X) \
  X(range, RangeArgs)            \
  X(triangle, TriangleArgs)

}  // namespace tern
