// Arguments of the sorting kernel. Shape and dtype rules are in ops/sort.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

/// The first `count` elements of each row [o, :, k] of `in` in sorted order, or only number `count` - 1 of
/// them. NaN is larger than every number, -0 equal to 0; equal elements keep their order. Every computable
/// dtype; all tensors are contiguous.
struct SortArgs {
  bool descending;
  bool only_last;  ///< write just element `count` - 1 of the order
  bool nan_wins;   ///< with only_last: when a row has NaN, its first NaN instead
  DType dtype;
  void* values;      ///< [outer, count or 1, inner]
  int64_t* indices;  ///< the same shape: positions along `size`
  const void* in;    ///< [outer, size, inner]
  int64_t outer;
  int64_t size;
  int64_t inner;
  int64_t count;  ///< 0 <= count <= size
};

#define TERN_SORT_KERNELS(X) X(sort, SortArgs)

}  // namespace tern
