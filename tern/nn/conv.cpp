// Convolution layers.
#include "tern/nn/conv.h"

#include <fmt/format.h>

#include <algorithm>

#include "tern/nn/layer_support.h"
#include "tern/nn/text.h"

namespace tern::nn {
namespace {

void check_channels(const char* layer, int64_t in, int64_t out, int64_t groups) {
  at_least(layer, "groups", groups, 1);
  at_least(layer, "in_channels", in, 0);
  at_least(layer, "out_channels", out, 0);
  TERN_CHECK(in % groups == 0, ValueError, "{}: in_channels must be divisible by groups, got {} and {}",
             layer, in, groups);
  TERN_CHECK(out % groups == 0, ValueError, "{}: out_channels must be divisible by groups, got {} and {}",
             layer, out, groups);
}

void check_options(const char* layer, Size2 kernel_size, Size2 stride, const ConvPadding& padding,
                   Size2 dilation) {
  check_window(layer, kernel_size, stride, padding.size, dilation);
  TERN_CHECK(padding.mode != ConvPadding::kSame || stride == Size2(1), ValueError,
             "{}: padding='same' is not supported for strided convolutions, got stride ({}, {})", layer,
             stride.h, stride.w);
}

void check_output_padding(const char* layer, Size2 output_padding, Size2 stride, Size2 dilation) {
  at_least(layer, "output_padding", output_padding, 0);
  TERN_CHECK(
      output_padding.h < std::max(stride.h, dilation.h) && output_padding.w < std::max(stride.w, dilation.w),
      ValueError, "{}: output_padding must be smaller than either stride or dilation, got ({}, {})", layer,
      output_padding.h, output_padding.w);
}

std::string tuple(Size2 size) { return python_tuple({size.h, size.w}); }

/// The part of the text after the kernel size and the stride, as PyTorch's _ConvNd writes it.
std::string tail(const std::string& padding, const std::string& dilation, const std::string& output_padding,
                 int64_t groups, bool bias) {
  std::string text;
  if (!padding.empty()) text += ", padding=" + padding;
  if (!dilation.empty()) text += ", dilation=" + dilation;
  if (!output_padding.empty()) text += ", output_padding=" + output_padding;
  if (groups != 1) text += fmt::format(", groups={}", groups);
  if (!bias) text += ", bias=False";
  return text;
}

std::string unless(int64_t size, int64_t usual) { return size == usual ? "" : python_tuple({size}); }
std::string unless(Size2 size, int64_t usual) { return size == Size2(usual) ? "" : tuple(size); }

/// The word, or `size` where it is none.
std::string padding_text(const ConvPadding& padding, const std::string& size) {
  return padding.word().empty() ? size : std::string(padding.word());
}

}  // namespace

// ---- Conv1d
// ------------------------------------------------------------------------------------------------------------

Conv1d::Conv1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size, const Conv1dOptions& o)
    : Conv1d(detail::Lazy(), out_channels, kernel_size, o) {
  set_in_channels(in_channels);
}

Conv1d::Conv1d(detail::Lazy, int64_t out_channels, int64_t kernel_size, const Conv1dOptions& o)
    : options_{.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups} {
  check_channels("Conv1d", 0, out_channels, o.groups);
  check_options("Conv1d", kernel_size, o.stride, o.padding, o.dilation);
  weight = empty_parameter({out_channels, 0, kernel_size}, o);
  if (o.bias) bias = empty_parameter({out_channels}, o);
  detail::defer({&weight, &bias});
}

void Conv1d::set_in_channels(int64_t in_channels) const {
  const int64_t out_channels = weight.size(0), groups = options_.groups;
  check_channels("Conv1d", in_channels, out_channels, groups);
  init_lazy_weight_and_bias(weight, {out_channels, in_channels / groups, weight.size(2)}, bias,
                            {out_channels});
}

void Conv1d::see_input(const Tensor& x) const {
  if (detail::any_lazy(weight, bias)) [[unlikely]]
    set_in_channels(detail::size_of_first_input("LazyConv1d", x, -2, {.min_dim = 2, .max_dim = 3}));
}

void Conv1d::reset_parameters() { init_weight_and_bias(weight, bias); }

Tensor Conv1d::forward(const Tensor& x) const {
  see_input(x);
  return conv1d(x, weight, bias, options_);
}

std::string Conv1d::extra_repr() const {
  const auto& o = options_;
  const std::string padding =
      padding_text(o.padding, o.padding.size.w ? python_tuple({o.padding.size.w}) : "");
  return fmt::format(
      "{}, {}, kernel_size={}, stride={}{}", weight.size(1) * o.groups, weight.size(0),
      python_tuple({weight.size(2)}), python_tuple({o.stride}),
      tail(padding, o.dilation == 1 ? "" : python_tuple({o.dilation}), "", o.groups, bias.defined()));
}

// ---- Conv2d
// ------------------------------------------------------------------------------------------------------------

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, Size2 kernel_size, const Conv2dOptions& o)
    : Conv2d(detail::Lazy(), out_channels, kernel_size, o) {
  set_in_channels(in_channels);
}

Conv2d::Conv2d(detail::Lazy, int64_t out_channels, Size2 kernel_size, const Conv2dOptions& o)
    : options_{.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups} {
  check_channels("Conv2d", 0, out_channels, o.groups);
  check_options("Conv2d", kernel_size, o.stride, o.padding, o.dilation);
  weight = empty_parameter({out_channels, 0, kernel_size.h, kernel_size.w}, o);
  if (o.bias) bias = empty_parameter({out_channels}, o);
  detail::defer({&weight, &bias});
}

void Conv2d::set_in_channels(int64_t in_channels) const {
  const int64_t out_channels = weight.size(0), groups = options_.groups;
  check_channels("Conv2d", in_channels, out_channels, groups);
  init_lazy_weight_and_bias(weight, {out_channels, in_channels / groups, weight.size(2), weight.size(3)},
                            bias, {out_channels});
}

void Conv2d::see_input(const Tensor& x) const {
  if (detail::any_lazy(weight, bias)) [[unlikely]]
    set_in_channels(detail::size_of_first_input("LazyConv2d", x, -3, {.min_dim = 3, .max_dim = 4}));
}

void Conv2d::reset_parameters() { init_weight_and_bias(weight, bias); }

Tensor Conv2d::forward(const Tensor& x) const {
  see_input(x);
  return conv2d(x, weight, bias, options_);
}

Tensor Conv2d::forward_relu(const Tensor& x) const {
  see_input(x);
  return conv2d_relu(x, weight, bias, options_);
}

std::string Conv2d::extra_repr() const {
  const auto& o = options_;
  const std::string padding = padding_text(o.padding, unless(o.padding.size, 0));
  return fmt::format("{}, {}, kernel_size={}, stride={}{}", weight.size(1) * o.groups, weight.size(0),
                     python_tuple({weight.size(2), weight.size(3)}), tuple(o.stride),
                     tail(padding, unless(o.dilation, 1), "", o.groups, bias.defined()));
}

// ---- ConvTranspose1d
// ---------------------------------------------------------------------------------------------------

ConvTranspose1d::ConvTranspose1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size,
                                 const ConvTranspose1dOptions& o)
    : ConvTranspose1d(detail::Lazy(), out_channels, kernel_size, o) {
  set_in_channels(in_channels);
}

ConvTranspose1d::ConvTranspose1d(detail::Lazy, int64_t out_channels, int64_t kernel_size,
                                 const ConvTranspose1dOptions& o)
    : options_{.stride = o.stride,
               .padding = o.padding,
               .output_padding = o.output_padding,
               .groups = o.groups,
               .dilation = o.dilation} {
  check_channels("ConvTranspose1d", 0, out_channels, o.groups);
  check_options("ConvTranspose1d", kernel_size, o.stride, o.padding, o.dilation);
  check_output_padding("ConvTranspose1d", o.output_padding, o.stride, o.dilation);
  weight = empty_parameter({0, out_channels / o.groups, kernel_size}, o);
  if (o.bias) bias = empty_parameter({out_channels}, o);
  detail::defer({&weight, &bias});
}

void ConvTranspose1d::set_in_channels(int64_t in_channels) const {
  const int64_t part = weight.size(1), groups = options_.groups;
  check_channels("ConvTranspose1d", in_channels, part * groups, groups);
  init_lazy_weight_and_bias(weight, {in_channels, part, weight.size(2)}, bias, {part * groups});
}

void ConvTranspose1d::see_input(const Tensor& x) const {
  if (detail::any_lazy(weight, bias)) [[unlikely]]
    set_in_channels(detail::size_of_first_input("LazyConvTranspose1d", x, -2, {.min_dim = 2, .max_dim = 3}));
}

void ConvTranspose1d::reset_parameters() { init_weight_and_bias(weight, bias); }

Tensor ConvTranspose1d::forward(const Tensor& x) const {
  see_input(x);
  return conv_transpose1d(x, weight, bias, options_);
}

std::string ConvTranspose1d::extra_repr() const {
  const auto& o = options_;
  return fmt::format("{}, {}, kernel_size={}, stride={}{}", weight.size(0), weight.size(1) * o.groups,
                     python_tuple({weight.size(2)}), python_tuple({o.stride}),
                     tail(unless(o.padding, 0), unless(o.dilation, 1), unless(o.output_padding, 0), o.groups,
                          bias.defined()));
}

// ---- ConvTranspose2d
// ---------------------------------------------------------------------------------------------------

ConvTranspose2d::ConvTranspose2d(int64_t in_channels, int64_t out_channels, Size2 kernel_size,
                                 const ConvTranspose2dOptions& o)
    : ConvTranspose2d(detail::Lazy(), out_channels, kernel_size, o) {
  set_in_channels(in_channels);
}

ConvTranspose2d::ConvTranspose2d(detail::Lazy, int64_t out_channels, Size2 kernel_size,
                                 const ConvTranspose2dOptions& o)
    : options_{.stride = o.stride,
               .padding = o.padding,
               .output_padding = o.output_padding,
               .groups = o.groups,
               .dilation = o.dilation} {
  check_channels("ConvTranspose2d", 0, out_channels, o.groups);
  check_options("ConvTranspose2d", kernel_size, o.stride, o.padding, o.dilation);
  check_output_padding("ConvTranspose2d", o.output_padding, o.stride, o.dilation);
  weight = empty_parameter({0, out_channels / o.groups, kernel_size.h, kernel_size.w}, o);
  if (o.bias) bias = empty_parameter({out_channels}, o);
  detail::defer({&weight, &bias});
}

void ConvTranspose2d::set_in_channels(int64_t in_channels) const {
  const int64_t part = weight.size(1), groups = options_.groups;
  check_channels("ConvTranspose2d", in_channels, part * groups, groups);
  init_lazy_weight_and_bias(weight, {in_channels, part, weight.size(2), weight.size(3)}, bias,
                            {part * groups});
}

void ConvTranspose2d::see_input(const Tensor& x) const {
  if (detail::any_lazy(weight, bias)) [[unlikely]]
    set_in_channels(detail::size_of_first_input("LazyConvTranspose2d", x, -3, {.min_dim = 3, .max_dim = 4}));
}

void ConvTranspose2d::reset_parameters() { init_weight_and_bias(weight, bias); }

Tensor ConvTranspose2d::forward(const Tensor& x) const {
  see_input(x);
  return conv_transpose2d(x, weight, bias, options_);
}

std::string ConvTranspose2d::extra_repr() const {
  const auto& o = options_;
  return fmt::format("{}, {}, kernel_size={}, stride={}{}", weight.size(0), weight.size(1) * o.groups,
                     python_tuple({weight.size(2), weight.size(3)}), tuple(o.stride),
                     tail(unless(o.padding, 0), unless(o.dilation, 1), unless(o.output_padding, 0), o.groups,
                          bias.defined()));
}

}  // namespace tern::nn
