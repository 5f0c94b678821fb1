// Whole models in a checkpoint (torch.save(net), TorchScript): the state dict of their inert modules.
#pragma once

#include "tern/core/state_dict.h"
#include "tern/io/value.h"

namespace tern {

/// True for an inert object that is a module: one with `_parameters`, `_buffers` and `_modules`, or one of a
/// TorchScript archive.
bool is_module_object(const Value& value);

/// What `model.state_dict()` gives in PyTorch: for each module in order its parameters, then its buffers
/// without those that are not persistent, then those of its submodules, named by the path from `model`. A
/// module that is there twice gives its tensors twice. For a module of TorchScript, every tensor among its
/// attributes. Throws TypeError when `model` is no module (for a dict that holds one, give the entry),
/// CheckpointError when modules are nested deeper than 500 or have more than a million tensors in all.
StateDict state_dict_of(const Value& model);

}  // namespace tern
