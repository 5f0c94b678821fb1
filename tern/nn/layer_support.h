// What the constructors of layers share. Internal to nn.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string>

#include "tern/base/check.h"
#include "tern/nn/init.h"
#include "tern/nn/lazy.h"
#include "tern/nn/parameter.h"
#include "tern/nn/text.h"
#include "tern/ops/creation.h"
#include "tern/ops/size3.h"

namespace tern::nn {

/// `value`, or ValueError naming the layer and the argument.
inline int64_t at_least(const char* layer, const char* argument, int64_t value, int64_t least) {
  TERN_CHECK(value >= least, ValueError, "{}: {} must be at least {}, got {}", layer, argument, least, value);
  return value;
}

/// Sizes of one, two or three dimensions as Python's tuple.
template <class Size>
std::string tuple_text(Size size) {
  const auto sizes = sizes_of(size);
  return python_tuple({sizes.data(), sizes.size()});
}
/// A number or a tuple, as it was given; -1 is None.
template <class Size>
std::string sizes_text(Size size) {
  const auto sizes = sizes_of(size);
  const auto one = [](int64_t value) { return value == -1 ? std::string("None") : std::to_string(value); };
  if (!is_tuple(size)) return one(sizes[0]);
  std::string all;
  for (const int64_t s : sizes) all += (all.empty() ? "" : ", ") + one(s);
  return "(" + all + ")";
}

/// The same for each of several sizes.
template <size_t N>
void at_least(const char* layer, const char* argument, const std::array<int64_t, N>& values, int64_t least) {
  TERN_CHECK(std::all_of(values.begin(), values.end(), [=](int64_t value) { return value >= least; }),
             ValueError, "{}: {} must be at least {}, got {}", layer, argument, least,
             N == 1 ? std::to_string(values[0]) : python_tuple({values.data(), N}));
}

/// The options of a convolution or a pooling.
template <size_t N>
void check_window(const char* layer, const std::array<int64_t, N>& kernel_size,
                  const std::array<int64_t, N>& stride, const std::array<int64_t, N>& padding,
                  const std::array<int64_t, N>& dilation) {
  at_least(layer, "kernel_size", kernel_size, 1);
  at_least(layer, "stride", stride, 1);
  at_least(layer, "padding", padding, 0);
  at_least(layer, "dilation", dilation, 1);
  for (const auto& sizes : {kernel_size, stride, padding, dilation})
    TERN_CHECK(*std::max_element(sizes.begin(), sizes.end()) < int64_t{1} << 31, ValueError,
               "{}: kernel_size, stride, padding and dilation must be below 2^31", layer);
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

// PyTorch's start for linear and convolution layers: both uniform within 1 / sqrt(fan_in).
inline void init_weight(const Parameter& weight) { init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)}); }
inline void init_bias(const Parameter& bias, const Parameter& weight) {
  const int64_t fan_in = init::fan_in_and_out(weight).first;
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  init::uniform_(bias, -bound, bound);
}

/// Those that are there, uniform within 1 / sqrt(size): the start of recurrent layers and of Bilinear.
inline void init_uniform(std::initializer_list<const Parameter*> parameters, int64_t size) {
  const double bound = size > 0 ? 1 / std::sqrt(static_cast<double>(size)) : 0;
  for (const Parameter* parameter : parameters)
    if (parameter->defined()) init::uniform_(*parameter, -bound, bound);
}

/// Draws both; a lazy layer's are drawn with its first input.
inline void init_weight_and_bias(const Parameter& weight, const Parameter& bias) {
  if (is_lazy(weight)) return;
  init_weight(weight);
  if (bias.defined() && !is_lazy(bias)) init_bias(bias, weight);
}

/// Gives those that are lazy their shapes and first numbers: a state dict may have had one of the two.
inline void init_lazy_weight_and_bias(const Parameter& weight, const Shape& weight_shape,
                                      const Parameter& bias, const Shape& bias_shape) {
  const bool draw_weight = is_lazy(weight), draw_bias = is_lazy(bias);
  detail::materialize({{weight, weight_shape}, {bias, bias_shape}});
  if (draw_weight) init_weight(weight);
  if (draw_bias) init_bias(bias, weight);
}

}  // namespace tern::nn
