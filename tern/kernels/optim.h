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
  double scalars[3];  ///< what depends on the number of steps that this parameter has taken
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

// The element functions of the next six are written once, in kernels/optim_steps.h.

/// NAdam. state: exp_avg, exp_avg_sq, both updated as Adam's; mu is the momentum of this step, prod the
/// product of all so far. scalars: lr * (1 - mu) / (1 - prod), lr * mu_next / (1 - prod * mu_next), 1 -
/// beta2^t.
///   param -= (scalars[0] * g + scalars[1] * exp_avg) / (sqrt(exp_avg_sq / scalars[2]) + eps)
struct NadamStepArgs {
  OptimList list;
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  bool decoupled;
  bool maximize;
};

/// RAdam. state: exp_avg, exp_avg_sq, both updated as Adam's.
/// scalars: lr / (1 - beta1^t), sqrt(1 - beta2^t) * rectification, 0 while there is none.
///   param -= scalars[0] * exp_avg * (scalars[1] != 0 ? scalars[1] / (sqrt(exp_avg_sq) + eps) : 1)
struct RadamStepArgs {
  OptimList list;
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  bool decoupled;
  bool maximize;
};

/// Adamax. state: exp_avg, updated as Adam's, and exp_inf. scalars: lr / (1 - beta1^t).
///   exp_inf = max(beta2 * exp_inf, |g| + eps);  param -= scalars[0] * exp_avg / exp_inf
struct AdamaxStepArgs {
  OptimList list;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  bool maximize;
};

/// Adadelta. state: square_avg, acc_delta.
///   square_avg = rho * square_avg + (1 - rho) * g * g
///   delta = sqrt(acc_delta + eps) / sqrt(square_avg + eps) * g
///   acc_delta = rho * acc_delta + (1 - rho) * delta * delta;  param -= lr * delta
struct AdadeltaStepArgs {
  OptimList list;
  double lr;
  double rho;
  double eps;
  double weight_decay;
  bool maximize;
};

/// Averaged stochastic gradient descent. state: ax. scalars: eta, mu.
///   param = (1 - lambd * eta) * param - eta * g;  ax = mu == 1 ? param : ax + mu * (param - ax)
struct AsgdStepArgs {
  OptimList list;
  double lambd;
  double weight_decay;
  bool maximize;
};

/// Resilient backpropagation. state: prev, step_size.
///   step_size = clamp(step_size * (g * prev > 0 ? etaplus : g * prev < 0 ? etaminus : 1), least, most)
///   prev = g * prev < 0 ? 0 : g;  param -= sign(prev) * step_size
struct RpropStepArgs {
  OptimList list;
  double etaminus;
  double etaplus;
  double least;
  double most;
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
  X(nadam_step, NadamStepArgs)            \
  X(radam_step, RadamStepArgs)            \
  X(adamax_step, AdamaxStepArgs)          \
  X(adadelta_step, AdadeltaStepArgs)      \
  X(asgd_step, AsgdStepArgs)              \
  X(rprop_step, RpropStepArgs)            \
  X(optim_norm, OptimNormArgs)            \
  X(optim_clip_norm, OptimClipNormArgs)   \
  X(optim_clip_value, OptimClipValueArgs) \
  X(optim_unscale, OptimUnscaleArgs)

}  // namespace tern
