// Convolutions with their gradients; those of volumes are in conv3d.cpp. Three products of two tensors are
// each other's gradients, so that derivatives of any order need nothing else: the convolution (x, weight),
// its input gradient (g, weight), its weight gradient (x, g).
#include "tern/ops/conv.h"

#include "tern/autograd/arithmetic.h"
#include "tern/ops/activation.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/conv_checks.h"
#include "tern/ops/copy.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

using namespace detail;

Shape input_shape(const Conv2dShape& s) { return {s.batch, s.in_channels, s.in_h, s.in_w}; }
Shape output_shape(const Conv2dShape& s) { return {s.batch, s.out_channels, s.out_h, s.out_w}; }
Shape weight_shape(const Conv2dShape& s) {
  return {s.out_channels, s.in_channels / s.groups, s.kernel_h, s.kernel_w};
}

/// Nothing to multiply: the kernels are not asked.
bool is_void(const Conv2dShape& s) { return s.batch == 0 || s.in_channels == 0 || s.out_channels == 0; }

Tensor input_gradient(const Conv2dShape& s, const Tensor& grad, const Tensor& weight);
Tensor weight_gradient(const Conv2dShape& s, const Tensor& x, const Tensor& grad);

/// What is common to all launches of gradients.
Conv2dBackwardArgs backward_args(const Conv2dShape& s, const Tensor& grad) {
  Conv2dBackwardArgs args;
  args.dtype = grad.dtype();
  args.shape = s;
  args.grad_output = grad.data_ptr();
  return args;
}

/// The gradients of a convolution, after relu where `y` is its result, as one launch; nothing is recorded.
std::array<Tensor, 3> all_gradients(const GradContext& c, const Conv2dShape& s, const Tensor& grad,
                                    const Tensor& y, const Tensor& x, const Tensor& weight) {
  std::array<Tensor, 3> grads;
  Conv2dBackwardArgs args = backward_args(s, grad);
  if (y.defined()) args.relu_output = y.data_ptr();
  if (c.needs(0)) {
    grads[0] = empty_of(input_shape(s), grad);
    args.weight = weight.data_ptr();
    args.grad_input = grads[0].data_ptr();
  }
  if (c.needs(1)) {
    grads[1] = empty_of(weight_shape(s), grad);
    args.input = x.data_ptr();
    args.grad_weight = grads[1].data_ptr();
  }
  if (c.needs(2)) {
    grads[2] = empty_of({s.out_channels}, grad);
    args.grad_bias = grads[2].data_ptr();
  }
  launch(current_stream(grad.device()), kernels::conv2d_backward, args);
  return grads;
}

/// All operands have the shapes that `s` says; `bias` may be undefined.
Tensor convolution(const Conv2dShape& s, const Tensor& x_given, const Tensor& weight_given,
                   const Tensor& bias_given, bool relu) {
  const Tensor x = contiguous(x_given), weight = contiguous(weight_given);
  const Tensor bias = bias_given.defined() ? contiguous(bias_given) : bias_given;
  Tensor y;
  if (is_void(s)) {
    y = filled(output_shape(s), x.dtype(), x.device(), 0);
    if (bias.defined()) copy_(y, reshape(relu ? tern::relu(bias.detach()) : bias.detach(), {-1, 1, 1}));
  } else {
    y = empty_of(output_shape(s), x);
    Conv2dArgs args;
    args.dtype = x.dtype();
    args.relu = relu;
    args.shape = s;
    args.input = x.data_ptr();
    args.weight = weight.data_ptr();
    args.bias = bias.defined() ? bias.data_ptr() : nullptr;
    args.output = y.data_ptr();
    launch(current_stream(x.device()), kernels::conv2d, args);
  }
  if (tracks_grad(x, weight, bias))
    record(relu ? "conv2d_relu" : "conv2d", y, {x, weight, bias},
           [s, x_ = save(x), weight_ = save(weight), y_ = relu ? save_output(y) : Saved()](
               GradContext& c, const Tensor& g_given) {
             const Tensor relu_output = c[y_], g = contiguous(g_given);
             if (!is_grad_enabled() && !is_void(s))
               return all_gradients(c, s, g, relu_output, c.needs(1) ? c[x_] : Tensor(),
                                    c.needs(0) ? c[weight_] : Tensor());
             const Tensor grad = relu_output.defined() ? relu_gradient(g, relu_output) : g;
             std::array<Tensor, 3> grads;
             if (c.needs(0)) grads[0] = input_gradient(s, grad, c[weight_]);
             if (c.needs(1)) grads[1] = weight_gradient(s, c[x_], grad);
             if (c.needs(2)) grads[2] = sum(grad, {0, 2, 3});
             return grads;
           });
  return y;
}

Tensor input_gradient(const Conv2dShape& s, const Tensor& grad_given, const Tensor& weight_given) {
  const Tensor grad = contiguous(grad_given), weight = contiguous(weight_given);
  Tensor y;
  if (is_void(s)) {
    y = filled(input_shape(s), grad.dtype(), grad.device(), 0);
  } else {
    y = empty_of(input_shape(s), grad);
    Conv2dBackwardArgs args = backward_args(s, grad);
    args.weight = weight.data_ptr();
    args.grad_input = y.data_ptr();
    launch(current_stream(grad.device()), kernels::conv2d_backward, args);
  }
  if (tracks_grad(grad, weight))
    record("conv2d_backward_input", y, {grad, weight},
           [s, grad_ = save(grad), weight_ = save(weight)](GradContext& c, const Tensor& g) {
             return std::array<Tensor, 2>{
                 c.needs(0) ? convolution(s, g, c[weight_], {}, /*relu=*/false) : Tensor(),
                 c.needs(1) ? weight_gradient(s, g, c[grad_]) : Tensor()};
           });
  return y;
}

Tensor weight_gradient(const Conv2dShape& s, const Tensor& x_given, const Tensor& grad_given) {
  const Tensor x = contiguous(x_given), grad = contiguous(grad_given);
  Tensor y;
  if (is_void(s)) {
    y = filled(weight_shape(s), x.dtype(), x.device(), 0);
  } else {
    y = empty_of(weight_shape(s), x);
    Conv2dBackwardArgs args = backward_args(s, grad);
    args.input = x.data_ptr();
    args.grad_weight = y.data_ptr();
    launch(current_stream(x.device()), kernels::conv2d_backward, args);
  }
  if (tracks_grad(x, grad))
    record("conv2d_backward_weight", y, {x, grad},
           [s, x_ = save(x), grad_ = save(grad)](GradContext& c, const Tensor& g) {
             return std::array<Tensor, 2>{
                 c.needs(0) ? input_gradient(s, c[grad_], g) : Tensor(),
                 c.needs(1) ? convolution(s, c[x_], g, {}, /*relu=*/false) : Tensor()};
           });
  return y;
}

// ---- layouts
// ---------------------------------------------------------------------------------------------------------

using Sizes2 = std::array<int64_t, 2>;

Tensor conv2d_named(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    const Conv2dOptions& o, bool relu = false) {
  check_conv_tensors(op, 2, x, weight, bias);
  check_conv_options(op, sizes_of(o.stride), sizes_of(o.padding.size), sizes_of(o.dilation), o.groups);
  if (x.dim() == 3) return squeeze(conv2d_named(op, unsqueeze(x, 0), weight, bias, o, relu), 0);
  check_conv_channels(op, x, weight, bias, o.groups);
  const bool same = o.padding.mode == ConvPadding::kSame;
  if (same) check_same_padding(op, sizes_of(o.stride));
  const Size2 total =
      same ? Size2(o.dilation.h * (weight.size(2) - 1), o.dilation.w * (weight.size(3) - 1)) : Size2(0);
  // Where "same" needs an odd number of zeros, both sides get the larger half,
  // and the first row or column is cut off.
  const Size2 padding = same ? Size2((total.h + 1) / 2, (total.w + 1) / 2) : o.padding.size;
  Conv2dShape s;
  s.batch = x.size(0);
  s.in_channels = x.size(1);
  s.in_h = x.size(2);
  s.in_w = x.size(3);
  s.out_channels = weight.size(0);
  s.kernel_h = weight.size(2);
  s.kernel_w = weight.size(3);
  s.stride_h = o.stride.h;
  s.stride_w = o.stride.w;
  s.padding_h = padding.h;
  s.padding_w = padding.w;
  s.dilation_h = o.dilation.h;
  s.dilation_w = o.dilation.w;
  s.groups = o.groups;
  check_conv_kernel(op, weight);
  s.out_h = Conv2dShape::output_size(s.in_h, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h);
  s.out_w = Conv2dShape::output_size(s.in_w, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w);
  check_conv_sizes(op, Sizes2{s.in_h + 2 * s.padding_h, s.in_w + 2 * s.padding_w},
                   Sizes2{s.dilation_h * (s.kernel_h - 1) + 1, s.dilation_w * (s.kernel_w - 1) + 1},
                   Sizes2{s.in_h, s.in_w}, Sizes2{s.out_h, s.out_w});
  Tensor y = convolution(s, x, weight, bias, relu);
  if (total.h % 2 != 0) y = narrow(y, 2, 1, s.in_h);
  if (total.w % 2 != 0) y = narrow(y, 3, 1, s.in_w);
  return y;
}

}  // namespace

template <class Size>
BasicConvPadding<Size>::BasicConvPadding(std::string_view word)
    : size(0), mode(word == "same" ? kSame : kValid) {
  TERN_CHECK(word == "same" || word == "valid", ValueError,
             "Invalid padding string '{}', should be one of 'valid', 'same'", word);
}

template <class Size>
std::string_view BasicConvPadding<Size>::word() const noexcept {
  return mode == kSame ? "same" : mode == kValid ? "valid" : "";
}

template struct BasicConvPadding<Size2>;
template struct BasicConvPadding<Size3>;

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(conv2d, x, weight, bias, options);
  return conv2d_named("conv2d", x, weight, bias, options);
}

Tensor conv2d_relu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(conv2d_relu, x, weight, bias, options);
  return conv2d_named("conv2d", x, weight, bias, options, /*relu=*/true);
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dOptions& o) {
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(conv1d, x, weight, bias, o);
  check_conv_tensors("conv1d", 1, x, weight, bias);
  ConvPadding padding = o.padding;
  padding.size.h = 0;
  return squeeze(conv2d_named("conv1d", unsqueeze(x, -2), unsqueeze(weight, -2), bias,
                              {{1, o.stride}, padding, {1, o.dilation}, o.groups}),
                 -2);
}

namespace {

Tensor conv_transpose2d_named(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const ConvTranspose2dOptions& o) {
  check_conv_tensors(op, 2, x, weight, bias);
  check_conv_options(op, sizes_of(o.stride), sizes_of(o.padding), sizes_of(o.dilation), o.groups);
  if (x.dim() == 3) return squeeze(conv_transpose2d_named(op, unsqueeze(x, 0), weight, bias, o), 0);
  check_conv_transpose_channels(op, x, weight, bias, o.groups);
  check_output_padding(op, sizes_of(o.output_padding), sizes_of(o.stride), sizes_of(o.dilation));
  Conv2dShape s;
  s.batch = x.size(0);
  s.in_channels = weight.size(1) * o.groups;
  s.out_channels = x.size(1);
  s.out_h = x.size(2);
  s.out_w = x.size(3);
  s.kernel_h = weight.size(2);
  s.kernel_w = weight.size(3);
  s.stride_h = o.stride.h;
  s.stride_w = o.stride.w;
  s.padding_h = o.padding.h;
  s.padding_w = o.padding.w;
  s.dilation_h = o.dilation.h;
  s.dilation_w = o.dilation.w;
  s.groups = o.groups;
  s.in_h =
      (s.out_h - 1) * s.stride_h - 2 * s.padding_h + s.dilation_h * (s.kernel_h - 1) + o.output_padding.h + 1;
  s.in_w =
      (s.out_w - 1) * s.stride_w - 2 * s.padding_w + s.dilation_w * (s.kernel_w - 1) + o.output_padding.w + 1;
  check_conv_transpose_sizes(op, Sizes2{s.out_h, s.out_w}, Sizes2{s.kernel_h, s.kernel_w},
                             Sizes2{s.in_h, s.in_w});
  const int64_t more_h = o.output_padding.h / o.stride.h, more_w = o.output_padding.w / o.stride.w;
  if (more_h != 0 || more_w != 0) {  // a whole stride of output padding is what one more row of zeros gives
    const auto with_zeros = [](const Tensor& part, int64_t dim, int64_t more) {
      Shape shape = part.shape();
      shape[static_cast<size_t>(dim)] = more;
      return cat({part, filled(shape, part.dtype(), part.device(), 0)}, dim);
    };
    ConvTranspose2dOptions rest = o;
    rest.output_padding = {o.output_padding.h % o.stride.h, o.output_padding.w % o.stride.w};
    return conv_transpose2d_named(op, with_zeros(with_zeros(x, 2, more_h), 3, more_w), weight, bias, rest);
  }
  Tensor y = input_gradient(s, x, weight);
  return bias.defined() ? add(y, reshape(bias, {-1, 1, 1})) : y;
}

}  // namespace

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOptions& options) {
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(conv_transpose2d, x, weight, bias, options);
  return conv_transpose2d_named("conv_transpose2d", x, weight, bias, options);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose1dOptions& o) {
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(conv_transpose1d, x, weight, bias, o);
  const char* op = "conv_transpose1d";
  check_conv_tensors(op, 1, x, weight, bias);
  return squeeze(conv_transpose2d_named(op, unsqueeze(x, -2), unsqueeze(weight, -2), bias,
                                        {.stride = {1, o.stride},
                                         .padding = {0, o.padding},
                                         .output_padding = {0, o.output_padding},
                                         .groups = o.groups,
                                         .dilation = {1, o.dilation}}),
                 -2);
}

}  // namespace tern
