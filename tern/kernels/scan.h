// Arguments of the scans: running sums, products and extremes, and the gradients of products.
// Shape and dtype rules are in ops/scan.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

enum class ScanOp : uint8_t { Sum, Prod, LogSumExp };  // the last of floats only

/// out[o, i, k] = op over in[o, 0..i, k], or over in[o, i..size-1, k] with `reverse`. `in` is contiguous
/// [outer, size, inner]. Integers and bool give int64 (wrapping); float32 is accumulated in float64, 16-bit
/// floats in float32.
struct ScanArgs {
  ScanOp op;
  bool reverse;
  DType dtype;  ///< of `in`
  void* out;    ///< like `in`, of the same dtype or int64; may be `in` for floats
  const void* in;
  int64_t outer;
  int64_t size;
  int64_t inner;
};

/// values[o, i, k] = the largest (smallest) of in[o, 0..i, k], and indices[o, i, k] its position along
/// `size`: the last of equal ones; from the first NaN on, that of the latest NaN. Every computable dtype, all
/// contiguous [outer, size, inner].
struct ScanExtremeArgs {
  bool largest;
  DType dtype;
  void* values;
  int64_t* indices;
  const void* in;
  int64_t outer;
  int64_t size;
  int64_t inner;
};

/// grad_in of a product along `size`, exact where elements are zero. Floats only, all contiguous.
/// cumulative: y = cumprod(x), grad_in[k] = prod(x[..k-1]) * sum over i >= k of grad_out[i] *
/// prod(x[k+1..i]); else: y = prod(x), grad_out is [outer, inner], grad_in[k] = grad_out * prod(x[..k-1]) *
/// prod(x[k+1..]).
struct ProdBackwardArgs {
  bool cumulative;
  DType dtype;
  void* grad_in;  ///< [outer, size, inner]
  const void* grad_out;
  const void* in;  ///< [outer, size, inner]
  int64_t outer;
  int64_t size;
  int64_t inner;
};

#define TERN_SCAN_KERNELS(X)       \
  X(scan, ScanArgs)                \
  X(scan_extreme, ScanExtremeArgs) \
  X(prod_backward, ProdBackwardArgs)

}  // namespace tern
