// Shards and their index: the form is that of huggingface_hub's split_state_dict_into_shards_factory.
#include "tern/io/shards_writer.h"

#include <deque>
#include <nlohmann/json.hpp>
#include <set>

#include "tern/base/check.h"
#include "tern/io/file.h"
#include "tern/io/safetensors.h"
#include "tern/io/shard_index.h"
#include "tern/io/utf8.h"

namespace tern::io {

namespace {

constexpr std::string_view kSuffix = ".safetensors";
/// Each is an open file until all are written; a process may have 1024.
constexpr size_t kMaxOpenShards = 500;

std::filesystem::path index_of(const std::filesystem::path& path) { return path.string() + ".index.json"; }

/// "model-00001-of-00003.safetensors" for "model".
bool is_shard_name(std::string_view name, std::string_view stem) {
  constexpr std::string_view kForm = "-00000-of-00000";
  if (name.size() != stem.size() + kForm.size() + kSuffix.size() || !name.starts_with(stem) ||
      !name.ends_with(kSuffix))
    return false;
  name = name.substr(stem.size(), kForm.size());
  for (size_t i = 0; i < name.size(); ++i)
    if (kForm[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != kForm[i]) return false;
  return true;
}

/// The shards that the index beside `path` names. None where there is no index, or one that another program
/// wrote.
std::set<std::string> shards_of(const std::filesystem::path& path) {
  std::set<std::string> shards;
  try {
    for (const auto& [name, file] : read_shard_index(*open_file(index_of(path)), {})) {
      if (!is_shard_name(file, path.stem().string())) return {};
      shards.insert(file);
    }
  } catch (const Error&) {
    return {};
  }
  return shards;
}

/// Best effort: the new model is in place.
void remove_files(const std::filesystem::path& folder, const std::set<std::string>& names) {
  std::error_code ignored;
  for (const std::string& name : names) std::filesystem::remove(folder / name, ignored);
}

}  // namespace

std::vector<std::string> save_safetensors_shards(const StateDict& tensors, const std::filesystem::path& path,
                                                 uint64_t max_bytes,
                                                 const std::map<std::string, std::string>& metadata) {
  TERN_CHECK(lower_extension(path) == kSuffix, ValueError,
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
  const std::filesystem::path folder = path.parent_path();
  std::set<std::string> old = shards_of(path);
  if (shards.size() == 1) {
    save_safetensors(shards.front(), path, metadata);
    if (!old.empty()) old.insert(index_of(path).filename().string());
    remove_files(folder, old);
    return {path.filename().string()};
  }
  TERN_CHECK(is_utf8(path.filename().string()), ValueError,
             "the names of shards stand in their index, where '{}' cannot: it is not UTF-8", path.string());
  std::vector<std::string> files;
  std::deque<AtomicFile> open;
  // Sorted by name, as json.dumps(sort_keys=True) gives it.
  nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", nlohmann::json::object()}};
  for (size_t i = 0; i < shards.size(); ++i) {
    files.push_back(fmt::format("{}-{:05}-of-{:05}{}", path.stem().string(), i + 1, shards.size(), kSuffix));
    for (const auto& [name, tensor] : shards[i]) {
      TERN_CHECK(is_utf8(name), ValueError, "save_safetensors: the name of a tensor is not UTF-8");
      index["weight_map"][name] = files.back();
    }
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    AtomicFile& file = open.emplace_back(folder / files[i]);
    file.fill(/*sync=*/true, [&](ByteSink& sink) { write_safetensors(shards[i], metadata, sink); });
    if (shards.size() > kMaxOpenShards) file.commit(/*sync=*/false);
  }
  AtomicFile index_file(index_of(path));
  index_file.fill(/*sync=*/true, [&](ByteSink& sink) { sink.write(std::string_view(index.dump(2) + "\n")); });
  // From here on only names change, first those of the shards.
  for (AtomicFile& file : open)
    if (shards.size() <= kMaxOpenShards) file.commit(/*sync=*/&file == &open.back());
  index_file.commit();
  for (const std::string& file : files) old.erase(file);
  remove_files(folder, old);
  files.push_back(index_of(path).filename().string());
  return files;
}

}  // namespace tern::io
