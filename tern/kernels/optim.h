// Argument structs of the fused optimizer kernels: one launch updates every parameter of a group. Which
// parameters take part and what their state is called is decided in optim/; the formulas are PyTorch's
// (torch/optim/*.py, single tensor).
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"
#include "tern/device/launch.h"

namespace tern {

/// One tensor of a fused pass: contiguous arrays of `numel` elements of the list's dtype.
struct OptimEntry {
  void* param;       ///< read and written
  const void* grad;  ///< read
  void* state[3];    ///< read and written; which is which stands with each kernel; null where not used
  int64_t numel;
  int64_t first;      ///< number of elements in the entries before this one
  double scalars[2];  ///< what depends on the number of steps that this parameter has taken
  bool fresh;         ///< its first step: the momentum buffer holds nothing yet
};

/// The tensors of one launch, all of one dtype (floating point; 16-bit ones are computed in float) on one
/// device. `entries` is an array in host memory that belongs to the caller and may change as soon as the
/// launch returns: a backend that does not run at once copies the array when the work is queued.
struct OptimList {
  DType dtype;
  int32_t count;
  const OptimEntry* entries;
  int64_t numel;  ///< of all entries together
};

/// Stochastic gradient descent. state: momentum buffer (when momentum is not 0).
///   g = [-]grad + weight_decay * param;  buffer = fresh ? g : momentum * buffer + (1 - dampening) * g
///   param -= lr * (no momentum ? g : nesterov ? g + momentum * buffer : buffer)
struct SgdStepArgs {
  OptimList list;
  double lr;
  double momentum;
  double dampening;
  double weight_decay;
  bool nesterov;
  bool maximize;
};

/// Adam and AdamW. state: exp_avg, exp_avg_sq, max_exp_avg_sq (with amsgrad).
/// scalars: lr / (1 - beta1^t), sqrt(1 - beta2^t).
///   decoupled: param *= 1 - lr * weight_decay, else g = [-]grad + weight_decay * param
///   exp_avg += (1 - beta1) * (g - exp_avg);  exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * g * g
///   param -= scalars[0] * exp_avg / (sqrt(exp_avg_sq or its maximum) / scalars[1] + eps)
struct AdamStepArgs {
  OptimList list;
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  bool decoupled;
  bool amsgrad;
  bool maximize;
};

/// RMSprop. state: square_avg, momentum_buffer (when momentum is not 0), grad_avg (when centered).
///   square_avg = alpha * square_avg + (1 - alpha) * g * g;  grad_avg += (1 - alpha) * (g - grad_avg)
///   avg = sqrt(square_avg [- grad_avg^2]) + eps;  buffer = momentum * buffer + g / avg
///   param -= lr * (no momentum ? g / avg : buffer)
struct RmspropStepArgs {
  OptimList list;
  double lr;
  double alpha;
  double eps;
  double weight_decay;
  double momentum;
  bool centered;
  bool maximize;
};

/// Adagrad. state: sum. scalars: lr / (1 + (t - 1) * lr_decay).
///   sum += g * g;  param -= scalars[0] * g / (sqrt(sum) + eps)
struct AdagradStepArgs {
  OptimList list;
  double eps;
  double weight_decay;
  bool maximize;
};

/// out = (sum over all `grad` of |x|^norm_type)^(1 / norm_type); the largest |x| for infinity, the number of
/// elements that are not 0 for 0. `out` is one float64 for a list of float64, else one float32. NaN in, NaN
/// out.
struct OptimNormArgs {
  OptimList list;
  double norm_type;
  void* out;
};

/// param *= min(1, max_norm / (norm + 1e-6)), with `norm` as optim_norm wrote it, in `norm_dtype`.
struct OptimClipNormArgs {
  OptimList list;
  DType norm_dtype;
  const void* norm;
  double max_norm;
};

/// param = param limited to [-clip_value, clip_value]; NaN stays.
struct OptimClipValueArgs {
  OptimList list;
  double clip_value;
};

/// param *= inv_scale, and 1 to `found_inf` when an element was infinite or NaN; else that stays as it is.
/// Several launches may share it.
struct OptimUnscaleArgs {
  OptimList list;
  float inv_scale;
  float* found_inf;
};

/// Where the array of a list stands, for backends that queue (device/launch.h).
template <class Args>
requires requires(const Args& args) { args.list.entries; }
HostArray host_array(const Args& args) {
  const auto* start = reinterpret_cast<const char*>(&args);
  const auto* pointer = reinterpret_cast<const char*>(&args.list.entries);
  return {static_cast<size_t>(pointer - start), static_cast<size_t>(args.list.count) * sizeof(OptimEntry)};
}

#define TERN_OPTIM_KERNELS(X)             \
  X(sgd_step, SgdStepArgs)                \
  X(adam_step, AdamStepArgs)              \
  X(rmsprop_step, RmspropStepArgs)        \
  X(adagrad_step, AdagradStepArgs)        \
  X(optim_norm, OptimNormArgs)            \
  X(optim_clip_norm, OptimClipNormArgs)   \
  X(optim_clip_value, OptimClipValueArgs) \
  X(optim_unscale, OptimUnscaleArgs)

}  // namespace tern
