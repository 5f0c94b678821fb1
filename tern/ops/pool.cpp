// Pooling with its gradients. The backward operators are linear, and their own
// gradients are the forward ones again.
#include "tern/ops/pool.h"

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// x's shape with other sizes of the images.
Shape with_images(const Tensor& x, int64_t h, int64_t w) {
  Shape shape = x.shape();
  shape[shape.size() - 2] = h;
  shape[shape.size() - 1] = w;
  return shape;
}
Tensor empty_images(const Tensor& x, int64_t h, int64_t w, DType dtype) {
  Shape shape = with_images(x, h, w);
  const int64_t numel = checked_numel(shape);
  return empty_contiguous(std::move(shape), numel, dtype, x.device());
}

/// Sizes without those of the output.
Pool2dShape shape_of(const char* op, const Tensor& x) {
  TERN_CHECK(x.dim() == 3 || x.dim() == 4, ShapeError,
             "{}: Expected 3D or 4D (batch mode) tensor, but got {}", op, to_string(x.shape()));
  Pool2dShape s;
  s.planes = x.dim() == 4 ? x.size(0) * x.size(1) : x.size(0);
  s.in_h = x.size(-2);
  s.in_w = x.size(-1);
  for (int64_t d = x.dim() == 4 ? 1 : 0; d < x.dim(); ++d)
    TERN_CHECK(x.size(d) != 0, ShapeError,
               "{}: Expected input to have non-zero size for non-batch dimensions, "
               "but input has sizes {} with dimension {} being empty",
               op, to_string(x.shape()), d);
  return s;
}

Pool2dShape window_shape(const char* op, const Tensor& x, Size2 kernel,
                         const std::optional<Size2>& stride_given, Size2 padding, Size2 dilation,
                         bool ceil_mode) {
  const Size2 stride = stride_given.value_or(kernel);
  TERN_CHECK(kernel.h > 0 && kernel.w > 0, ValueError,
             "{}: kernel size should be greater than zero, but got kH: {} kW: {}", op, kernel.h, kernel.w);
  TERN_CHECK(stride.h > 0 && stride.w > 0, ValueError,
             "{}: stride should be greater than zero, but got dH: {} dW: {}", op, stride.h, stride.w);
  TERN_CHECK(dilation.h > 0 && dilation.w > 0, ValueError,
             "{}: dilation should be greater than zero, but got dilationH: {} "
             "dilationW: {}",
             op, dilation.h, dilation.w);
  TERN_CHECK(padding.h >= 0 && padding.w >= 0, ValueError,
             "{}: pad must be non-negative, but got padH: {} padW: {}", op, padding.h, padding.w);
  constexpr int64_t kLimit = int64_t{1} << 31;
  TERN_CHECK(kernel.h < kLimit && kernel.w < kLimit && stride.h < kLimit && stride.w < kLimit &&
                 dilation.h < kLimit && dilation.w < kLimit,
             ValueError, "{}: kernel size, stride and dilation must be below 2^31", op);
  const int64_t reach_h = dilation.h * (kernel.h - 1) + 1, reach_w = dilation.w * (kernel.w - 1) + 1;
  TERN_CHECK(padding.h <= reach_h / 2 && padding.w <= reach_w / 2, ValueError,
             "{}: pad should be at most half of effective kernel size, but got "
             "pad=({}, {}), kernel_size=({}, {}) and dilation=({}, {})",
             op, padding.h, padding.w, kernel.h, kernel.w, dilation.h, dilation.w);
  Pool2dShape s = shape_of(op, x);
  s.kernel_h = kernel.h;
  s.kernel_w = kernel.w;
  s.stride_h = stride.h;
  s.stride_w = stride.w;
  s.padding_h = padding.h;
  s.padding_w = padding.w;
  s.dilation_h = dilation.h;
  s.dilation_w = dilation.w;
  s.out_h = Pool2dShape::output_size(s.in_h, kernel.h, stride.h, padding.h, dilation.h, ceil_mode);
  s.out_w = Pool2dShape::output_size(s.in_w, kernel.w, stride.w, padding.w, dilation.w, ceil_mode);
  TERN_CHECK(
      s.out_h > 0 && s.out_w > 0, ShapeError,
      "{}: Given input size: ({}x{}x{}). Calculated output size: "
      "({}x{}x{}). Output size is too small for a kernel of ({}x{}): use a smaller kernel or more padding",
      op, x.size(-3), s.in_h, s.in_w, x.size(-3), s.out_h, s.out_w, kernel.h, kernel.w);
  return s;
}

Pool2dShape adaptive_shape(const char* op, const Tensor& x, Size2 output_size) {
  Pool2dShape s = shape_of(op, x);
  s.out_h = output_size.h == -1 ? s.in_h : output_size.h;
  s.out_w = output_size.w == -1 ? s.in_w : output_size.w;
  TERN_CHECK(s.out_h >= 0 && s.out_w >= 0, ValueError,
             "{}: elements of output_size must be greater than or equal to 0, "
             "but got ({}, {})",
             op, output_size.h, output_size.w);
  return s;
}

// ---- maxima
// ----------------------------------------------------------------------------------------------------------

/// Each element of g at its place in the image that `indices` names; elements
/// with the same place are added.
Tensor spread(const Pool2dShape& s, const Tensor& g_given, const Tensor& indices) {
  const Tensor g = contiguous(g_given);
  Tensor y = empty_images(g, s.in_h, s.in_w, g.dtype());
  MaxPool2dBackwardArgs args;
  args.dtype = g.dtype();
  args.shape = s;
  args.grad_output = g.data_ptr();
  args.indices = static_cast<const int64_t*>(indices.data_ptr());
  args.grad_input = y.data_ptr();
  if (g.numel() == 0)
    fill_elements(y, 0);
  else
    launch(current_stream(g.device()), kernels::max_pool2d_backward, args);
  if (tracks_grad(g))
    record("max_pool2d_backward", y, {g}, [indices_ = save(indices)](GradContext& c, const Tensor& gg) {
      const Tensor at = c[indices_];
      return reshape(gather(flatten(gg, -2, -1), -1, flatten(at, -2, -1)), at.shape());
    });
  return y;
}

/// Runs `kernel`, with its arguments of type Args, for the maxima and (when
/// wanted or needed) their places.
template <class Args, class Kernel>
std::pair<Tensor, Tensor> maxima(const char* op, Kernel kernel, const Pool2dShape& s, const Tensor& x_given,
                                 bool indices_wanted) {
  TERN_CHECK(is_computable(x_given.dtype()) && x_given.dtype() != DType::Bool, DTypeError,
             "{}: not implemented for {}: convert with to(dtype)", op, name(x_given.dtype()));
  const Tensor x = contiguous(x_given);
  Tensor y = empty_images(x, s.out_h, s.out_w, x.dtype());
  const bool tracked = tracks_grad(x);
  Tensor indices;
  if (tracked || indices_wanted) indices = empty_images(x, s.out_h, s.out_w, DType::Int64);
  if (y.numel() != 0) {
    Args args;
    args.dtype = x.dtype();
    args.shape = s;
    args.input = x.data_ptr();
    args.output = y.data_ptr();
    args.indices = indices.defined() ? static_cast<int64_t*>(indices.data_ptr()) : nullptr;
    launch(current_stream(x.device()), kernel, args);
  }
  if (tracked)
    record(op, y, {x}, [s, indices_ = save(indices)](GradContext& c, const Tensor& g) {
      return spread(s, g, c[indices_]);
    });
  return {y, indices};
}

std::pair<Tensor, Tensor> max_pool(const char* op, const Tensor& x, const MaxPool2dOptions& o,
                                   bool indices_wanted) {
  const Pool2dShape s = window_shape(op, x, o.kernel_size, o.stride, o.padding, o.dilation, o.ceil_mode);
  return maxima<MaxPool2dArgs>(op, kernels::max_pool2d, s, x, indices_wanted);
}
std::pair<Tensor, Tensor> adaptive_max_pool(const char* op, const Tensor& x, Size2 output_size,
                                            bool indices_wanted) {
  return maxima<AdaptiveMaxPool2dArgs>(op, kernels::adaptive_max_pool2d, adaptive_shape(op, x, output_size),
                                       x, indices_wanted);
}

// ---- means
// -----------------------------------------------------------------------------------------------------------

void check_mean_dtype(const char* op, const Tensor& x) {
  TERN_CHECK(is_floating_point(x.dtype()) || x.dtype() == DType::Int64, DTypeError,
             "{}: not implemented for {}: convert with to(float32)", op, name(x.dtype()));
}

struct MeanRule {
  bool count_include_pad;
  int64_t divisor;  ///< 0: the size of the window
};

Tensor mean_backward(const Pool2dShape& s, MeanRule rule, const Tensor& g_given);

Tensor mean_pool(const char* op, const Pool2dShape& s, MeanRule rule, const Tensor& x_given) {
  const Tensor x = contiguous(x_given);
  Tensor y = empty_images(x, s.out_h, s.out_w, x.dtype());
  if (y.numel() != 0) {
    AvgPool2dArgs args;
    args.dtype = x.dtype();
    args.count_include_pad = rule.count_include_pad;
    args.divisor_override = rule.divisor;
    args.shape = s;
    args.input = x.data_ptr();
    args.output = y.data_ptr();
    launch(current_stream(x.device()), kernels::avg_pool2d, args);
  }
  if (tracks_grad(x))
    record(op, y, {x}, [s, rule](GradContext&, const Tensor& g) { return mean_backward(s, rule, g); });
  return y;
}

Tensor mean_backward(const Pool2dShape& s, MeanRule rule, const Tensor& g_given) {
  const Tensor g = contiguous(g_given);
  Tensor y = empty_images(g, s.in_h, s.in_w, g.dtype());
  if (y.numel() != 0) {
    AvgPool2dBackwardArgs args;
    args.dtype = g.dtype();
    args.count_include_pad = rule.count_include_pad;
    args.divisor_override = rule.divisor;
    args.shape = s;
    args.grad_output = g.data_ptr();
    args.grad_input = y.data_ptr();
    launch(current_stream(g.device()), kernels::avg_pool2d_backward, args);
  }
  if (tracks_grad(g))
    record("avg_pool2d_backward", y, {g}, [s, rule](GradContext&, const Tensor& gg) {
      return mean_pool("avg_pool2d_backward", s, rule, gg);
    });
  return y;
}

Tensor adaptive_mean_backward(const Pool2dShape& s, const Tensor& g_given);

Tensor adaptive_mean(const char* op, const Pool2dShape& s, const Tensor& x_given) {
  // One window alone has the whole image: many threads can add it, and its gradient is a view.
  if (s.out_h == 1 && s.out_w == 1 && is_floating_point(x_given.dtype()))
    return mean(x_given, {-2, -1}, /*keepdim=*/true);
  const Tensor x = contiguous(x_given);
  Tensor y = empty_images(x, s.out_h, s.out_w, x.dtype());
  if (y.numel() != 0) {
    AdaptiveAvgPool2dArgs args;
    args.dtype = x.dtype();
    args.shape = s;
    args.input = x.data_ptr();
    args.output = y.data_ptr();
    launch(current_stream(x.device()), kernels::adaptive_avg_pool2d, args);
  }
  if (tracks_grad(x))
    record(op, y, {x}, [s](GradContext&, const Tensor& g) { return adaptive_mean_backward(s, g); });
  return y;
}

Tensor adaptive_mean_backward(const Pool2dShape& s, const Tensor& g_given) {
  const Tensor g = contiguous(g_given);
  Tensor y = empty_images(g, s.in_h, s.in_w, g.dtype());
  if (g.numel() == 0) {
    fill_elements(y, 0);
  } else {
    AdaptiveAvgPool2dBackwardArgs args;
    args.dtype = g.dtype();
    args.shape = s;
    args.grad_output = g.data_ptr();
    args.grad_input = y.data_ptr();
    launch(current_stream(g.device()), kernels::adaptive_avg_pool2d_backward, args);
  }
  if (tracks_grad(g))
    record("adaptive_avg_pool2d_backward", y, {g}, [s](GradContext&, const Tensor& gg) {
      return adaptive_mean("adaptive_avg_pool2d_backward", s, gg);
    });
  return y;
}

/// A sequence as images of height 1.
Tensor as_image(const char* op, const Tensor& x) {
  TERN_CHECK(x.dim() == 2 || x.dim() == 3, ShapeError,
             "{}: Expected 2D or 3D (batch mode) tensor, but got {}", op, to_string(x.shape()));
  return unsqueeze(x, -2);
}
std::optional<Size2> wide(const std::optional<int64_t>& stride) {
  return stride ? std::optional<Size2>(Size2(1, *stride)) : std::nullopt;
}

}  // namespace

Tensor max_pool2d(const Tensor& x, const MaxPool2dOptions& options) {
  return max_pool("max_pool2d", x, options, /*indices_wanted=*/false).first;
}

std::pair<Tensor, Tensor> max_pool2d_with_indices(const Tensor& x, const MaxPool2dOptions& options) {
  return max_pool("max_pool2d", x, options, /*indices_wanted=*/true);
}

Tensor avg_pool2d(const Tensor& x, const AvgPool2dOptions& o) {
  check_mean_dtype("avg_pool2d", x);
  TERN_CHECK(!o.divisor_override || *o.divisor_override != 0, ValueError,
             "avg_pool2d: divisor must be not zero");
  const Pool2dShape s = window_shape("avg_pool2d", x, o.kernel_size, o.stride, o.padding, 1, o.ceil_mode);
  return mean_pool("avg_pool2d", s, {o.count_include_pad, o.divisor_override.value_or(0)}, x);
}

Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output_size) {
  check_mean_dtype("adaptive_avg_pool2d", x);
  return adaptive_mean("adaptive_avg_pool2d", adaptive_shape("adaptive_avg_pool2d", x, output_size), x);
}

Tensor adaptive_max_pool2d(const Tensor& x, Size2 output_size) {
  return adaptive_max_pool("adaptive_max_pool2d", x, output_size,
                           /*indices_wanted=*/false)
      .first;
}
std::pair<Tensor, Tensor> adaptive_max_pool2d_with_indices(const Tensor& x, Size2 output_size) {
  return adaptive_max_pool("adaptive_max_pool2d", x, output_size,
                           /*indices_wanted=*/true);
}

namespace {
/// The indices of height 1 are those of the sequence.
std::pair<Tensor, Tensor> as_sequences(const std::pair<Tensor, Tensor>& images) {
  return {squeeze(images.first, -2), images.second.defined() ? squeeze(images.second, -2) : Tensor()};
}

std::pair<Tensor, Tensor> max_pool_sequence(const Tensor& x, const MaxPool1dOptions& o, bool indices_wanted) {
  const MaxPool2dOptions wide_options{
      {1, o.kernel_size}, wide(o.stride), {0, o.padding}, {1, o.dilation}, o.ceil_mode};
  return as_sequences(max_pool("max_pool1d", as_image("max_pool1d", x), wide_options, indices_wanted));
}

std::pair<Tensor, Tensor> adaptive_max_pool_sequence(const Tensor& x, int64_t output_size,
                                                     bool indices_wanted) {
  const char* op = "adaptive_max_pool1d";
  return as_sequences(adaptive_max_pool(op, as_image(op, x), {1, output_size}, indices_wanted));
}
}  // namespace

Tensor max_pool1d(const Tensor& x, const MaxPool1dOptions& options) {
  return max_pool_sequence(x, options, /*indices_wanted=*/false).first;
}

std::pair<Tensor, Tensor> max_pool1d_with_indices(const Tensor& x, const MaxPool1dOptions& options) {
  return max_pool_sequence(x, options, /*indices_wanted=*/true);
}

Tensor avg_pool1d(const Tensor& x, const AvgPool1dOptions& o) {
  check_mean_dtype("avg_pool1d", x);
  const Tensor image = as_image("avg_pool1d", x);
  const Pool2dShape s =
      window_shape("avg_pool1d", image, {1, o.kernel_size}, wide(o.stride), {0, o.padding}, 1, o.ceil_mode);
  return squeeze(mean_pool("avg_pool1d", s, {o.count_include_pad, 0}, image), -2);
}

Tensor adaptive_avg_pool1d(const Tensor& x, int64_t output_size) {
  check_mean_dtype("adaptive_avg_pool1d", x);
  const Tensor image = as_image("adaptive_avg_pool1d", x);
  return squeeze(adaptive_mean("adaptive_avg_pool1d",
                               adaptive_shape("adaptive_avg_pool1d", image, {1, output_size}), image),
                 -2);
}

Tensor adaptive_max_pool1d(const Tensor& x, int64_t output_size) {
  return adaptive_max_pool_sequence(x, output_size, /*indices_wanted=*/false).first;
}
std::pair<Tensor, Tensor> adaptive_max_pool1d_with_indices(const Tensor& x, int64_t output_size) {
  return adaptive_max_pool_sequence(x, output_size, /*indices_wanted=*/true);
}

namespace {

/// `mean` pools x^p to means, whose windows have `count` elements.
template <class Mean>
Tensor lp_pool(const char* op, const Tensor& x, double p, int64_t count, const Mean& mean) {
  TERN_CHECK(p != 0, ValueError, "{}: norm_type must not be 0", op);
  return pow(mul(mean(pow(x, p)), count), 1 / p);
}

}  // namespace

Tensor lp_pool1d(const Tensor& x, double norm_type, int64_t kernel_size, std::optional<int64_t> stride,
                 bool ceil_mode) {
  return lp_pool("lp_pool1d", x, norm_type, kernel_size, [&](const Tensor& powers) {
    return avg_pool1d(powers, {.kernel_size = kernel_size, .stride = stride, .ceil_mode = ceil_mode});
  });
}

Tensor lp_pool2d(const Tensor& x, double norm_type, Size2 kernel_size, std::optional<Size2> stride,
                 bool ceil_mode) {
  return lp_pool("lp_pool2d", x, norm_type, kernel_size.h * kernel_size.w, [&](const Tensor& powers) {
    return avg_pool2d(powers, {.kernel_size = kernel_size, .stride = stride, .ceil_mode = ceil_mode});
  });
}

Tensor lp_pool3d(const Tensor& x, double norm_type, Size3 kernel_size, std::optional<Size3> stride,
                 bool ceil_mode) {
  const int64_t count = kernel_size.d * kernel_size.h * kernel_size.w;
  return lp_pool("lp_pool3d", x, norm_type, count, [&](const Tensor& powers) {
    return avg_pool3d(powers, {.kernel_size = kernel_size, .stride = stride, .ceil_mode = ceil_mode});
  });
}

}  // namespace tern
