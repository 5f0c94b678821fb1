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

/// The same for whole channels of [N, C, L] or [C, L].
struct Dropout1d final : Module {
  /// Throws ValueError unless 0 <= p <= 1.
  explicit Dropout1d(double p_ = 0.5, bool inplace_ = false);
  double p;
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return dropout1d(x, p, is_training()); }
  std::string extra_repr() const override;
};

/// The same for whole channels of [N, C, H, W]; three dimensions are [N, C, L], as in PyTorch.
struct Dropout2d final : Module {
  /// Throws ValueError unless 0 <= p <= 1.
  explicit Dropout2d(double p_ = 0.5, bool inplace_ = false);
  double p;
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return dropout2d(x, p, is_training()); }
  std::string extra_repr() const override;
};

}  // namespace tern::nn
