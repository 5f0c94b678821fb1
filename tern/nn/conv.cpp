// Convolution layers.
#include "tern/nn/conv.h"

#include <fmt/format.h>

#include <algorithm>

#include "tern/nn/layer_support.h"
#include "tern/nn/text.h"
#include "tern/ops/pad.h"

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

constexpr std::string_view kZeros = "zeros";

template <class Size>
std::string unless(Size size, int64_t usual) {
  return size == Size(usual) ? "" : tuple_text(size);
}

template <int N>
void check_options(const char* layer, SizeOf<N> kernel_size, const ConvOptions<N>& o) {
  check_window(layer, sizes_of(kernel_size), sizes_of(o.stride), sizes_of(explicit_padding<N>(o.padding)),
               sizes_of(o.dilation));
  TERN_CHECK(o.padding.mode != ConvPaddingOf<N>::kSame || o.stride == SizeOf<N>(1), ValueError,
             "{}: padding='same' is not supported for strided convolutions, got stride {}", layer,
             tuple_text(o.stride));
  const auto& mode = o.padding_mode;
  TERN_CHECK(mode == kZeros || mode == "reflect" || mode == "replicate" || mode == "circular", ValueError,
             "{}: padding_mode must be one of {{'zeros', 'reflect', 'replicate', 'circular'}}, but got "
             "padding_mode='{}'",
             layer, mode);
}

template <int N>
void check_options(const char* layer, SizeOf<N> kernel_size, const ConvTransposeOptions<N>& o) {
  const auto more = sizes_of(o.output_padding), stride = sizes_of(o.stride), dilation = sizes_of(o.dilation);
  check_window(layer, sizes_of(kernel_size), stride, sizes_of(o.padding), dilation);
  at_least(layer, "output_padding", more, 0);
  for (size_t d = 0; d < more.size(); ++d)
    TERN_CHECK(more[d] < std::max(stride[d], dilation[d]), ValueError,
               "{}: output_padding must be smaller than either stride or dilation, got {}", layer,
               tuple_text(o.output_padding));
}

template <int N>
tern::ConvOptions<N> operator_options(const ConvOptions<N>& o) {
  return {.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups};
}
template <int N>
tern::ConvTransposeOptions<N> operator_options(const ConvTransposeOptions<N>& o) {
  return {.stride = o.stride,
          .padding = o.padding,
          .output_padding = o.output_padding,
          .groups = o.groups,
          .dilation = o.dilation};
}

/// By N - 1.
constexpr const char* kNames[2][3] = {{"Conv1d", "Conv2d", "Conv3d"},
                                      {"ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"}};

Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& b, const tern::Conv1dOptions& o) {
  return conv1d(x, w, b, o);
}
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& b, const tern::Conv2dOptions& o) {
  return conv2d(x, w, b, o);
}
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& b, const tern::Conv3dOptions& o) {
  return conv3d(x, w, b, o);
}
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& b, const tern::ConvTranspose1dOptions& o) {
  return conv_transpose1d(x, w, b, o);
}
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& b, const tern::ConvTranspose2dOptions& o) {
  return conv_transpose2d(x, w, b, o);
}
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& b, const tern::ConvTranspose3dOptions& o) {
  return conv_transpose3d(x, w, b, o);
}

}  // namespace

template <int N, bool kTransposed>
ConvLayer<N, kTransposed>::ConvLayer(int64_t in_channels, int64_t out_channels, SizeOf<N> kernel_size,
                                     const Options& o)
    : ConvLayer(detail::Lazy(), out_channels, kernel_size, o) {
  set_in_channels(in_channels);
}

template <int N, bool kTransposed>
ConvLayer<N, kTransposed>::ConvLayer(detail::Lazy, int64_t out_channels, SizeOf<N> kernel_size,
                                     const Options& o)
    : options_(operator_options<N>(o)) {
  const char* layer = kNames[kTransposed][N - 1];
  check_channels(layer, 0, out_channels, o.groups);
  check_options<N>(layer, kernel_size, o);
  if constexpr (!kTransposed) padding_mode_ = o.padding_mode;
  weight = empty_parameter(weight_shape(0, out_channels, kernel_size), o);
  if (o.bias) bias = empty_parameter({out_channels}, o);
  detail::defer({&weight, &bias});
}

template <int N, bool kTransposed>
Shape ConvLayer<N, kTransposed>::weight_shape(int64_t in_channels, int64_t out_channels,
                                              SizeOf<N> kernel_size) const {
  Shape shape = kTransposed ? Shape{in_channels, out_channels / options_.groups}
                            : Shape{out_channels, in_channels / options_.groups};
  for (const int64_t size : sizes_of(kernel_size)) shape.push_back(size);
  return shape;
}

template <int N, bool kTransposed>
SizeOf<N> ConvLayer<N, kTransposed>::kernel_size() const {
  std::array<int64_t, N> sizes;
  std::copy_n(weight.shape().begin() + 2, N, sizes.begin());
  return size_from(sizes);
}

template <int N, bool kTransposed>
void ConvLayer<N, kTransposed>::set_in_channels(int64_t in_channels) const {
  check_channels(kNames[kTransposed][N - 1], in_channels, out_channels(), options_.groups);
  init_lazy_weight_and_bias(weight, weight_shape(in_channels, out_channels(), kernel_size()), bias,
                            {out_channels()});
}

template <int N, bool kTransposed>
void ConvLayer<N, kTransposed>::see_input(const Tensor& x) const {
  if (detail::any_lazy(weight, bias)) [[unlikely]]
    set_in_channels(
        detail::size_of_first_input(class_name(), x, -N - 1, {.min_dim = N + 1, .max_dim = N + 2}));
}

template <int N, bool kTransposed>
void ConvLayer<N, kTransposed>::reset_parameters() {
  init_weight_and_bias(weight, bias);
}

template <int N, bool kTransposed>
std::string ConvLayer<N, kTransposed>::class_name() const {
  return std::string(is_lazy(weight) ? "Lazy" : "") + kNames[kTransposed][N - 1];
}

template <int N, bool kTransposed>
std::vector<int64_t> ConvLayer<N, kTransposed>::reversed_padding() const {
  const ConvPaddingOf<N> padding = options_.padding;  // that of a transposed one is sizes alone
  const auto kernel = sizes_of(kernel_size()), dilation = sizes_of(options_.dilation),
             given = sizes_of(explicit_padding<N>(padding));
  std::vector<int64_t> sides;
  for (size_t d = kernel.size(); d-- > 0;) {
    const int64_t total = dilation[d] * (kernel[d] - 1);
    const bool same = padding.mode == ConvPaddingOf<N>::kSame;
    sides.push_back(same ? total / 2 : given[d]);
    sides.push_back(same ? total - total / 2 : given[d]);
  }
  return sides;
}

template <int N, bool kTransposed>
template <class F>
Tensor ConvLayer<N, kTransposed>::on_padded(const Tensor& x, F convolution) const {
  if (padding_mode_ == kZeros) [[likely]]
    return convolution(x, options_);
  OperatorOptions options = options_;
  options.padding = 0;
  return convolution(pad(x, reversed_padding(), padding_mode_), options);
}

template <int N, bool kTransposed>
Tensor ConvLayer<N, kTransposed>::forward(const Tensor& x) const {
  see_input(x);
  return on_padded(x, [this](const Tensor& padded, const auto& options) {
    return convolve(padded, weight, bias, options);
  });
}

template <int N, bool kTransposed>
Tensor ConvLayer<N, kTransposed>::forward_relu(const Tensor& x) const requires(N == 2 && !kTransposed) {
  see_input(x);
  if constexpr (N == 2 && !kTransposed)  // Clang 14 instantiates it for the others, too
    return on_padded(x, [this](const Tensor& padded, const auto& options) {
      return conv2d_relu(padded, weight, bias, options);
    });
  return {};
}

template <int N, bool kTransposed>
std::string ConvLayer<N, kTransposed>::extra_repr() const {
  const auto& o = options_;
  std::string text = fmt::format("{}, {}, kernel_size={}, stride={}", in_channels(), out_channels(),
                                 tuple_text(kernel_size()), tuple_text(o.stride));
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format(", {}={}", name, value);
  };
  if constexpr (kTransposed)
    add("padding", unless(o.padding, 0));
  else
    add("padding",
        o.padding.word().empty() ? unless(explicit_padding<N>(o.padding), 0) : std::string(o.padding.word()));
  add("dilation", unless(o.dilation, 1));
  if constexpr (kTransposed) add("output_padding", unless(o.output_padding, 0));
  if (o.groups != 1) add("groups", std::to_string(o.groups));
  if (!bias.defined()) add("bias", "False");
  if (padding_mode_ != kZeros) add("padding_mode", padding_mode_);
  return text;
}

template class ConvLayer<1, false>;
template class ConvLayer<2, false>;
template class ConvLayer<3, false>;
template class ConvLayer<1, true>;
template class ConvLayer<2, true>;
template class ConvLayer<3, true>;

}  // namespace tern::nn
