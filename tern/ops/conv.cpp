// Convolutions with their gradients. Three products of two tensors are each
// other's gradients, so that derivatives of any order need nothing else: the
// convolution (x, weight), its input gradient (g, weight), its weight gradient
// (x, g).
#include "tern/ops/conv.h"

#include "tern/autograd/arithmetic.h"
#include "tern/ops/activation.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

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

// ---- checks
// ----------------------------------------------------------------------------------------------------------

void check_tensors(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_same_device(op, {{"input", x}, {"weight", weight}, {"bias", bias}});
  TERN_CHECK(x.dtype() == weight.dtype(), DTypeError,
             "{}: Input type ({}) and weight type ({}) should be the same: "
             "convert one with to(dtype)",
             op, name(x.dtype()), name(weight.dtype()));
  TERN_CHECK(!bias.defined() || bias.dtype() == x.dtype(), DTypeError,
             "{}: Input type ({}) and bias type ({}) should be the same: convert one with to(dtype)", op,
             name(x.dtype()), bias.defined() ? name(bias.dtype()) : "");
  TERN_CHECK(is_floating_point(x.dtype()), DTypeError,
             "{}: not implemented for {}: convert the operands with to(float32)", op, name(x.dtype()));
  TERN_CHECK(weight.dim() == 4, ShapeError, "{}: weight must be a 4-D tensor, got {}", op,
             to_string(weight.shape()));
  TERN_CHECK(x.dim() == 3 || x.dim() == 4, ShapeError,
             "{}: Expected 3D (unbatched) or 4D (batched) input to {}, but got "
             "input of size: {}",
             op, op, to_string(x.shape()));
}

void check_sequence(const char* op, const Tensor& x, const Tensor& weight) {
  TERN_CHECK(x.dim() == 2 || x.dim() == 3, ShapeError,
             "{}: Expected 2D (unbatched) or 3D (batched) input to {}, but got input of size: {}", op, op,
             to_string(x.shape()));
  TERN_CHECK(weight.dim() == 3, ShapeError, "{}: weight must be a 3-D tensor, got {}", op,
             to_string(weight.shape()));
}

void check_options(const char* op, Size2 stride, Size2 padding, Size2 dilation, int64_t groups) {
  TERN_CHECK(groups > 0, ValueError, "{}: non-positive groups is not supported: got {}", op, groups);
  TERN_CHECK(stride.h > 0 && stride.w > 0, ValueError,
             "{}: non-positive stride is not supported: got ({}, {})", op, stride.h, stride.w);
  TERN_CHECK(padding.h >= 0 && padding.w >= 0, ValueError,
             "{}: negative padding is not supported: got ({}, {})", op, padding.h, padding.w);
  TERN_CHECK(dilation.h > 0 && dilation.w > 0, ValueError,
             "{}: dilation should be greater than zero, but got ({}, {})", op, dilation.h, dilation.w);
  constexpr int64_t kLimit = int64_t{1} << 31;
  TERN_CHECK(stride.h < kLimit && stride.w < kLimit && padding.h < kLimit && padding.w < kLimit &&
                 dilation.h < kLimit && dilation.w < kLimit,
             ValueError, "{}: stride, padding and dilation must be below 2^31", op);
}

void check_bias(const char* op, const Tensor& weight, const Tensor& bias, int64_t channels) {
  TERN_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == channels), ShapeError,
             "{}: Given weight of size {}, expected bias to be 1-dimensional "
             "with {} elements, but got bias of size {} instead",
             op, to_string(weight.shape()), channels, to_string(bias.shape()));
}

/// The zeros that "same" needs at the top and left; at the other sides there
/// may be one more.
Size2 same_padding(const char* op, const Tensor& weight, const Conv2dOptions& o) {
  TERN_CHECK(o.stride == Size2(1), ValueError,
             "{}: padding='same' is not supported for strided convolutions: got stride ({}, {}): give the "
             "padding as "
             "numbers",
             op, o.stride.h, o.stride.w);
  return {o.dilation.h * (weight.size(2) - 1), o.dilation.w * (weight.size(3) - 1)};
}

Tensor conv2d_named(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    const Conv2dOptions& o, bool relu = false) {
  check_tensors(op, x, weight, bias);
  check_options(op, o.stride, o.padding.size, o.dilation, o.groups);
  if (x.dim() == 3) return squeeze(conv2d_named(op, unsqueeze(x, 0), weight, bias, o, relu), 0);
  TERN_CHECK(weight.size(0) % o.groups == 0 && weight.size(0) >= o.groups, ShapeError,
             "{}: Given groups={}, expected weight to be divisible by {} at "
             "dimension 0, but got weight of size {} instead",
             op, o.groups, o.groups, to_string(weight.shape()));
  TERN_CHECK(x.size(1) == weight.size(1) * o.groups, ShapeError,
             "{}: Given groups={}, weight of size {}, expected input{} to have "
             "{} channels, but got {} channels instead",
             op, o.groups, to_string(weight.shape()), to_string(x.shape()), weight.size(1) * o.groups,
             x.size(1));
  check_bias(op, weight, bias, weight.size(0));
  const bool same = o.padding.mode == ConvPadding::kSame;
  const Size2 total = same ? same_padding(op, weight, o) : Size2(0);
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
  TERN_CHECK(s.kernel_h > 0 && s.kernel_w > 0, ShapeError,
             "{}: kernel size should be greater than zero, but got weight of size {}", op,
             to_string(weight.shape()));
  s.out_h = Conv2dShape::output_size(s.in_h, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h);
  s.out_w = Conv2dShape::output_size(s.in_w, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w);
  TERN_CHECK(s.in_h > 0 && s.in_w > 0 && s.out_h > 0 && s.out_w > 0, ShapeError,
             "{}: Calculated padded input size per channel: ({} x {}). Kernel "
             "size: ({} x {}). Kernel size can't be greater than actual "
             "input size",
             op, s.in_h + 2 * s.padding_h, s.in_w + 2 * s.padding_w, s.dilation_h * (s.kernel_h - 1) + 1,
             s.dilation_w * (s.kernel_w - 1) + 1);
  Tensor y = convolution(s, x, weight, bias, relu);
  if (total.h % 2 != 0) y = narrow(y, 2, 1, s.in_h);
  if (total.w % 2 != 0) y = narrow(y, 3, 1, s.in_w);
  return y;
}

}  // namespace

ConvPadding::ConvPadding(std::string_view word) : size(0), mode(word == "same" ? kSame : kValid) {
  TERN_CHECK(word == "same" || word == "valid", ValueError,
             "Invalid padding string '{}', should be one of 'valid', 'same'", word);
}

std::string_view ConvPadding::word() const noexcept {
  return mode == kSame ? "same" : mode == kValid ? "valid" : "";
}

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
  check_sequence("conv1d", x, weight);
  ConvPadding padding = o.padding;
  padding.size.h = 0;
  return squeeze(conv2d_named("conv1d", unsqueeze(x, -2), unsqueeze(weight, -2), bias,
                              {{1, o.stride}, padding, {1, o.dilation}, o.groups}),
                 -2);
}

namespace {

Tensor conv_transpose2d_named(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const ConvTranspose2dOptions& o) {
  check_tensors(op, x, weight, bias);
  check_options(op, o.stride, o.padding, o.dilation, o.groups);
  if (x.dim() == 3) return squeeze(conv_transpose2d_named(op, unsqueeze(x, 0), weight, bias, o), 0);
  TERN_CHECK(weight.size(0) % o.groups == 0, ShapeError,
             "{}: Given groups={}, expected weight to be divisible by {} at "
             "dimension 0, but got weight of size {} instead",
             op, o.groups, o.groups, to_string(weight.shape()));
  TERN_CHECK(x.size(1) == weight.size(0), ShapeError,
             "{}: Given transposed=1, weight of size {}, expected input{} to "
             "have {} channels, but got {} channels instead",
             op, to_string(weight.shape()), to_string(x.shape()), weight.size(0), x.size(1));
  check_bias(op, weight, bias, weight.size(1) * o.groups);
  TERN_CHECK(o.output_padding.h >= 0 && o.output_padding.w >= 0 &&
                 o.output_padding.h < std::max(o.stride.h, o.dilation.h) &&
                 o.output_padding.w < std::max(o.stride.w, o.dilation.w),
             ValueError,
             "{}: output padding must be smaller than either stride or "
             "dilation, but got output_padding ({}, {})",
             op, o.output_padding.h, o.output_padding.w);
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
  TERN_CHECK(s.out_h > 0 && s.out_w > 0 && s.kernel_h > 0 && s.kernel_w > 0 && s.in_h > 0 && s.in_w > 0,
             ShapeError,
             "{}: Given input size per channel: ({} x {}). Calculated output "
             "size per channel: ({} x {}). Output size is too small",
             op, s.out_h, s.out_w, s.in_h, s.in_w);
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
  check_sequence(op, x, weight);
  return squeeze(conv_transpose2d_named(op, unsqueeze(x, -2), unsqueeze(weight, -2), bias,
                                        {.stride = {1, o.stride},
                                         .padding = {0, o.padding},
                                         .output_padding = {0, o.output_padding},
                                         .groups = o.groups,
                                         .dilation = {1, o.dilation}}),
                 -2);
}

}  // namespace tern
