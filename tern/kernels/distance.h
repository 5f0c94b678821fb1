// Arguments of the kernels of distances between the rows of matrices; what one coordinate adds to a distance
// is in distance_terms.h. Checks and second derivatives are in tern/ops/distance.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

/// Rows a[n, i] and b[n, j] of `size` coordinates each. Everything is contiguous and of `dtype`. The distance
/// is the p-norm of their difference: (sum |a - b|^p)^(1 / p), for p = 0 the number of coordinates that
/// differ, for infinity the largest |a - b|.
struct DistanceProblem {
  DType dtype{};  ///< float32 or float64
  double p = 2;
  int64_t batch = 0;
  int64_t rows = 0;    ///< of a
  int64_t others = 0;  ///< rows of b
  int64_t size = 0;
  const void* a = nullptr;  ///< [batch, rows, size]
  const void* b = nullptr;  ///< [batch, others, size]
};

/// output[n, i, j] = distance of a[n, i] and b[n, j].
struct DistanceArgs {
  DistanceProblem problem;
  void* output = nullptr;  ///< [batch, rows, others]
};

/// grad_a[n, i] = sum over j of grad_output[n, i, j] times the slope of the distance; coordinates that are
/// equal, and rows whose distance is 0, give 0. p is not 0. Sums have an order that is always the same.
struct DistanceBackwardArgs {
  DistanceProblem problem;
  const void* output = nullptr;       ///< [batch, rows, others]
  const void* grad_output = nullptr;  ///< [batch, rows, others]
  void* grad_a = nullptr;             ///< [batch, rows, size]
};

#define TERN_DISTANCE_KERNELS(X) \
  X(distance, DistanceArgs)      \
  X(distance_backward, DistanceBackwardArgs)

}  // namespace tern
