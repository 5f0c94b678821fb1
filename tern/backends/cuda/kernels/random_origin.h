// Where the random numbers of a recorded step begin at a replay.
#pragma once

#include <span>

#include "tern/core/philox.h"
#include "tern/device/backend.h"

namespace tern::cuda_backend {

/// Queues the writing of `values`, at most kMostOrigins, to the device's memory at `origins`.
void set_random_origins(const LaunchContext& context, PhiloxState* origins,
                        std::span<const PhiloxState> values);

}  // namespace tern::cuda_backend
