// Arguments of the normalisation kernels. "Compute type" is float for the 16-bit floats, else the dtype
// itself. Checks, gradients and the operators made of them (batch, layer, group, RMS norm) are in
// tern/ops/norm.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

/// Batch normalisation of a contiguous [batch, channels, inner]: output = (x - mean) * invstd * weight +
/// bias, each per channel. In training mean and invstd = 1 / sqrt(variance + eps) are those of this batch
/// (biased variance), and the running values move towards them by `momentum` (the variance unbiased); else
/// they come from the running values. All arrays of parameters and statistics have [channels] elements of the
/// compute type.
struct BatchNormArgs {
  DType dtype{};  ///< of input and output; floating
  bool training = false;
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t inner = 0;
  double eps = 0;
  double momentum = 0;
  const void* input = nullptr;
  const void* weight = nullptr;  ///< or null: 1
  const void* bias = nullptr;    ///< or null: 0
  void* running_mean = nullptr;  ///< null in training: not kept; only read unless training
  void* running_var = nullptr;
  void* mean = nullptr;    ///< written: what was subtracted
  void* invstd = nullptr;  ///< written: what was multiplied
  void* output = nullptr;
};

/// Gradients of BatchNormArgs from `mean` and `invstd` as they were written. Null results are not wanted.
struct BatchNormBackwardArgs {
  DType dtype{};
  bool training = false;
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t inner = 0;
  const void* grad_output = nullptr;
  const void* input = nullptr;
  const void* weight = nullptr;  ///< or null: 1
  const void* mean = nullptr;
  const void* invstd = nullptr;
  void* grad_input = nullptr;   ///< of `dtype`
  void* grad_weight = nullptr;  ///< compute type
  void* grad_bias = nullptr;    ///< compute type
};

/// Normalisation of each row of a contiguous [rows, size]: output = (x - mean) * invstd * weight + bias with
/// the row's own mean and (biased) variance. Element j of row r has the parameter (r % groups) * (size /
/// inner) + j / inner, so layer norm has groups = inner = 1, group norm of [N, C, S] has rows = N * groups,
/// inner = S. With `rms`, mean is 0 and invstd = 1 / sqrt(mean of squares + eps). Parameters and statistics
/// are of the compute type.
struct RowNormArgs {
  DType dtype{};  ///< of input and output; floating
  bool rms = false;
  int64_t rows = 0;
  int64_t size = 0;
  int64_t groups = 1;
  int64_t inner = 1;
  double eps = 0;
  const void* input = nullptr;
  const void* weight = nullptr;  ///< [groups * size / inner], or null: 1
  const void* bias = nullptr;    ///< the same, or null: 0
  void* mean = nullptr;          ///< [rows]; not written with `rms`
  void* invstd = nullptr;        ///< [rows]
  void* output = nullptr;
};

/// Gradients of RowNormArgs. Null results are not wanted. Sums over rows have an order that depends on sizes
/// only.
struct RowNormBackwardArgs {
  DType dtype{};
  bool rms = false;
  int64_t rows = 0;
  int64_t size = 0;
  int64_t groups = 1;
  int64_t inner = 1;
  const void* grad_output = nullptr;
  const void* input = nullptr;
  const void* weight = nullptr;
  const void* mean = nullptr;
  const void* invstd = nullptr;
  void* grad_input = nullptr;   ///< of `dtype`
  void* grad_weight = nullptr;  ///< compute type
  void* grad_bias = nullptr;    ///< compute type
};

#define TERN_NORM_KERNELS(X)                    \
  X(batch_norm, BatchNormArgs)                  \
  X(batch_norm_backward, BatchNormBackwardArgs) \
  X(row_norm, RowNormArgs)                      \
  X(row_norm_backward, RowNormBackwardArgs)

}  // namespace tern
