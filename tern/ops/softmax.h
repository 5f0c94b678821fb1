// Softmax, log_softmax and logsumexp, computed against overflow by taking the maximum away first.
#pragma once

#include <optional>

#include "tern/core/tensor.h"

namespace tern {

/// exp(x) / sum(exp(x)) along `dim`; `dtype` converts x first. Throws DTypeError unless floating point,
/// IndexError for a dimension that is not there.
Tensor softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype = {});
/// softmax(-x).
Tensor softmin(const Tensor& x, int64_t dim, std::optional<DType> dtype = {});
/// log(softmax(x)), computed as x - logsumexp(x).
Tensor log_softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype = {});

/// log(sum(exp(x))) over `dims` (an empty list: all); integers become the default dtype. No elements give
/// -inf.
Tensor logsumexp(const Tensor& x, IntArrayRef dims, bool keepdim = false);
Tensor logsumexp(const Tensor& x, Dimension auto dim, bool keepdim = false) {
  return logsumexp(x, IntArrayRef{static_cast<int64_t>(dim)}, keepdim);
}

}  // namespace tern
