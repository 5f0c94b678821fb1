// What losses share: the reduction. For loss*.cpp only.
#pragma once

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

}  // namespace tern
