// Fully connected layers.
#pragma once

#include <optional>

#include "tern/nn/module.h"

namespace tern::nn {

struct LinearOptions {
  bool bias = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// y = x W^T + b: [..., in_features] to [..., out_features]. Both start uniform within 1 / sqrt(in_features).
class Linear final : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, const LinearOptions& options = {});

  Parameter weight;  ///< [out_features, in_features]
  Parameter bias;    ///< [out_features], or absent
  TERN_MODULE(weight, bias)

  Tensor forward(const Tensor& x) const;
  /// relu(forward(x)) by fewer kernels; see nn::relu_after.
  Tensor forward_relu(const Tensor& x) const;
  /// Draws the initial numbers again.
  void reset_parameters();
  int64_t in_features() const noexcept { return in_features_; }
  int64_t out_features() const noexcept { return out_features_; }
  std::string extra_repr() const override;

 private:
  int64_t in_features_;
  int64_t out_features_;
};

}  // namespace tern::nn
