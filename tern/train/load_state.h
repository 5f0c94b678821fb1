// Loading a module from a checkpoint of any form: the state dict may be the file's root or stand somewhere in
// it. What is done with its names is nn's.
#pragma once

#include "tern/io/value.h"
#include "tern/nn/module.h"

namespace tern::train {

/// `module.load_state_dict` with the state dict that is in `checkpoint`. The root is taken when it holds
/// tensors; when they are in an entry of it ({'state_dict': ...}, {'model': ...}), `prefix = "auto"` finds
/// them there, and without it the CheckpointError names the entry. Where several dicts may be the model, the
/// CheckpointError names them.
nn::IncompatibleKeys load_state_dict(nn::Module& module, const Value& checkpoint,
                                     const nn::LoadStateDictOptions& options = {});

}  // namespace tern::train
