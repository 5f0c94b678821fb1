// Names of a state dict without the prefix that a wrapper put before them. Wrappers are in parallel/.
#pragma once

#include <string_view>

#include "tern/core/state_dict.h"

namespace tern::nn {

/// Takes `prefix` ("module.") off the names that begin with it, and off the modules' versions, for a state
/// dict that was saved in a DataParallel: afterwards the network itself can load it. Other names stay; the
/// order too. The version that the wrapper recorded for itself is dropped. Throws CheckpointError when two
/// names would become one; the dict is unchanged then. (torch.nn.modules.utils)
void consume_prefix_in_state_dict_if_present(StateDict& dict, std::string_view prefix);

}  // namespace tern::nn
