// Clipping of gradients, as torch.nn.utils.clip_grad.
#pragma once

#include <vector>

#include "tern/core/tensor.h"

namespace tern::optim {

struct ClipGradNormOptions {
  /// 2, 1, infinity, or any other p; 0 counts the elements that are not zero.
  double norm_type = 2;
  /// A norm that is infinite or NaN throws ValueError, and nothing is changed. Blocks the host.
  bool error_if_nonfinite = false;
};

/// The norm of all `tensors` taken as one vector, a 0-d tensor on the device of the first (float64 if there
/// are tensors of it, else float32). Does not block the host.
Tensor get_total_norm(const std::vector<Tensor>& tensors, ClipGradNormOptions options = {});

/// Scales the gradients of `parameters` in place by min(1, max_norm / (total_norm + 1e-6)), where the norm is
/// a 0-d tensor that get_total_norm gave. Does not block the host.
void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm, const Tensor& total_norm);

/// Scales the gradients of `parameters` in place so that their norm, taken over all of them as one vector, is
/// at most `max_norm`. Returns the norm from before, a 0-d tensor (float64 if there are float64 gradients,
/// else float32). Does not block the host. Parameters without a gradient do not count.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       ClipGradNormOptions options = {});

/// Limits every element of the gradients of `parameters` to [-clip_value, clip_value], in place.
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

}  // namespace tern::optim
