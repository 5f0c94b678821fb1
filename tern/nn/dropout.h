// Dropout as a layer.
#pragma once

#include "tern/nn/module.h"
#include "tern/ops/random.h"

namespace tern::nn {

/// In training, zeroes each element with probability p and multiplies the others by 1 / (1 - p).
struct Dropout final : Module {
  /// Throws ValueError unless 0 <= p <= 1.
  explicit Dropout(double p_ = 0.5, bool inplace_ = false);
  double p;
  bool inplace;  ///< for PyTorch's texts and files, as in activation.h
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return dropout(x, p, is_training()); }
  std::string extra_repr() const override;
};

/// The same for whole channels: of [N, C, L] or [C, L]; of [N, C, H, W], where three dimensions are
/// [N, C, L], as in PyTorch; of [N, C, D, H, W] or [C, D, H, W].
template <int N>
struct ChannelDropout final : Module {
  /// Throws ValueError unless 0 <= p <= 1.
  explicit ChannelDropout(double p_ = 0.5, bool inplace_ = false);
  double p;
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const;
  std::string class_name() const override;
  std::string extra_repr() const override;
};
using Dropout1d = ChannelDropout<1>;
using Dropout2d = ChannelDropout<2>;
using Dropout3d = ChannelDropout<3>;

extern template struct ChannelDropout<1>;
extern template struct ChannelDropout<2>;
extern template struct ChannelDropout<3>;

/// Dropout for layers of SELU: dropped elements become the value that SELU tends to, and all are moved and
/// scaled so that mean and variance stay (Klambauer et al., "Self-normalizing neural networks", 2017).
struct AlphaDropout final : Module {
  /// Throws ValueError unless 0 <= p <= 1.
  explicit AlphaDropout(double p_ = 0.5, bool inplace_ = false);
  double p;
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return alpha_dropout(x, p, is_training()); }
  std::string extra_repr() const override;
};

/// The same for whole channels of [N, C, ...].
struct FeatureAlphaDropout final : Module {
  /// Throws ValueError unless 0 <= p <= 1.
  explicit FeatureAlphaDropout(double p_ = 0.5, bool inplace_ = false);
  double p;
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return feature_alpha_dropout(x, p, is_training()); }
  std::string extra_repr() const override;
};

}  // namespace tern::nn
