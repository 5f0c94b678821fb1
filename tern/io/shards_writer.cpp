// Shards and their index: the form is that of huggingface_hub's split_state_dict_into_shards_factory.
#include "tern/io/shards_writer.h"

#include <nlohmann/json.hpp>

#include "tern/base/check.h"
#include "tern/io/file.h"

namespace tern::io {

std::vector<std::string> save_safetensors_shards(const StateDict& tensors, const std::filesystem::path& path,
                                                 uint64_t max_bytes,
                                                 const std::map<std::string, std::string>& metadata) {
  TERN_CHECK(path.extension() == ".safetensors", ValueError,
             "shards are named after a file that ends in .safetensors, not '{}'", path.string());
  std::vector<StateDict> shards(1);
  uint64_t in_shard = 0, total = 0;
  for (const auto& [name, tensor] : tensors) {
    TERN_CHECK(tensor.defined(), ValueError, "tensor '{}' is undefined", name);
    const uint64_t nbytes = tensor.nbytes();
    if (!shards.back().empty() && (nbytes > max_bytes || in_shard > max_bytes - nbytes)) {
      shards.emplace_back();
      in_shard = 0;
    }
    shards.back().insert(name, tensor);
    in_shard += nbytes;
    total += nbytes;
  }
  if (shards.size() == 1) {
    save_safetensors(shards.front(), path, metadata);
    return {path.filename().string()};
  }
  std::vector<std::string> files;
  // Sorted by name, as json.dumps(sort_keys=True) gives it.
  nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", nlohmann::json::object()}};
  for (size_t i = 0; i < shards.size(); ++i) {
    files.push_back(fmt::format("{}-{:05}-of-{:05}.safetensors", path.stem().string(), i + 1, shards.size()));
    save_safetensors(shards[i], path.parent_path() / files.back(), metadata);
    for (const auto& [name, tensor] : shards[i]) index["weight_map"][name] = files.back();
  }
  files.push_back(path.filename().string() + ".index.json");
  AtomicFile file(path.parent_path() / files.back());
  file.write(std::string_view(index.dump(2) + "\n"));
  file.commit();
  return files;
}

}  // namespace tern::io
