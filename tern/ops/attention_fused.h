// Attention in the one kernel that GPUs have for it. Internal to ops.
#pragma once

#include "tern/ops/attention_blocks.h"

namespace tern::detail {

/// Writes heads.output in one launch. False, with nothing done, where the device has no kernel for this, or
/// where masks, dropout or the weights are asked for.
bool attend_fused(const Heads& heads, const AttentionSettings& settings);

}  // namespace tern::detail
