// Processes that begin with the same tensors. Internal to parallel.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tern/nn/module.h"
#include "tern/parallel/process_group.h"

namespace tern::dist {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Throws DistributedError, with the first difference, where names, dtypes, shapes or which are frozen are
/// not those of rank 0. `wrapper` is who asks.
void check_same(const char* wrapper, const NamedTensors& parameters, const NamedTensors& buffers,
                const ProcessGroup& group);

/// All tensors become those of rank 0; few of them travel at a time.
void broadcast_all(const std::vector<Tensor>& tensors, const ProcessGroup& group);

}  // namespace tern::dist
