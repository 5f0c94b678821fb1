// Losses of rankings, embeddings and margins as modules. The functions themselves are in ops/loss_margin.h.
#pragma once

#include "tern/nn/module.h"
#include "tern/ops/loss_margin.h"

namespace tern::nn {

/// Ranks one input above the other; see tern::margin_ranking_loss.
struct MarginRankingLoss final : Module {
  explicit MarginRankingLoss(const MarginRankingLossOptions& options_ = {}) : options(options_) {}
  MarginRankingLossOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target) const {
    return margin_ranking_loss(input1, input2, target, options);
  }
};

/// Of distances; see tern::hinge_embedding_loss.
struct HingeEmbeddingLoss final : Module {
  explicit HingeEmbeddingLoss(const HingeEmbeddingLossOptions& options_ = {}) : options(options_) {}
  HingeEmbeddingLossOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& input, const Tensor& target) const {
    return hinge_embedding_loss(input, target, options);
  }
};

/// Of the angle between two vectors; see tern::cosine_embedding_loss.
struct CosineEmbeddingLoss final : Module {
  explicit CosineEmbeddingLoss(const CosineEmbeddingLossOptions& options_ = {}) : options(options_) {}
  CosineEmbeddingLossOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target) const {
    return cosine_embedding_loss(input1, input2, target, options);
  }
};

/// Nearer to the positive than to the negative; see tern::triplet_margin_loss.
struct TripletMarginLoss final : Module {
  explicit TripletMarginLoss(const TripletMarginLossOptions& options_ = {}) : options(options_) {}
  TripletMarginLossOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const {
    return triplet_margin_loss(anchor, positive, negative, options);
  }
};

/// The same by any distance; see tern::triplet_margin_with_distance_loss.
struct TripletMarginWithDistanceLoss final : Module {
  explicit TripletMarginWithDistanceLoss(TripletMarginWithDistanceLossOptions options_ = {})
      : options(std::move(options_)) {}
  TripletMarginWithDistanceLossOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const {
    return triplet_margin_with_distance_loss(anchor, positive, negative, options);
  }
};

/// The target's score above all others; see tern::multi_margin_loss.
class MultiMarginLoss final : public Module {
 public:
  explicit MultiMarginLoss(MultiMarginLossOptions options = {});
  Buffer weight;  ///< [C], or absent
  TERN_MODULE(weight)
  Tensor forward(const Tensor& input, const Tensor& target) const;
  /// As given, without the weight.
  const MultiMarginLossOptions& options() const { return options_; }

 private:
  MultiMarginLossOptions options_;
};

/// The targets' scores above all others; see tern::multilabel_margin_loss.
struct MultiLabelMarginLoss final : Module {
  explicit MultiLabelMarginLoss(Reduction reduction_ = Reduction::Mean) : reduction(reduction_) {}
  Reduction reduction;
  TERN_MODULE()
  Tensor forward(const Tensor& input, const Tensor& target) const {
    return multilabel_margin_loss(input, target, reduction);
  }
};

/// Binary cross entropy over the classes of each row; see tern::multilabel_soft_margin_loss.
class MultiLabelSoftMarginLoss final : public Module {
 public:
  explicit MultiLabelSoftMarginLoss(const MultilabelSoftMarginLossOptions& options = {});
  Buffer weight;  ///< or absent
  TERN_MODULE(weight)
  Tensor forward(const Tensor& input, const Tensor& target) const;
  Reduction reduction() const { return reduction_; }
  void set_reduction(Reduction reduction) { reduction_ = reduction; }

 private:
  Reduction reduction_;
};

/// Logistic loss of two classes; see tern::soft_margin_loss.
struct SoftMarginLoss final : Module {
  explicit SoftMarginLoss(Reduction reduction_ = Reduction::Mean) : reduction(reduction_) {}
  Reduction reduction;
  TERN_MODULE()
  Tensor forward(const Tensor& input, const Tensor& target) const {
    return soft_margin_loss(input, target, reduction);
  }
};

}  // namespace tern::nn
