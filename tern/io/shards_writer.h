// Writing of safetensors in shards, as HuggingFace's libraries do, with an index that says where each tensor
// is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tern/core/state_dict.h"
#include "tern/io/save.h"

namespace tern::io {

/// Writes `tensors` in files of at most `max_bytes` of numbers each (a larger tensor has a file of its own):
/// for "model.safetensors" these are "model-00001-of-00003.safetensors" and so on beside it, with the index
/// "model.safetensors.index.json"; one file, named `path`, without an index, when all fit. Each file appears
/// in one step, the index last: up to 500 shards only when all have been written, so that the old model is as
/// it was when anything fails before. Shards of this writer that only the old index names are removed then,
/// with the index where no new one is written. Returns the names of the files. Throws as save_safetensors,
/// and ValueError when `path` does not end in ".safetensors" or is not UTF-8.
std::vector<std::string> save_safetensors_shards(const StateDict& tensors, const std::filesystem::path& path,
                                                 uint64_t max_bytes,
                                                 const std::map<std::string, std::string>& metadata = {
                                                     {"format", "pt"}});

}  // namespace tern::io
