// Losses of rankings, embeddings and of classes kept apart by a margin. Reduction::BatchMean throws
// ValueError in all. The others are in ops/loss.h.
#pragma once

#include <functional>

#include "tern/ops/loss.h"

namespace tern {

struct MarginRankingLossOptions {
  double margin = 0;
  Reduction reduction = Reduction::Mean;
};
/// max(0, -target * (input1 - input2) + margin), where target 1 ranks input1 higher and -1 input2. All
/// broadcast; throws ShapeError unless they have the same number of dimensions.
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossOptions& options = {});

struct HingeEmbeddingLossOptions {
  double margin = 1;
  Reduction reduction = Reduction::Mean;
};
/// The input, a distance, where target is 1, and max(0, margin - input) where it is -1; broadcasts.
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                            const HingeEmbeddingLossOptions& options = {});

struct CosineEmbeddingLossOptions {
  double margin = 0;
  Reduction reduction = Reduction::Mean;
};
/// With c the cosine of the angle between the rows of input1 and input2, 1 - c where target is 1, and
/// max(0, c - margin) where it is -1. Inputs [N, D] with target [N], or [D] with []; else throws ShapeError.
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossOptions& options = {});

struct TripletMarginLossOptions {
  double margin = 1;  ///< > 0
  double p = 2;       ///< order of the norm
  double eps = 1e-6;
  bool swap = false;  ///< the positive's distance to the negative counts where it is the smaller
  Reduction reduction = Reduction::Mean;
};
/// max(0, d(anchor, positive) - d(anchor, negative) + margin) with d = pairwise_distance over the last
/// dimension (Balntas et al., "Learning local feature descriptors with triplets", 2016). Throws ShapeError
/// unless the three have the same number of dimensions, ValueError unless margin > 0.
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& options = {});

struct TripletMarginWithDistanceLossOptions {
  /// pairwise_distance by default.
  std::function<Tensor(const Tensor& a, const Tensor& b)> distance_function = {};
  double margin = 1;
  bool swap = false;
  Reduction reduction = Reduction::Mean;
};
/// triplet_margin_loss by any distance that has a gradient.
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossOptions& options = {});

struct MultiMarginLossOptions {
  int64_t p = 1;  ///< 1 or 2
  double margin = 1;
  Tensor weight = {};  ///< [C], a factor for each class
  Reduction reduction = Reduction::Mean;
};
/// The mean over all classes of max(0, margin - input[target] + input[c])^p, without the target's own. Input
/// [N, C] with class numbers [N] (int64), or [C] with []. Throws ShapeError, DTypeError, IndexError for a
/// target outside the classes, ValueError for another p.
Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                         const MultiMarginLossOptions& options = {});

/// The sum over the targets t of a row and the classes c that are none of max(0, 1 - input[t] + input[c]),
/// divided by the classes. Input [N, C] or [C]; the targets of a row (int64, like the input) end at the first
/// -1. Its gradient can not be differentiated again (NotImplementedError). Throws ShapeError, DTypeError,
/// IndexError for a target outside the classes.
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                              Reduction reduction = Reduction::Mean);

struct MultilabelSoftMarginLossOptions {
  Tensor weight = {};  ///< broadcasts to the input
  Reduction reduction = Reduction::Mean;
};
/// The mean over the last dimension of binary_cross_entropy_with_logits; input and target broadcast.
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossOptions& options = {});

/// log(1 + exp(-target * input)), without overflow; broadcasts. Targets are 1 or -1.
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);

}  // namespace tern
