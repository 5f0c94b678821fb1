// Activation functions as layers. The functions themselves are in ops/activation.h and ops/softmax.h.
#pragma once

#include <string>

#include "tern/nn/module.h"
#include "tern/ops/activation.h"
#include "tern/ops/softmax.h"

namespace tern::nn {

// `inplace` is kept for PyTorch's texts and files: forward() gives a new tensor of the same numbers either
// way.

struct ReLU final : Module {
  explicit ReLU(bool inplace_ = false) : inplace(inplace_) {}
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return relu(x); }
  std::string extra_repr() const override;
};

/// relu(layer(x)); by fewer kernels where the layer has a forward_relu, unless a hook looks at what lies
/// between.
template <class Layer>
Tensor relu_after(Layer& layer, const Tensor& x) {
  if (layer.hooks()) [[unlikely]]
    return relu(layer(x));
  return detail::call_inside(layer, [&] { return layer.forward_relu(x); });
}

struct Tanh final : Module {
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return tanh(x); }
};

struct Sigmoid final : Module {
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return sigmoid(x); }
};

struct LogSigmoid final : Module {
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return logsigmoid(x); }
};

struct SiLU final : Module {
  explicit SiLU(bool inplace_ = false) : inplace(inplace_) {}
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return silu(x); }
  std::string extra_repr() const override;
};

struct LeakyReLU final : Module {
  explicit LeakyReLU(double negative_slope_ = 0.01, bool inplace_ = false)
      : negative_slope(negative_slope_), inplace(inplace_) {}
  double negative_slope;
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return leaky_relu(x, negative_slope); }
  std::string extra_repr() const override;
};

struct ELU final : Module {
  explicit ELU(double alpha_ = 1, bool inplace_ = false) : alpha(alpha_), inplace(inplace_) {}
  double alpha;
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return elu(x, alpha); }
  std::string extra_repr() const override;
};

struct GELU final : Module {
  /// "none" or "tanh".
  explicit GELU(std::string approximate_ = "none") : approximate(std::move(approximate_)) {}
  std::string approximate;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return gelu(x, approximate); }
  std::string extra_repr() const override;
};

struct Softplus final : Module {
  explicit Softplus(double beta_ = 1, double threshold_ = 20) : beta(beta_), threshold(threshold_) {}
  double beta;
  double threshold;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return softplus(x, beta, threshold); }
  std::string extra_repr() const override;
};

struct Softmax final : Module {
  explicit Softmax(int64_t dim_) : dim(dim_) {}
  int64_t dim;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return softmax(x, dim); }
  std::string extra_repr() const override;
};

struct LogSoftmax final : Module {
  explicit LogSoftmax(int64_t dim_) : dim(dim_) {}
  int64_t dim;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return log_softmax(x, dim); }
  std::string extra_repr() const override;
};

}  // namespace tern::nn
