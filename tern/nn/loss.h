// Losses as modules; rankings, embeddings and margins are in nn/loss_margin.h. The functions themselves are
// in ops/loss.h.
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
  /// As given, without the weight.
  const CrossEntropyOptions& options() const { return options_; }

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
  /// As given, without the weight.
  const NllLossOptions& options() const { return options_; }

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
  explicit SmoothL1Loss(const SmoothL1LossOptions& options_ = {}) : options(options_) {}
  SmoothL1LossOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& input, const Tensor& target) const {
    return smooth_l1_loss(input, target, options);
  }
};

/// Squared below `delta`, delta times the absolute value above (Huber, 1964).
struct HuberLoss final : Module {
  explicit HuberLoss(const HuberLossOptions& options_ = {}) : options(options_) {}
  HuberLossOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& input, const Tensor& target) const {
    return huber_loss(input, target, options);
  }
};

/// Binary cross entropy of probabilities.
class BCELoss final : public Module {
 public:
  explicit BCELoss(const BceOptions& options = {});
  Buffer weight;  ///< or absent
  TERN_MODULE(weight)
  Tensor forward(const Tensor& input, const Tensor& target) const;
  Reduction reduction() const { return reduction_; }
  void set_reduction(Reduction reduction) { reduction_ = reduction; }

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
  Reduction reduction() const { return reduction_; }
  void set_reduction(Reduction reduction) { reduction_ = reduction; }

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

/// Negative log likelihood of counts; see tern::poisson_nll_loss.
struct PoissonNLLLoss final : Module {
  explicit PoissonNLLLoss(const PoissonNllLossOptions& options_ = {}) : options(options_) {}
  PoissonNllLossOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& log_input, const Tensor& target) const {
    return poisson_nll_loss(log_input, target, options);
  }
};

/// Negative log likelihood of a normal distribution; see tern::gaussian_nll_loss.
struct GaussianNLLLoss final : Module {
  explicit GaussianNLLLoss(const GaussianNllLossOptions& options_ = {}) : options(options_) {}
  GaussianNllLossOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var) const {
    return gaussian_nll_loss(input, target, var, options);
  }
  Tensor forward(const Tensor& input, const Tensor& target, double var) const {
    return gaussian_nll_loss(input, target, var, options);
  }
};

/// Connectionist temporal classification; see tern::ctc_loss.
struct CTCLoss final : Module {
  explicit CTCLoss(const CtcLossOptions& options_ = {}) : options(options_) {}
  CtcLossOptions options;
  TERN_MODULE()
  Tensor forward(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                 IntArrayRef target_lengths) const {
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
  }
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths) const {
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
  }
};

}  // namespace tern::nn
