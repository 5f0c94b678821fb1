// Vectors of length 1, and how far vectors are from each other. Norms themselves are in ops/reduce.h.
#pragma once

#include <string_view>

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
/// [..., n, k]: the distance of order p from each of a's rows [..., n, m] to each of b's [..., k, m]; leading
/// dimensions broadcast. p = 2 goes by a matrix product where n or k is more than 25, which is fast, and
/// inexact for vectors that are close; compute_mode "use_mm_for_euclid_dist" and
/// "donot_use_mm_for_euclid_dist" decide otherwise. The gradient at distance 0 is 0. Throws DTypeError unless
/// both are of one floating-point dtype, ShapeError, ValueError for p < 0.
Tensor cdist(const Tensor& a, const Tensor& b, double p = 2,
             std::string_view compute_mode = "use_mm_for_euclid_dist_if_necessary");
/// The distances of order p between the rows of x [n, m], each pair i < j once in row-major order:
/// [n * (n - 1) / 2]. The gradient at distance 0 is 0. Throws ShapeError unless x has two dimensions,
/// DTypeError unless it is floating point, ValueError for p < 0.
Tensor pdist(const Tensor& x, double p = 2);
/// x with each slice of `dim` whose norm of order p is above maxnorm scaled down to it.
Tensor renorm(const Tensor& x, double p, int64_t dim, double maxnorm);

}  // namespace tern
