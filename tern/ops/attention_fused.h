// Attention in the one kernel that GPUs have for it, and its gradients in another. Internal to ops.
#pragma once

#include "tern/ops/attention_blocks.h"

namespace tern::detail {

/// Writes heads.output in one launch. False, with nothing done, where the device has no kernel for this, or
/// where masks, dropout or the weights are asked for.
bool attend_fused(const Heads& heads, const AttentionSettings& settings);

/// The same for a pass that gradients follow: what attend_backward_fused() needs besides. Undefined where
/// that would be false.
Tensor attend_fused_for_gradients(const Heads& heads, const AttentionSettings& settings);

/// Writes grads.query, key and value, of which none may be undefined, from grads.output. False, with nothing
/// done, where the device has no kernel for this.
bool attend_backward_fused(const Heads& heads, const Heads& grads, const AttentionSettings& settings,
                           const Tensor& log_sums);

}  // namespace tern::detail
