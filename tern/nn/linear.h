// Fully connected layers.
#pragma once

#include <optional>

#include "tern/nn/lazy.h"
#include "tern/nn/module.h"

namespace tern::nn {

struct LinearOptions {
  bool bias = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// y = x W^T + b: [..., in_features] to [..., out_features]. Both start uniform within 1 / sqrt(in_features).
class Linear : public Module {
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
  int64_t in_features() const { return weight.size(1); }
  int64_t out_features() const { return weight.size(0); }
  std::string class_name() const override { return is_lazy(weight) ? "LazyLinear" : "Linear"; }
  std::string extra_repr() const override;

 protected:
  Linear(detail::Lazy, int64_t out_features, const LinearOptions& options);

 private:
  void set_in_features(int64_t in_features) const;
  void see_input(const Tensor& x) const;
};

/// y_o = x1 W_o x2^T + b_o: [..., in1_features] and [..., in2_features] to [..., out_features]. Both start
/// uniform within 1 / sqrt(in1_features).
class Bilinear final : public Module {
 public:
  /// Throws ValueError for an in1_features below 1.
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features,
           const LinearOptions& options = {});

  Parameter weight;  ///< [out_features, in1_features, in2_features]
  Parameter bias;    ///< [out_features], or absent
  TERN_MODULE(weight, bias)

  Tensor forward(const Tensor& x1, const Tensor& x2) const;
  void reset_parameters();
  std::string extra_repr() const override;
};

/// A Linear whose in_features is the last size of its first input.
struct LazyLinear final : Linear {
  explicit LazyLinear(int64_t out_features, const LinearOptions& options = {})
      : Linear(detail::Lazy(), out_features, options) {}
};

}  // namespace tern::nn
