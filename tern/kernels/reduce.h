// Arguments of the reduction kernels: sums and their kin, extremes with their positions, moments. Softmax and
// logsumexp are in kernels/softmax.h, scans in kernels/scan.h. Shape and dtype rules are in ops/reduce*.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"
#include "tern/kernels/strides.h"

namespace tern {

/// What `reduce` computes. With n the number of reduced elements, 0 of them giving the value in brackets.
enum class ReduceOp : uint8_t {
  Sum,           ///< sum(x) / param [0]
  Prod,          ///< [1]
  Max,           ///< NaN wins; n > 0
  Min,           ///< NaN wins; n > 0
  Any,           ///< x != 0 for one [false]
  All,           ///< x != 0 for all [true]
  CountNonzero,  ///< [0]
  NanSum,        ///< sum of those that are not NaN [0]; floats only
  Norm1,         ///< sum(|x|) [0]; floats only, as all norms
  Norm2,         ///< sqrt(sum(x^2)) [0]
  NormInf,       ///< max(|x|), NaN wins [0]
  NormNegInf,    ///< min(|x|), NaN wins [inf]
  NormP,         ///< sum(|x|^param)^(1/param) [0]
};

/// The dtype that `reduce` writes for an input dtype.
constexpr DType reduce_result_dtype(ReduceOp op, DType dtype) noexcept {
  switch (op) {
    case ReduceOp::Any:
    case ReduceOp::All:
      return DType::Bool;
    case ReduceOp::CountNonzero:
      return DType::Int64;
    case ReduceOp::Sum:
    case ReduceOp::Prod:
      return is_floating_point(dtype) ? dtype : DType::Int64;
    default:
      return dtype;
  }
}

/// out[k] = op over all elements of `in` at k. Both geometries hold the strides of `in`, `out` is contiguous
/// in the order of `kept`. The order of the reduced dimensions does not matter, but rounding depends on it.
/// 16-bit floats are accumulated in float. The order of additions, and with it the result, depends on the
/// geometry alone: not on the number of threads, nor on the instruction set.
struct ReduceArgs {
  ReduceOp op;
  DType dtype;   ///< of `in`
  double param;  ///< Sum: divisor, for floats (1: none); NormP: p
  void* out;     ///< [kept], of reduce_result_dtype
  const void* in;
  Geometry<1> kept;
  Geometry<1> reduced;
};

/// The extreme and its position: the first one, the first NaN if there is one. reduced.numel > 0.
struct ReduceIndexArgs {
  bool largest;  ///< else the smallest
  DType dtype;   ///< of `in` and `values`
  void* values;  ///< [kept]; or null
  int64_t*
      indices;  ///< [kept], row-major position in `reduced`, whose dimensions are in their original order
  const void* in;
  Geometry<1> kept;
  Geometry<1> reduced;
};

/// out[k] = sum((x - mean)^2) / max(0, n - correction), or its square root. Floats only. 0 elements give NaN.
struct MomentsArgs {
  bool sqrt;
  DType dtype;
  double correction;
  void* out;   ///< [kept]
  void* mean;  ///< [kept]; or null
  const void* in;
  Geometry<1> kept;
  Geometry<1> reduced;
};

#define TERN_REDUCE_KERNELS(X)     \
  X(reduce, ReduceArgs)            \
  X(reduce_index, ReduceIndexArgs) \
  X(moments, MomentsArgs)

}  // namespace tern
