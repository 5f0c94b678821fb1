// What losses share: the reduction, and gradients that can not be differentiated again. For loss*.cpp only.
#pragma once

#include <array>

#include "tern/ops/common.h"
#include "tern/ops/loss.h"
#include "tern/ops/reduce.h"

namespace tern {

inline void check_reduction(const char* op, Reduction reduction) {
  TERN_CHECK(reduction != Reduction::BatchMean, ValueError,
             "{}: batchmean is not a valid value for reduction: give none, mean or sum", op);
}

inline Tensor reduced(const Tensor& loss, Reduction reduction) {
  return reduction == Reduction::None ? loss : reduction == Reduction::Mean ? mean(loss) : sum(loss);
}

/// `grad`, a gradient of `op` made of x and g, which throws where it is differentiated, as PyTorch's does.
inline Tensor differentiable_once(const char* op, const Tensor& grad, const Tensor& x, const Tensor& g) {
  if (tracks_grad(x, g))
    record("not_implemented", grad, {x, g}, [op](GradContext&, const Tensor&) -> std::array<Tensor, 2> {
      TERN_THROW(NotImplementedError, "{}: the derivative of its gradient is not implemented", op);
    });
  return grad;
}

}  // namespace tern
