// Losses as modules. Their weights are buffers, so that they move with the module.
#include "tern/nn/loss.h"

#include "tern/nn/loss_margin.h"

namespace tern::nn {

CrossEntropyLoss::CrossEntropyLoss(CrossEntropyOptions options) : options_(std::move(options)) {
  weight = std::exchange(options_.weight, {});
}

Tensor CrossEntropyLoss::forward(const Tensor& input, const Tensor& target) const {
  CrossEntropyOptions options = options_;
  options.weight = weight;
  return cross_entropy(input, target, options);
}

NLLLoss::NLLLoss(NllLossOptions options) : options_(std::move(options)) {
  weight = std::exchange(options_.weight, {});
}

Tensor NLLLoss::forward(const Tensor& input, const Tensor& target) const {
  NllLossOptions options = options_;
  options.weight = weight;
  return nll_loss(input, target, options);
}

BCELoss::BCELoss(const BceOptions& options) : reduction_(options.reduction) { weight = options.weight; }

Tensor BCELoss::forward(const Tensor& input, const Tensor& target) const {
  return binary_cross_entropy(input, target, {weight, reduction_});
}

BCEWithLogitsLoss::BCEWithLogitsLoss(const BceWithLogitsOptions& options) : reduction_(options.reduction) {
  weight = options.weight;
  pos_weight = options.pos_weight;
}

Tensor BCEWithLogitsLoss::forward(const Tensor& input, const Tensor& target) const {
  BceWithLogitsOptions options;
  options.weight = weight;
  options.pos_weight = pos_weight;
  options.reduction = reduction_;
  return binary_cross_entropy_with_logits(input, target, options);
}

MultiMarginLoss::MultiMarginLoss(MultiMarginLossOptions options) : options_(std::move(options)) {
  weight = std::exchange(options_.weight, {});
}

Tensor MultiMarginLoss::forward(const Tensor& input, const Tensor& target) const {
  MultiMarginLossOptions options = options_;
  options.weight = weight;
  return multi_margin_loss(input, target, options);
}

MultiLabelSoftMarginLoss::MultiLabelSoftMarginLoss(const MultilabelSoftMarginLossOptions& options)
    : reduction_(options.reduction) {
  weight = options.weight;
}

Tensor MultiLabelSoftMarginLoss::forward(const Tensor& input, const Tensor& target) const {
  return multilabel_soft_margin_loss(input, target, {weight, reduction_});
}

}  // namespace tern::nn
