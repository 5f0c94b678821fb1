// Checkpoints in several files: an index (HuggingFace's *.index.json) says which file has which tensor.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tern/io/torch_file.h"

namespace tern::io {

/// The names of tensors and of the files that hold them, in the order of the index. Throws CheckpointError
/// when the text is no index, a name is there twice, or a file name has a folder in it.
std::vector<std::pair<std::string, std::string>> read_shard_index(const ByteSource& source,
                                                                  const LoadLimits& limits);

/// All tensors of an index, as a dict in its order; what the shards have beside them comes at the end. Throws
/// CheckpointError when a shard is missing, lacks a tensor, or has one that is in another shard too.
Checkpoint read_shards(const std::filesystem::path& index, const LoadOptions& options);

}  // namespace tern::io
