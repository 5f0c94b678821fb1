// Fully connected layers.
#include "tern/nn/linear.h"

#include <fmt/format.h>

#include "tern/nn/layer_support.h"
#include "tern/nn/text.h"
#include "tern/ops/creation.h"
#include "tern/ops/linear.h"

namespace tern::nn {

Linear::Linear(int64_t in_features, int64_t out_features, const LinearOptions& options)
    : in_features_(at_least("Linear", "in_features", in_features, 0)),
      out_features_(at_least("Linear", "out_features", out_features, 0)) {
  weight = empty_parameter({out_features, in_features}, options);
  if (options.bias) bias = empty_parameter({out_features}, options);
  reset_parameters();
}

void Linear::reset_parameters() { init_weight_and_bias(weight, bias); }

Tensor Linear::forward(const Tensor& x) const { return linear(x, weight, bias); }

Tensor Linear::forward_relu(const Tensor& x) const { return linear_relu(x, weight, bias); }

std::string Linear::extra_repr() const {
  return fmt::format("in_features={}, out_features={}, bias={}", in_features_, out_features_,
                     python_text(bias.defined()));
}

}  // namespace tern::nn
