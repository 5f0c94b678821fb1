// Attention in one kernel and its gradients in another, where the device has them. Internal to ops.
#pragma once

#include "tern/ops/attention_blocks.h"

namespace tern::detail {

/// Writes heads.output in one launch, and to `log_sums`, unless null, what attend_backward_fused() needs
/// besides. False, with nothing done, where the device has no kernel for this, or where masks, dropout or the
/// weights are asked for.
bool attend_fused(const Heads& heads, const AttentionSettings& settings, Tensor* log_sums = nullptr);

/// Of so many scores at once the kernel for gradients may keep 16 bits each: half a gigabyte.
inline constexpr int64_t kMostFusedScores = int64_t{1} << 28;

/// Writes grads.query, key and value, of which none may be undefined, from grads.output, in launches of at
/// most `most_scores` or one matrix. False, with nothing done, where the device has no kernel for this.
bool attend_backward_fused(const Heads& heads, const Heads& grads, const AttentionSettings& settings,
                           const Tensor& log_sums, int64_t most_scores = kMostFusedScores);

}  // namespace tern::detail
