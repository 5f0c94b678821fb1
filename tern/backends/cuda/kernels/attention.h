// Attention in one kernel, which is cuDNN's.
#pragma once

#include "tern/device/backend.h"
#include "tern/kernels/attention.h"

namespace tern::cuda_backend {

/// Whether cuDNN has a plan for these arguments, which is made here. False where there is no cuDNN.
bool fuses_attention(const LaunchContext& context, const AttentionArgs& args);
bool fuses_attention(const LaunchContext& context, const AttentionBackwardArgs& args);

}  // namespace tern::cuda_backend
