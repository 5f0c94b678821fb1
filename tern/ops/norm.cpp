// Normalisation with its gradients: fused kernels, and formulas of operators
// where second derivatives are asked for.
#include "tern/ops/norm.h"

#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/pad.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/pool.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// The dtype of parameters and statistics in the kernels.
DType compute_dtype(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16 ? DType::Float32 : dtype;
}

void check_input(const char* op, const Tensor& x, std::initializer_list<NamedTensor> others) {
  TERN_CHECK(is_floating_point(x.dtype()), DTypeError,
             "{}: not implemented for {}: convert the input with to(float32)", op, name(x.dtype()));
  for (const NamedTensor& other : others) {
    if (!other.tensor.defined()) continue;
    TERN_CHECK(other.tensor.dtype() == x.dtype() || other.tensor.dtype() == compute_dtype(x.dtype()),
               DTypeError, "{}: {} must have the dtype of the input, {}, got {}: convert one with to(dtype)",
               op, other.name, name(x.dtype()), name(other.tensor.dtype()));
    check_same_device(op, {{"input", x}, other});
  }
}

/// A parameter as the kernels read it: dense, in the compute type. Undefined
/// stays undefined.
Tensor ready(const Tensor& param, DType dtype) {
  return param.defined() ? contiguous(to(param, dtype)) : param;
}
const void* data_or_null(const Tensor& x) { return x.defined() ? x.data_ptr() : nullptr; }
void* result_or_null(const Tensor& x) { return x.defined() ? x.data_ptr() : nullptr; }

Tensor empty_vector(int64_t size, DType dtype, Device device) {
  return empty_contiguous({size}, size, dtype, device);
}

/// grad_x, grad_weight and grad_bias as operators. `xhat` and `invstd` are
/// differentiable in x; `dims` are those of the statistics, `param_dims` those
/// over which a parameter is shared; `weight` broadcasts to x.
struct NormFormula {
  Tensor xhat, invstd, weight;
  Shape dims, param_dims;
  bool centred,
      fixed;  ///< the mean was taken away; the statistics do not depend on x

  Tensor input(const Tensor& g) const {
    const Tensor h = weight.defined() ? mul(g, weight) : g;
    if (fixed) return mul(h, invstd);
    Tensor inner = sub(h, mul(xhat, mean(mul(h, xhat), dims, /*keepdim=*/true)));
    if (centred) inner = sub(inner, mean(h, dims, /*keepdim=*/true));
    return mul(inner, invstd);
  }
  Tensor weight_gradient(const Tensor& g) const { return sum(mul(g, xhat), param_dims); }
  Tensor bias_gradient(const Tensor& g) const { return sum(g, param_dims); }
};

// ---- batch norm
// --------------------------------------------------------------------------------------------------------

struct BatchNormSizes {
  int64_t batch, channels, inner;
  bool training;
  double eps;
};

NormFormula batch_formula(const BatchNormSizes& s, const Tensor& x, const Tensor& weight,
                          const Tensor& mean_used, const Tensor& invstd_used) {
  NormFormula f;
  f.dims = {0, 2};
  f.param_dims = {0, 2};
  f.centred = true;
  f.fixed = !s.training;
  const Shape per_channel{s.channels, 1};
  if (weight.defined()) f.weight = reshape(weight, per_channel);
  const Tensor x3 = to(reshape(x, {s.batch, s.channels, s.inner}), compute_dtype(x.dtype()));
  const Tensor centre = s.training ? mean(x3, f.dims, /*keepdim=*/true) : reshape(mean_used, per_channel);
  const Tensor deviation = sub(x3, centre);
  f.invstd = s.training ? rsqrt(add(mean(square(deviation), f.dims, /*keepdim=*/true), s.eps))
                        : reshape(invstd_used, per_channel);
  f.xhat = mul(deviation, f.invstd);
  return f;
}

std::array<Tensor, 3> batch_norm_gradients(const GradContext& c, const BatchNormSizes& s, const Tensor& x,
                                           const Tensor& weight, const Tensor& mean_used,
                                           const Tensor& invstd, const Tensor& g_given) {
  std::array<Tensor, 3> grads;
  if (is_grad_enabled() || x.numel() == 0) {
    const NormFormula f = batch_formula(s, x, weight, mean_used, invstd);
    const Tensor g = to(reshape(g_given, {s.batch, s.channels, s.inner}), compute_dtype(x.dtype()));
    if (c.needs(0)) grads[0] = to(reshape(f.input(g), x.shape()), x.dtype());
    if (c.needs(1)) grads[1] = f.weight_gradient(g);
    if (c.needs(2)) grads[2] = f.bias_gradient(g);
    return grads;
  }
  const Tensor g = contiguous(g_given);
  if (c.needs(0)) grads[0] = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
  if (c.needs(1)) grads[1] = empty_vector(s.channels, mean_used.dtype(), x.device());
  if (c.needs(2)) grads[2] = empty_vector(s.channels, mean_used.dtype(), x.device());
  BatchNormBackwardArgs args;
  args.dtype = x.dtype();
  args.training = s.training;
  args.batch = s.batch;
  args.channels = s.channels;
  args.inner = s.inner;
  args.grad_output = g.data_ptr();
  args.input = x.data_ptr();
  args.weight = data_or_null(weight);
  args.mean = mean_used.data_ptr();
  args.invstd = invstd.data_ptr();
  args.grad_input = result_or_null(grads[0]);
  args.grad_weight = result_or_null(grads[1]);
  args.grad_bias = result_or_null(grads[2]);
  launch(current_stream(x.device()), kernels::batch_norm_backward, args);
  return grads;
}

// ---- norms of rows
// -----------------------------------------------------------------------------------------------------

struct RowNormSizes {
  int64_t rows, size, groups, inner;
  bool rms;
  double eps;
};

NormFormula row_formula(const RowNormSizes& s, const Tensor& x4, const Tensor& weight) {
  NormFormula f;
  f.dims = {2, 3};
  f.param_dims = {0, 3};
  f.centred = !s.rms;
  f.fixed = false;
  if (weight.defined()) f.weight = reshape(weight, {s.groups, x4.size(2), 1});
  const Tensor deviation = s.rms ? x4 : sub(x4, mean(x4, f.dims, /*keepdim=*/true));
  f.invstd = rsqrt(add(mean(square(deviation), f.dims, /*keepdim=*/true), s.eps));
  f.xhat = mul(deviation, f.invstd);
  return f;
}

std::array<Tensor, 3> row_norm_gradients(const GradContext& c, const RowNormSizes& s, const Tensor& x,
                                         const Tensor& weight, const Tensor& mean_used, const Tensor& invstd,
                                         int64_t params, const Tensor& g_given) {
  std::array<Tensor, 3> grads;
  const DType param_dtype = compute_dtype(x.dtype());
  if (is_grad_enabled() || x.numel() == 0) {
    const Shape shape{s.rows / s.groups, s.groups, params / s.groups, s.inner};
    const NormFormula f = row_formula(s, to(reshape(x, shape), param_dtype), weight);
    const Tensor g = to(reshape(g_given, shape), param_dtype);
    if (c.needs(0)) grads[0] = to(reshape(f.input(g), x.shape()), x.dtype());
    if (c.needs(1)) grads[1] = reshape(f.weight_gradient(g), {params});
    if (c.needs(2)) grads[2] = reshape(f.bias_gradient(g), {params});
    return grads;
  }
  const Tensor g = contiguous(g_given);
  if (c.needs(0)) grads[0] = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
  if (c.needs(1)) grads[1] = empty_vector(params, param_dtype, x.device());
  if (c.needs(2)) grads[2] = empty_vector(params, param_dtype, x.device());
  RowNormBackwardArgs args;
  args.dtype = x.dtype();
  args.rms = s.rms;
  args.rows = s.rows;
  args.size = s.size;
  args.groups = s.groups;
  args.inner = s.inner;
  args.grad_output = g.data_ptr();
  args.input = x.data_ptr();
  args.weight = data_or_null(weight);
  args.mean = data_or_null(mean_used);
  args.invstd = invstd.data_ptr();
  args.grad_input = result_or_null(grads[0]);
  args.grad_weight = result_or_null(grads[1]);
  args.grad_bias = result_or_null(grads[2]);
  launch(current_stream(x.device()), kernels::row_norm_backward, args);
  return grads;
}

/// weight and bias have one dimension of groups * size / inner elements, or are
/// undefined.
Tensor normalize_rows(const char* op, const RowNormSizes& s, const Tensor& x_given,
                      const Tensor& weight_given, const Tensor& bias_given) {
  const Tensor x = contiguous(x_given);
  const DType param_dtype = compute_dtype(x.dtype());
  const Tensor weight = ready(weight_given, param_dtype), bias = ready(bias_given, param_dtype);
  Tensor y = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
  const Tensor mean_used = s.rms ? Tensor() : empty_vector(s.rows, param_dtype, x.device());
  const Tensor invstd = empty_vector(s.rows, param_dtype, x.device());
  if (x.numel() != 0) {
    RowNormArgs args;
    args.dtype = x.dtype();
    args.rms = s.rms;
    args.rows = s.rows;
    args.size = s.size;
    args.groups = s.groups;
    args.inner = s.inner;
    args.eps = s.eps;
    args.input = x.data_ptr();
    args.weight = data_or_null(weight);
    args.bias = data_or_null(bias);
    args.mean = result_or_null(mean_used);
    args.invstd = invstd.data_ptr();
    args.output = y.data_ptr();
    launch(current_stream(x.device()), kernels::row_norm, args);
  }
  if (tracks_grad(x, weight, bias)) {
    const int64_t params = weight.defined() ? weight.numel()
                           : bias.defined() ? bias.numel()
                           : s.inner == 0   ? 0
                                            : s.groups * s.size / s.inner;
    record(op, y, {x, weight, bias},
           [s, params, x_ = save(x), weight_ = save(weight), mean_ = save(mean_used), invstd_ = save(invstd)](
               GradContext& c, const Tensor& g) {
             return row_norm_gradients(c, s, c[x_], c[weight_], c[mean_], c[invstd_], params, g);
           });
  }
  return y;
}

/// Sizes of a normalisation over the last dimensions.
RowNormSizes last_dims(const char* op, const Tensor& x, IntArrayRef normalized_shape, const Tensor& weight,
                       const Tensor& bias, bool rms, double eps) {
  const size_t rank = x.shape().size(), count = normalized_shape.size();
  TERN_CHECK(count > 0, ShapeError, "{}: Expected normalized_shape to be at least 1-dimensional", op);
  const bool fits = count <= rank && IntArrayRef(x.shape().data() + (rank - std::min(count, rank)),
                                                 std::min(count, rank)) == normalized_shape;
  TERN_CHECK(fits, ShapeError,
             "{}: Given normalized_shape={}, expected input with shape [*, "
             "{}], but got input of size {}",
             op, to_string(normalized_shape),
             to_string(normalized_shape).substr(1, to_string(normalized_shape).size() - 2),
             to_string(x.shape()));
  for (const NamedTensor& p : {NamedTensor{"weight", weight}, NamedTensor{"bias", bias}})
    TERN_CHECK(!p.tensor.defined() || IntArrayRef(p.tensor.shape()) == normalized_shape, ShapeError,
               "{}: Expected {} to be of same shape as normalized_shape, but "
               "got {} of shape {} and normalized_shape = {}",
               op, p.name, p.name, to_string(p.tensor.shape()), to_string(normalized_shape));
  const int64_t size = checked_numel(normalized_shape);
  const int64_t rows = checked_numel(IntArrayRef(x.shape().data(), rank - count));
  return {rows, size, 1, 1, rms, eps};
}

Tensor flat(const Tensor& param) {
  return param.defined() && param.dim() != 1 ? reshape(param, {-1}) : param;
}

/// Of the numbers that dtype is computed in.
double epsilon_of(DType dtype) { return dtype == DType::Float64 ? 0x1p-52 : 0x1p-23; }

/// Running statistics as the kernel updates them: `source` itself, or a copy
/// that is written back.
class Running {
 public:
  Running(const Tensor& source, DType dtype) : source_(source) {
    if (!source.defined()) return;
    used_ =
        source.dtype() == dtype && source.is_contiguous() ? source : contiguous(to(source.detach(), dtype));
  }
  void* data() const { return result_or_null(used_); }
  void write_back() {
    if (!source_.defined()) return;
    if (used_.is_same(source_)) {
      source_.storage()->bump_version();
    } else {
      NoGradGuard no_grad;
      copy_(source_, used_);
    }
  }

 private:
  Tensor source_, used_;
};

}  // namespace

Tensor batch_norm(const Tensor& x_given, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight_given, const Tensor& bias_given, bool training, double momentum,
                  double eps) {
  const char* op = "batch_norm";
  check_input(op, x_given,
              {{"weight", weight_given},
               {"bias", bias_given},
               {"running_mean", running_mean},
               {"running_var", running_var}});
  TERN_CHECK(x_given.dim() >= 2, ShapeError,
             "{}: expected an input of at least 2 dimensions [N, C, ...], got {}", op,
             to_string(x_given.shape()));
  const Tensor x = contiguous(x_given);
  BatchNormSizes s{x.size(0), x.size(1),
                   checked_numel(IntArrayRef(x.shape().data() + 2, x.shape().size() - 2)), training, eps};
  for (const NamedTensor& p :
       {NamedTensor{"running_mean", running_mean}, NamedTensor{"running_var", running_var},
        NamedTensor{"weight", weight_given}, NamedTensor{"bias", bias_given}})
    TERN_CHECK(!p.tensor.defined() || (p.tensor.dim() == 1 && p.tensor.size(0) == s.channels), ShapeError,
               "{}: {} should contain {} elements, got shape {}", op, p.name, s.channels,
               to_string(p.tensor.shape()));
  TERN_CHECK(training || (running_mean.defined() && running_var.defined()), ValueError,
             "{}: running_mean and running_var must be defined in evaluation mode", op);
  TERN_CHECK(!training || s.batch * s.inner != 1, ValueError,
             "{}: Expected more than 1 value per channel when training, got "
             "input size {}",
             op, to_string(x.shape()));
  TERN_CHECK(!training || !(eps <= 0), ValueError, "{}: eps must be positive during training, but got {}", op,
             eps);
  TERN_CHECK(!(eps < 0), ValueError, "{}: eps must be non-negative, but got {}", op, eps);
  const DType param_dtype = compute_dtype(x.dtype());
  const Tensor weight = ready(weight_given, param_dtype), bias = ready(bias_given, param_dtype);
  Running kept_mean(running_mean, param_dtype), kept_var(running_var, param_dtype);
  Tensor y = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
  const Tensor mean_used = empty_vector(s.channels, param_dtype, x.device());
  const Tensor invstd = empty_vector(s.channels, param_dtype, x.device());
  if (x.numel() != 0) {
    BatchNormArgs args;
    args.dtype = x.dtype();
    args.training = training;
    args.batch = s.batch;
    args.channels = s.channels;
    args.inner = s.inner;
    args.eps = eps;
    args.momentum = momentum;
    args.input = x.data_ptr();
    args.weight = data_or_null(weight);
    args.bias = data_or_null(bias);
    args.running_mean = kept_mean.data();
    args.running_var = kept_var.data();
    args.mean = mean_used.data_ptr();
    args.invstd = invstd.data_ptr();
    args.output = y.data_ptr();
    launch(current_stream(x.device()), kernels::batch_norm, args);
    if (training) {
      kept_mean.write_back();
      kept_var.write_back();
    }
  }
  if (tracks_grad(x, weight, bias))
    record(op, y, {x, weight, bias},
           [s, x_ = save(x), weight_ = save(weight), mean_ = save(mean_used), invstd_ = save(invstd)](
               GradContext& c, const Tensor& g) {
             return batch_norm_gradients(c, s, c[x_], c[weight_], c[mean_], c[invstd_], g);
           });
  return y;
}

Tensor layer_norm(const Tensor& x, IntArrayRef normalized_shape, const Tensor& weight, const Tensor& bias,
                  double eps) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(layer_norm, x, normalized_shape, weight, bias, eps);
  check_input("layer_norm", x, {{"weight", weight}, {"bias", bias}});
  const RowNormSizes s = last_dims("layer_norm", x, normalized_shape, weight, bias, /*rms=*/false, eps);
  return normalize_rows("layer_norm", s, x, flat(weight), flat(bias));
}

Tensor rms_norm(const Tensor& x, IntArrayRef normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(rms_norm, x, normalized_shape, weight, eps);
  check_input("rms_norm", x, {{"weight", weight}});
  const RowNormSizes s = last_dims("rms_norm", x, normalized_shape, weight, {}, /*rms=*/true,
                                   eps.value_or(epsilon_of(x.dtype())));
  return normalize_rows("rms_norm", s, x, flat(weight), {});
}

Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(group_norm, x, num_groups, weight, bias, eps);
  const char* op = "group_norm";
  check_input(op, x, {{"weight", weight}, {"bias", bias}});
  TERN_CHECK(x.dim() >= 2, ShapeError, "{}: Expected at least 2 dimensions for input tensor but received {}",
             op, x.dim());
  TERN_CHECK(num_groups > 0, ValueError, "{}: Expected num groups to be greater than 0, got {}", op,
             num_groups);
  const int64_t channels = x.size(1);
  TERN_CHECK(channels % num_groups == 0, ShapeError,
             "{}: Expected number of channels in input to be divisible by "
             "num_groups, but got input of shape {} and num_groups={}",
             op, to_string(x.shape()), num_groups);
  for (const NamedTensor& p : {NamedTensor{"weight", weight}, NamedTensor{"bias", bias}})
    TERN_CHECK(!p.tensor.defined() || (p.tensor.dim() == 1 && p.tensor.size(0) == channels), ShapeError,
               "{}: Expected {} to be a vector of size equal to the number of "
               "channels in input, but got {} of shape {} and input of shape {}",
               op, p.name, p.name, to_string(p.tensor.shape()), to_string(x.shape()));
  const int64_t inner = checked_numel(IntArrayRef(x.shape().data() + 2, x.shape().size() - 2));
  const int64_t size = channels / num_groups * inner;
  TERN_CHECK(
      x.size(0) * size != 1, ValueError,
      "{}: Expected more than 1 value per channel when training, got input size {} with num_groups={}: "
      "use fewer groups, or a larger batch",
      op, to_string(x.shape()), num_groups);
  return normalize_rows(op, {x.size(0) * num_groups, size, num_groups, inner, /*rms=*/false, eps}, x, weight,
                        bias);
}

namespace {

/// By the statistics of each instance, of which the running ones take the mean: a batch norm of one element
/// with N * C channels.
Tensor instance_norm_keeping(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                             const Tensor& weight, const Tensor& bias, double momentum, double eps) {
  const int64_t batch = x.size(0), channels = x.size(1);
  const auto of_each = [&](const Tensor& v) { return v.defined() ? repeat(v, {batch}) : v; };
  Shape shape = x.shape();
  shape[0] = 1;
  shape[1] = batch * channels;
  const Tensor means = of_each(running_mean.detach()), vars = of_each(running_var.detach());
  const Tensor y = batch_norm(reshape(x, shape), means, vars, of_each(weight), of_each(bias),
                              /*training=*/true, momentum, eps);
  const NoGradGuard no_grad;
  Tensor kept_mean = running_mean, kept_var = running_var;
  copy_(kept_mean, mean(reshape(means, {batch, channels}), 0));
  copy_(kept_var, mean(reshape(vars, {batch, channels}), 0));
  return y;
}

}  // namespace

Tensor instance_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                     const Tensor& weight, const Tensor& bias, bool use_input_stats, double momentum,
                     double eps) {
  const char* op = "instance_norm";
  const std::initializer_list<NamedTensor> others = {
      {"weight", weight}, {"bias", bias}, {"running_mean", running_mean}, {"running_var", running_var}};
  check_input(op, x, others);
  TERN_CHECK(x.dim() >= 2, ShapeError, "{}: expected an input of at least 2 dimensions [N, C, ...], got {}",
             op, to_string(x.shape()));
  TERN_CHECK(running_mean.defined() == running_var.defined(), ValueError,
             "{}: running_mean and running_var must be given together", op);
  TERN_CHECK(use_input_stats || running_mean.defined(), ValueError,
             "{}: Expected running_mean and running_var to be defined when use_input_stats is false", op);
  const int64_t channels = x.size(1);
  for (const NamedTensor& p : others)
    TERN_CHECK(!p.tensor.defined() || (p.tensor.dim() == 1 && p.tensor.size(0) == channels), ShapeError,
               "{}: {} should contain {} elements, one for each channel, not shape {}", op, p.name, channels,
               to_string(p.tensor.shape()));
  if (!use_input_stats)
    return batch_norm(x, running_mean, running_var, weight, bias, /*training=*/false, momentum, eps);
  const int64_t inner = checked_numel(IntArrayRef(x.shape().data() + 2, x.shape().size() - 2));
  TERN_CHECK(inner != 1, ValueError,
             "{}: Expected more than 1 spatial element when training, got input size {}", op,
             to_string(x.shape()));
  if (!running_mean.defined() || x.numel() == 0)
    return normalize_rows(op, {x.size(0) * channels, inner, channels, inner, /*rms=*/false, eps}, x, weight,
                          bias);
  return reshape(instance_norm_keeping(x, running_mean, running_var, weight, bias, momentum, eps), x.shape());
}

Tensor local_response_norm(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  const char* op = "local_response_norm";
  check_input(op, x, {});
  TERN_CHECK(x.dim() >= 3, ShapeError, "{}: Expected 3D or higher dimensionality input (got {} dimensions)",
             op, x.dim());
  if (x.dim() > 3 && x.numel() > 0 && autocasts_on_cpu(x)) [[unlikely]]  // PyTorch's is made of avg_pool3d
    return autocast_float32(local_response_norm, x, size, alpha, beta, k);
  TERN_CHECK(size >= 1, ValueError, "{}: size must be at least 1, got {}", op, size);
  if (x.numel() == 0) return x;
  // Channels as the height of images, for sums of neighbours.
  const Tensor squares = reshape(square(x), {x.size(0), x.size(1), -1});
  const Tensor means = avg_pool2d(pad(squares, {0, 0, size / 2, (size - 1) / 2}),
                                  {.kernel_size = {size, 1}, .stride = Size2(1)});
  return div(x, pow(add(mul(reshape(means, x.shape()), alpha), k), beta));
}

}  // namespace tern
