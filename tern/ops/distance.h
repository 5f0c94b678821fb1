// Vectors of length 1, and how far vectors are from each other. Norms themselves are in ops/reduce.h.
#pragma once

#include "tern/core/tensor.h"

namespace tern {

/// x / max(norm of order p along `dim`, eps). Throws as norm does.
Tensor normalize(const Tensor& x, double p = 2, int64_t dim = 1, double eps = 1e-12);
/// a . b / (max(|a|, eps) * max(|b|, eps)) along `dim`; a and b broadcast and are promoted. Gradients go
/// through the norms also where eps has taken their place, as in PyTorch. Throws DTypeError unless one of
/// the two is floating point.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim = 1, double eps = 1e-8);
/// The norm of order p of a - b + eps along the last dimension; a and b broadcast.
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2, double eps = 1e-6,
                         bool keepdim = false);

}  // namespace tern
