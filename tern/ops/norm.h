// Normalisation. Each operator is one launch forward and one backward; sums are
// taken in float for 16-bit floats and carried on in double. The layers are
// nn::BatchNorm2d and its kin.
#pragma once

#include <optional>

#include "tern/core/tensor.h"

namespace tern {

// Weights, biases and running statistics have the input's dtype, or float32
// beside a 16-bit input.

/// (x - mean) / sqrt(var + eps) * weight + bias for each channel of x [N, C,
/// ...]. In training the statistics are those of x (the variance biased), and
/// running_mean and running_var, where given, become (1 - momentum) * old +
/// momentum * new (the variance unbiased); else they are the running ones. For
/// a cumulative average pass 1 / n as momentum of the n-th batch. Throws
/// ShapeError, ValueError for a single value per channel or an eps of 0 in training, and for an eps below 0.
Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight = {}, const Tensor& bias = {}, bool training = false,
                  double momentum = 0.1, double eps = 1e-5);

/// Normalisation over the last dimensions, which must be `normalized_shape`;
/// weight and bias have that shape.
Tensor layer_norm(const Tensor& x, IntArrayRef normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);

/// Normalisation of x [N, C, ...] over groups of C / num_groups channels;
/// weight and bias are [C].
Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

/// Normalisation of each channel of each element of the batch, x [N, C, ...], over the rest; weight, bias and
/// the running statistics are [C]. Without `use_input_stats` the statistics are the running ones, which must
/// be there; else they are those of x, and the running ones, where given, become (1 - momentum) * old +
/// momentum * new, the mean over the batch (Ulyanov et al., "Instance normalization", 2016). Throws
/// ShapeError, ValueError for a single element per channel.
Tensor instance_norm(const Tensor& x, const Tensor& running_mean = {}, const Tensor& running_var = {},
                     const Tensor& weight = {}, const Tensor& bias = {}, bool use_input_stats = true,
                     double momentum = 0.1, double eps = 1e-5);

/// x / (k + alpha * m)^beta of x [N, C, ...], where m is the mean of the squares over `size` neighbouring
/// channels, zeros beyond the ends (Krizhevsky et al., "ImageNet classification with deep convolutional
/// neural networks", 2012). Throws ShapeError for fewer than 3 dimensions, ValueError for a size below 1.
Tensor local_response_norm(const Tensor& x, int64_t size, double alpha = 1e-4, double beta = 0.75,
                           double k = 1);

/// x / sqrt(mean(x^2) + eps) * weight over the last dimensions (Zhang and
/// Sennrich, 2019); eps is float32's epsilon when left out, for
/// float64 its own.
Tensor rms_norm(const Tensor& x, IntArrayRef normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = {});

}  // namespace tern
