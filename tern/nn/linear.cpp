// Fully connected layers.
#include "tern/nn/linear.h"

#include <fmt/format.h>

#include "tern/nn/layer_support.h"
#include "tern/nn/text.h"
#include "tern/ops/creation.h"
#include "tern/ops/linear.h"

namespace tern::nn {

Linear::Linear(int64_t in_features, int64_t out_features, const LinearOptions& options)
    : Linear(detail::Lazy(), out_features, options) {
  set_in_features(in_features);
}

Linear::Linear(detail::Lazy, int64_t out_features, const LinearOptions& options) {
  at_least("Linear", "out_features", out_features, 0);
  weight = empty_parameter({out_features, 0}, options);
  if (options.bias) bias = empty_parameter({out_features}, options);
  detail::defer({&weight, &bias});
}

void Linear::set_in_features(int64_t in_features) const {
  at_least("Linear", "in_features", in_features, 0);
  init_lazy_weight_and_bias(weight, {out_features(), in_features}, bias, {out_features()});
}

void Linear::see_input(const Tensor& x) const {
  if (detail::any_lazy(weight, bias)) [[unlikely]]
    set_in_features(detail::size_of_first_input("LazyLinear", x, -1, {.min_dim = 1}));
}

void Linear::reset_parameters() { init_weight_and_bias(weight, bias); }

Tensor Linear::forward(const Tensor& x) const {
  see_input(x);
  return linear(x, weight, bias);
}

Tensor Linear::forward_relu(const Tensor& x) const {
  see_input(x);
  return linear_relu(x, weight, bias);
}

std::string Linear::extra_repr() const {
  return fmt::format("in_features={}, out_features={}, bias={}", in_features(), out_features(),
                     python_text(bias.defined()));
}

// ---- two inputs

Bilinear::Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features,
                   const LinearOptions& options) {
  at_least("Bilinear", "in1_features", in1_features, 1);
  at_least("Bilinear", "in2_features", in2_features, 0);
  at_least("Bilinear", "out_features", out_features, 0);
  weight = empty_parameter({out_features, in1_features, in2_features}, options);
  if (options.bias) bias = empty_parameter({out_features}, options);
  reset_parameters();
}

void Bilinear::reset_parameters() { init_uniform({&weight, &bias}, weight.size(1)); }

Tensor Bilinear::forward(const Tensor& x1, const Tensor& x2) const { return bilinear(x1, x2, weight, bias); }

std::string Bilinear::extra_repr() const {
  return fmt::format("in1_features={}, in2_features={}, out_features={}, bias={}", weight.size(1),
                     weight.size(2), weight.size(0), python_text(bias.defined()));
}

}  // namespace tern::nn
