// Losses as modules. The functions themselves are in ops/loss.h.
#pragma once

#include "tern/nn/module.h"
#include "tern/ops/loss.h"

namespace tern::nn {

/// Cross entropy of logits [N, C, ...] and class numbers [N, ...] or class probabilities; see
/// tern::cross_entropy.
class CrossEntropyLoss final : public Module {
 public:
  explicit CrossEntropyLoss(CrossEntropyOptions options = {});
  Buffer weight;  ///< [C], or absent
  TERN_MODULE(weight)
  Tensor forward(const Tensor& input, const Tensor& target) const;

 private:
  CrossEntropyOptions options_;
};

/// Negative log likelihood of log probabilities; see tern::nll_loss.
class NLLLoss final : public Module {
 public:
  explicit NLLLoss(NllLossOptions options = {});
  Buffer weight;  ///< [C], or absent
  TERN_MODULE(weight)
  Tensor forward(const Tensor& input, const Tensor& target) const;

 private:
  NllLossOptions options_;
};

/// Mean (or sum, or each) of (input - target)^2.
struct MSELoss final : Module {
  explicit MSELoss(Reduction reduction_ = Reduction::Mean) : reduction(reduction_) {}
  Reduction reduction;
  TERN_MODULE()
  Tensor forward(const Tensor& input, const Tensor& target) const {
    return mse_loss(input, target, reduction);
  }
};

/// Mean (or sum, or each) of |input - target|.
struct L1Loss final : Module {
  explicit L1Loss(Reduction reduction_ = Reduction::Mean) : reduction(reduction_) {}
  Reduction reduction;
  TERN_MODULE()
  Tensor forward(const Tensor& input, const Tensor& target) const {
    return l1_loss(input, target, reduction);
  }
};

/// Squared below `beta`, absolute above (Girshick, "Fast R-CNN", 2015).
struct SmoothL1Loss final : Module {
  explicit SmoothL1Loss(Reduction reduction_ = Reduction::Mean, double beta_ = 1)
      : reduction(reduction_), beta(beta_) {}
  Reduction reduction;
  double beta;
  TERN_MODULE()
  Tensor forward(const Tensor& input, const Tensor& target) const {
    return smooth_l1_loss(input, target, reduction, beta);
  }
};

/// Squared below `delta`, delta times the absolute value above (Huber, 1964).
struct HuberLoss final : Module {
  explicit HuberLoss(Reduction reduction_ = Reduction::Mean, double delta_ = 1)
      : reduction(reduction_), delta(delta_) {}
  Reduction reduction;
  double delta;
  TERN_MODULE()
  Tensor forward(const Tensor& input, const Tensor& target) const {
    return huber_loss(input, target, reduction, delta);
  }
};

struct BCELossOptions {
  Tensor weight = {};
  Reduction reduction = Reduction::Mean;
};

/// Binary cross entropy of probabilities.
class BCELoss final : public Module {
 public:
  explicit BCELoss(const BCELossOptions& options = {});
  Buffer weight;  ///< or absent
  TERN_MODULE(weight)
  Tensor forward(const Tensor& input, const Tensor& target) const;

 private:
  Reduction reduction_;
};

/// Binary cross entropy of logits, without overflow.
class BCEWithLogitsLoss final : public Module {
 public:
  explicit BCEWithLogitsLoss(const BceWithLogitsOptions& options = {});
  Buffer weight;      ///< or absent
  Buffer pos_weight;  ///< or absent
  TERN_MODULE(weight, pos_weight)
  Tensor forward(const Tensor& input, const Tensor& target) const;

 private:
  Reduction reduction_;
};

/// Kullback-Leibler divergence of log probabilities from a target; see tern::kl_div.
struct KLDivLoss final : Module {
  explicit KLDivLoss(const KlDivOptions& options_ = {}) : options(options_) {}
  KlDivOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& input, const Tensor& target) const { return kl_div(input, target, options); }
};

}  // namespace tern::nn
