// Similarity and distance of vectors as layers. The functions are in ops/distance.h.
#pragma once

#include "tern/nn/module.h"
#include "tern/ops/distance.h"

namespace tern::nn {

/// The cosine of the angle between vectors along `dim`; see tern::cosine_similarity.
struct CosineSimilarity final : Module {
  explicit CosineSimilarity(int64_t dim_ = 1, double eps_ = 1e-8) : dim(dim_), eps(eps_) {}
  int64_t dim;
  double eps;
  TERN_MODULE()
  Tensor forward(const Tensor& x1, const Tensor& x2) const { return cosine_similarity(x1, x2, dim, eps); }
};

/// The norm of order p of the difference along the last dimension; see tern::pairwise_distance.
struct PairwiseDistance final : Module {
  explicit PairwiseDistance(double p_ = 2, double eps_ = 1e-6, bool keepdim_ = false)
      : p(p_), eps(eps_), keepdim(keepdim_) {}
  double p;
  double eps;
  bool keepdim;
  TERN_MODULE()
  Tensor forward(const Tensor& x1, const Tensor& x2) const {
    return pairwise_distance(x1, x2, p, eps, keepdim);
  }
};

}  // namespace tern::nn
