// Which elements dropout keeps, drawn once and applied to several tensors of one shape: for operators that
// have dropout among their steps. Internal to ops; the operator is in ops/random.h.
#pragma once

#include <optional>

#include "tern/core/generator.h"
#include "tern/core/tensor.h"
#include "tern/kernels/list.h"

namespace tern {

class DropoutMask {
 public:
  /// Draws for tensors of the shape, dtype and device of `like`, which is not read.
  DropoutMask(const Tensor& like, double p, const std::optional<Generator>& generator = {});

  /// x with zeros for what is dropped and the rest multiplied by 1 / (1 - p), recorded.
  Tensor apply(const Tensor& x) const;

 private:
  DropoutArgs args_{};  ///< says by its position which numbers decide
  Tensor factors_;      ///< those of PyTorch's numbers, else undefined
};

}  // namespace tern
