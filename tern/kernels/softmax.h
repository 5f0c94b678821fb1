// Arguments of softmax, log_softmax and logsumexp with their fused gradients. Shape and dtype rules are in
// ops/softmax.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

enum class SoftmaxOp : uint8_t {
  Softmax,     ///< exp(x - max) / sum(exp(x - max))
  LogSoftmax,  ///< x - max - log(sum(exp(x - max)))
  LogSumExp,   ///< max + log(sum(exp(x - max))), -inf for no elements
};

/// A contiguous tensor seen as [outer, size, inner], with `size` the dimension worked along.
struct SoftmaxShape {
  int64_t outer;
  int64_t size;
  int64_t inner;
};

/// Floats, contiguous: `in` of the shape, `out` too (it may be `in`), LogSumExp's [outer, inner]. NaN and
/// rows whose maximum is infinite give what the formulas give, but LogSumExp of such a row is its maximum.
struct SoftmaxArgs {
  SoftmaxOp op;
  DType dtype;
  void* out;
  const void* in;
  SoftmaxShape shape;
};

/// Softmax: grad_in = (grad_out - sum(grad_out * out)) * out. LogSoftmax: grad_in = grad_out - exp(out) *
/// sum(grad_out). All are contiguous and of one dtype; grad_in may be grad_out.
struct SoftmaxBackwardArgs {
  SoftmaxOp op;
  DType dtype;
  void* grad_in;
  const void* grad_out;
  const void* out;
  SoftmaxShape shape;
};

#define TERN_SOFTMAX_KERNELS(X) \
  X(softmax, SoftmaxArgs)       \
  X(softmax_backward, SoftmaxBackwardArgs)

}  // namespace tern
