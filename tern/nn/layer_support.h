// What the constructors of layers share. Internal to nn.
#pragma once

#include <cmath>

#include "tern/base/check.h"
#include "tern/nn/init.h"
#include "tern/nn/parameter.h"
#include "tern/ops/creation.h"

namespace tern::nn {

/// `value`, or ValueError naming the layer and the argument.
inline int64_t at_least(const char* layer, const char* argument, int64_t value, int64_t least) {
  TERN_CHECK(value >= least, ValueError, "{}: {} must be at least {}, got {}", layer, argument, least, value);
  return value;
}

/// The dtype and device that a layer's options ask for.
template <class Options>
TensorOptions tensor_options(const Options& options) {
  TensorOptions result;
  result.dtype = options.dtype;
  result.device = options.device;
  return result;
}

template <class Options>
Parameter empty_parameter(IntArrayRef shape, const Options& options) {
  return Parameter(empty(shape, tensor_options(options)));
}
template <class Options>
Parameter full_parameter(IntArrayRef shape, double value, const Options& options) {
  Parameter parameter = empty_parameter(shape, options);
  init::constant_(parameter, value);
  return parameter;
}

/// PyTorch's start for linear and convolution layers: both uniform within 1 / sqrt(fan_in).
inline void init_weight_and_bias(const Parameter& weight, const Parameter& bias) {
  init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)});
  const int64_t fan_in = init::fan_in_and_out(weight).first;
  if (!bias.defined()) return;
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  init::uniform_(bias, -bound, bound);
}

}  // namespace tern::nn
