// Parameters as a vector, and batch norm folded into the layer before it.
#include "tern/nn/utils.h"

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern::nn::utils {

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  TERN_CHECK(!parameters.empty(), ValueError, "parameters_to_vector: there are no parameters");
  std::vector<Tensor> parts;
  for (const Tensor& parameter : parameters) {
    check_same_device("parameters_to_vector",
                      {{"the first parameter", parameters[0]}, {"another", parameter}});
    parts.push_back(flatten(parameter));
  }
  return cat(parts);
}

void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters) {
  int64_t numbers = 0;
  for (const Tensor& parameter : parameters) numbers += parameter.numel();
  TERN_CHECK(
      vector.dim() == 1 && vector.numel() == numbers, ShapeError,
      "vector_to_parameters: the vector must have a number for each of the {} of the parameters, got {}",
      numbers, to_string(vector.shape()));
  const NoGradGuard no_grad;
  int64_t begin = 0;
  for (const Tensor& parameter : parameters) {
    parameter.detach().copy_(reshape(narrow(vector, 0, begin, parameter.numel()), parameter.shape()));
    begin += parameter.numel();
  }
}

Linear fuse_linear_bn_eval(const Linear& linear, const BatchNorm& norm) {
  Linear fused = linear;
  detail::fuse_batch_norm("fuse_linear_bn_eval", linear, fused.weight, fused.bias, norm, /*dim=*/0,
                          /*groups=*/1);
  return fused;
}

void detail::fuse_batch_norm(const char* op, const Module& layer, Parameter& weight, Parameter& bias,
                             const BatchNorm& norm, int64_t dim, int64_t groups) {
  TERN_CHECK(!layer.is_training() && !norm.is_training(), ValueError,
             "{}: Fusion only for eval!: call eval() of both first", op);
  TERN_CHECK(norm.running_mean.defined(), ValueError,
             "{}: the batch norm has no running statistics, so it has no fixed factor", op);
  const int64_t channels = weight.size(dim) * groups;
  TERN_CHECK(norm.running_mean.numel() == channels, ShapeError,
             "{}: the batch norm has {} features, but the layer before it gives {} channels", op,
             norm.running_mean.numel(), channels);
  const NoGradGuard no_grad;
  Tensor scale = rsqrt(add(norm.running_var, norm.eps()));
  if (norm.weight.defined()) scale = mul(norm.weight, scale);
  Tensor shift = mul(neg(norm.running_mean), scale);
  if (bias.defined()) shift = add(mul(bias, scale), shift);
  if (norm.bias.defined()) shift = add(shift, norm.bias);
  // Of a transposed convolution with groups, the first rows make the first group's channels.
  const int64_t rows = weight.size(0);
  Shape shape(static_cast<size_t>(weight.dim()), 1);
  shape[static_cast<size_t>(dim)] = weight.size(dim);
  if (groups > 1) shape[0] = groups;
  Tensor factor = reshape(scale, shape);
  if (groups > 1) factor = repeat_interleave(factor, rows / groups, 0);
  const bool learned = weight.requires_grad(), learned_bias = bias.defined() ? bias.requires_grad() : learned;
  weight = Parameter(mul(weight, factor).to(weight.dtype()), learned);
  bias = Parameter(shift.to(weight.dtype()), learned_bias);
}

}  // namespace tern::nn::utils
