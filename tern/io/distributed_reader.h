// PyTorch's distributed checkpoints: a folder with `.metadata` and files that hold pieces of tensors.
#pragma once

#include <filesystem>

#include "tern/io/torch_file.h"

namespace tern::io {

/// The whole of a folder that torch.distributed.checkpoint wrote: every tensor put together from its pieces,
/// in nested dicts as they were saved. Throws CheckpointError, also when pieces are missing or overlap.
Checkpoint read_distributed(const std::filesystem::path& folder, const LoadOptions& options);

}  // namespace tern::io
