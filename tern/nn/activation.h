// Activation functions as layers. The functions themselves are in ops/activation.h and ops/softmax.h.
#pragma once

#include <optional>
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

/// In training with slopes that are drawn for each element; see tern::rrelu.
struct RReLU final : Module {
  /// Throws ValueError when lower is greater than upper.
  explicit RReLU(double lower_ = 1.0 / 8, double upper_ = 1.0 / 3, bool inplace_ = false);
  double lower;
  double upper;
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return rrelu(x, lower, upper, is_training()); }
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

struct ReLU6 final : Module {
  explicit ReLU6(bool inplace_ = false) : inplace(inplace_) {}
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return relu6(x); }
  std::string extra_repr() const override;
};

struct Hardtanh final : Module {
  explicit Hardtanh(double min_val_ = -1, double max_val_ = 1, bool inplace_ = false);
  double min_val;
  double max_val;
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return hardtanh(x, min_val, max_val); }
  std::string extra_repr() const override;
};

struct Hardswish final : Module {
  explicit Hardswish(bool inplace_ = false) : inplace(inplace_) {}
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return hardswish(x); }
};

struct Hardsigmoid final : Module {
  explicit Hardsigmoid(bool inplace_ = false) : inplace(inplace_) {}
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return hardsigmoid(x); }
};

struct Mish final : Module {
  explicit Mish(bool inplace_ = false) : inplace(inplace_) {}
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return mish(x); }
  std::string extra_repr() const override;
};

struct SELU final : Module {
  explicit SELU(bool inplace_ = false) : inplace(inplace_) {}
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return selu(x); }
  std::string extra_repr() const override;
};

struct CELU final : Module {
  explicit CELU(double alpha_ = 1, bool inplace_ = false) : alpha(alpha_), inplace(inplace_) {}
  double alpha;
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return celu(x, alpha); }
  std::string extra_repr() const override;
};

struct Softsign final : Module {
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return softsign(x); }
};

struct Tanhshrink final : Module {
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return tanhshrink(x); }
};

struct Hardshrink final : Module {
  explicit Hardshrink(double lambd_ = 0.5) : lambd(lambd_) {}
  double lambd;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return hardshrink(x, lambd); }
  std::string extra_repr() const override;
};

struct Softshrink final : Module {
  explicit Softshrink(double lambd_ = 0.5) : lambd(lambd_) {}
  double lambd;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return softshrink(x, lambd); }
  std::string extra_repr() const override;
};

struct Threshold final : Module {
  Threshold(double threshold_, double value_, bool inplace_ = false)
      : threshold(threshold_), value(value_), inplace(inplace_) {}
  double threshold;
  double value;
  bool inplace;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return tern::threshold(x, threshold, value); }
  std::string extra_repr() const override;
};

/// Halves the size of `dim`.
struct GLU final : Module {
  explicit GLU(int64_t dim_ = -1) : dim(dim_) {}
  int64_t dim;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return glu(x, dim); }
  std::string extra_repr() const override;
};

struct PReLUOptions {
  double init = 0.25;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// A leaky ReLU that learns its slope (He et al., "Delving deep into rectifiers", 2015), one for all or one
/// for each channel of [N, C, ...].
class PReLU final : public Module {
 public:
  explicit PReLU(int64_t num_parameters = 1, const PReLUOptions& options = {});

  Parameter weight;  ///< [num_parameters]
  TERN_MODULE(weight)

  Tensor forward(const Tensor& x) const { return prelu(x, weight); }
  std::string extra_repr() const override;
  double init() const noexcept { return init_; }

 private:
  double init_;
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

/// The dimension of a softmax of x: the one that is given, or what PyTorch chooses without: the second, of
/// tensors of none, one or three dimensions the first.
int64_t softmax_dim(const std::optional<int64_t>& dim, const Tensor& x);

struct Softmax final : Module {
  explicit Softmax(std::optional<int64_t> dim_ = {}) : dim(dim_) {}
  std::optional<int64_t> dim;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return softmax(x, softmax_dim(dim, x)); }
  std::string extra_repr() const override;
};

struct Softmin final : Module {
  explicit Softmin(std::optional<int64_t> dim_ = {}) : dim(dim_) {}
  std::optional<int64_t> dim;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return softmin(x, softmax_dim(dim, x)); }
  std::string extra_repr() const override;
};

/// Softmax over the channels of [N, C, H, W] or [C, H, W].
struct Softmax2d final : Module {
  TERN_MODULE()
  /// Throws ShapeError for other numbers of dimensions.
  Tensor forward(const Tensor& x) const;
};

struct LogSoftmax final : Module {
  explicit LogSoftmax(std::optional<int64_t> dim_ = {}) : dim(dim_) {}
  std::optional<int64_t> dim;
  TERN_MODULE()
  Tensor forward(const Tensor& x) const { return log_softmax(x, softmax_dim(dim, x)); }
  std::string extra_repr() const override;
};

}  // namespace tern::nn
