// Checkpoints that several processes write and read together, each its pieces of a network that
// parallel/fully_shard.h divided: in PyTorch's format (torch.distributed.checkpoint), by any number of
// processes.
#pragma once

#include <filesystem>

#include "tern/io/value.h"
#include "tern/nn/module.h"
#include "tern/optim/optimizer.h"
#include "tern/parallel/process_group.h"

namespace tern::train {

/// Writes the folder: {'model': state dict, 'optimizer': {'state': {name: {...}}, 'param_groups': [...]},
/// 'extra':
/// ...}, with the names of parameters in the place of their numbers, as PyTorch's get_state_dict() has it.
/// Nothing is gathered: each process writes its pieces of divided parameters, and its share of what all have.
/// All processes call it; `optimizer` may be null; `extra` is rank 0's. A checkpoint that is there already
/// stays readable until the new one is whole. load() opens the folder as one dict, PyTorch by dcp.load.
/// Blocks. Throws IoError, DistributedError, ValueError.
void save_distributed(const std::filesystem::path& folder, const dist::ProcessGroup& group,
                      const nn::Module& module, const optim::Optimizer* optimizer = nullptr,
                      const Value& extra = {});

/// Reads such a folder into the module and the optimizer, each process no more than its pieces, and returns
/// 'extra' (None without one). Processes need not be as many, nor the module divided. Throws CheckpointError,
/// and then nothing has been changed on this process; names in the folder that the module lacks are left
/// aside.
Value load_distributed(const std::filesystem::path& folder, nn::Module& module,
                       optim::Optimizer* optimizer = nullptr);

}  // namespace tern::train
