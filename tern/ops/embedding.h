// Table look-up with a gradient for the table. The layer is nn::Embedding.
#pragma once

#include <optional>

#include "tern/core/tensor.h"

namespace tern {

/// Rows of `weight` [num, dim] in the shape of `input` (int64 or int32) with
/// `dim` at the end. Row `padding_idx` (negative: from the end) gets no
/// gradient. Gradients of equal indices are added in row-major order, so that
/// the result does not depend on threads. Throws IndexError for an index out of
/// range (negative ones too).
Tensor embedding(const Tensor& input, const Tensor& weight, std::optional<int64_t> padding_idx = {});

}  // namespace tern
