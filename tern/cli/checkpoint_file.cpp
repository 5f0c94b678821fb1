// Reading of models from checkpoint files, and writing.
#include "tern/cli/checkpoint_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <unordered_map>

#include "tern/base/check.h"
#include "tern/cli/checkpoint_text.h"
#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/io/module_tree.h"
#include "tern/io/npy.h"
#include "tern/io/save.h"
#include "tern/io/shards_writer.h"

namespace tern::cli {
namespace {

std::string text_of(const Value& key) { return key.is_str() ? key.as_str() : key.str(60); }

std::string joined(const std::vector<std::string>& keys) { return fmt::format("{}", fmt::join(keys, ".")); }

void take_state_dict(LoadedCheckpoint& loaded, const io::FoundStateDict& found, bool extra_states) {
  loaded.keys = found.keys;
  loaded.from_dict = true;
  loaded.attributes = found.dict.as_dict().attributes();
  for (const auto& [key, value] : found.dict.as_dict())
    if (io::is_module_entry(key, value) && (extra_states || io::stands_for_tensor(value)))
      loaded.weights.emplace_back(key.as_str(), value);
    else
      loaded.rest.push_back(text_of(key));
  // What lies beside the way to it.
  Value level = loaded.summary.root;
  std::string path;
  for (const std::string& key : found.keys) {
    for (const auto& [other, value] : level.as_dict())
      if (!(other == Value(key))) loaded.rest.push_back(path + text_of(other));
    path += key + ".";
    level = *level.find(key);
  }
}

/// The dict in `dict` under keys that are `text` when joined by dots.
std::optional<io::FoundStateDict> dict_under(const Value& dict, std::string_view text) {
  for (const auto& [key, entry] : dict.as_dict()) {
    if (!key.is_str() || !entry.is_dict() || !text.starts_with(key.as_str())) continue;
    const std::string_view rest = text.substr(key.as_str().size());
    if (rest.empty()) return io::FoundStateDict{{key.as_str()}, entry};
    if (rest[0] != '.') continue;
    if (auto found = dict_under(entry, rest.substr(1))) {
      found->keys.insert(found->keys.begin(), key.as_str());
      return found;
    }
  }
  return std::nullopt;
}

void take_all_tensors(LoadedCheckpoint& loaded) {
  for (const io::TensorEntry& entry : loaded.summary.tensors)
    loaded.weights.emplace_back(entry.path,
                                entry.kind == io::TensorKind::Array || entry.kind == io::TensorKind::Storage
                                    ? Value(entry.tensor)
                                    : entry.value);
}

StateDict strided(const Weights& weights, std::string_view format) {
  StateDict tensors;
  for (const auto& [name, value] : weights) {
    TERN_CHECK(value.is_tensor() || (value.is_object() && value.as_object().payload.is_tensor() &&
                                     !is_quantized(value.as_tensor().dtype())),
               CheckpointError, "'{}' is no plain tensor, which is all that {} can hold; --to pt writes it",
               name, format);
    tensors.insert(name, value.as_tensor());
  }
  return tensors;
}

/// Names of tensors that share memory with an earlier one.
size_t shared_count(const StateDict& tensors) {
  std::unordered_map<const StorageImpl*, int> seen;
  size_t count = 0;
  for (const auto& [name, tensor] : tensors)
    if (tensor.numel() > 0 && seen[tensor.storage().get()]++ > 0) ++count;
  return count;
}

}  // namespace

io::Summary load_summary(const std::string& path) {
  io::Summary summary = io::summarize_file(path, {.values = true});
  TERN_CHECK(summary.verdict() != io::Verdict::WouldRunCode, CheckpointError,
             "'{}': Python would run code when it opens this file ('tern inspect' says more)", path);
  return summary;
}

LoadedCheckpoint load_checkpoint(const std::string& path, const ModelOptions& options) {
  LoadedCheckpoint loaded;
  loaded.summary = load_summary(path);
  const Value& root = loaded.summary.root;
  if (options.key == ".") {
    take_all_tensors(loaded);
    return loaded;
  }
  if (!options.key.empty()) {
    const auto found = root.is_dict() ? dict_under(root, options.key) : std::nullopt;
    TERN_CHECK(found, CheckpointError, "'{}' has no dict under the key '{}'", path, options.key);
    take_state_dict(loaded, *found, options.extra_states);
    TERN_CHECK(tensor_count(loaded.weights) > 0, CheckpointError,
               "'{}': the dict under the key '{}' holds no tensors itself", path, options.key);
    return loaded;
  }
  const std::vector<io::FoundStateDict> found = io::find_state_dicts(root);
  if (found.size() == 1) {
    take_state_dict(loaded, found.front(), options.extra_states);
    return loaded;
  }
  // A whole model, alone or under a key.
  Value model = is_module_object(root) ? root : Value();
  if (root.is_dict())
    for (const auto& [key, value] : root.as_dict()) {
      if (model.is_none() && is_module_object(value))
        model = value;
      else
        loaded.rest.push_back(text_of(key));
    }
  if (!model.is_none()) {
    loaded.from_module = true;
    for (const auto& [name, tensor] : state_dict_of(model)) loaded.weights.emplace_back(name, tensor);
    return loaded;
  }
  loaded.rest.clear();
  for (const io::FoundStateDict& each : found) loaded.candidates.push_back(joined(each.keys));
  take_all_tensors(loaded);
  return loaded;
}

void check_one_model(const LoadedCheckpoint& loaded, const std::string& path) {
  if (loaded.candidates.empty()) return;
  TERN_THROW(CheckpointError,
             "'{}' has several dicts that may be the model: {}; 'tern convert --key {}' takes that one, "
             "'--key .' all tensors",
             path, some_names(loaded.candidates, 5), loaded.candidates.front());
}

size_t tensor_count(const Weights& weights) {
  return static_cast<size_t>(std::count_if(
      weights.begin(), weights.end(), [](const auto& entry) { return io::stands_for_tensor(entry.second); }));
}

Value rename_metadata(const Value& attributes, const std::string& strip, const std::string& add) {
  if (!attributes.is_dict() || (strip.empty() && add.empty())) return attributes;
  const Value* metadata = attributes.find("_metadata");
  if (!metadata || !metadata->is_dict()) return attributes;
  // "module" and "module.conv" become "" and "conv" when "module." is taken away.
  auto renamed = [](std::string path, const std::string& prefix, bool away) -> std::optional<std::string> {
    if (prefix.empty()) return path;
    const std::string bare = prefix.ends_with('.') ? prefix.substr(0, prefix.size() - 1) : prefix;
    if (!away) return path.empty() ? bare : prefix + path;
    if (path == bare) return std::string();
    if (path.starts_with(prefix)) return path.substr(prefix.size());
    return std::nullopt;
  };
  Value result = Value::ordered_dict();
  for (const auto& [key, value] : metadata->as_dict()) {
    if (!key.is_str()) continue;
    std::optional<std::string> path = renamed(key.as_str(), strip, /*away=*/true);
    if (path) path = renamed(*path, add, /*away=*/false);
    if (path) result.as_dict().set(*path, value);
  }
  Value changed = Value::dict();
  for (const auto& [key, value] : attributes.as_dict())
    changed.as_dict().set(key, key == Value("_metadata") ? result : value);
  return changed;
}

Value weights_dict(const Weights& weights, const Value& attributes) {
  Value dict = Value::ordered_dict();
  dict.as_dict().reserve(weights.size());
  for (const auto& [name, value] : weights) dict.as_dict().set(name, value);
  if (attributes.is_dict()) dict.as_dict().set_attributes(attributes);
  return dict;
}

std::string output_format(const std::string& path, const std::string& format) {
  const std::string extension = std::filesystem::path(path).extension().string();
  const std::string promised = extension == ".safetensors" ? "safetensors" : extension == ".npz" ? "npz" : "";
  const std::string chosen = !format.empty() ? format : !promised.empty() ? promised : "pt";
  static constexpr std::string_view kKnown[] = {"pt", "legacy", "safetensors", "npz"};
  if (std::find(std::begin(kKnown), std::end(kKnown), chosen) == std::end(kKnown))
    throw_usage("--to: unknown format '{}'; possible are pt, legacy, safetensors and npz", chosen);
  if (extension == ".npy") throw_usage("'{}': .npy files hold one array without a name; give a .npz", path);
  if (!promised.empty() && promised != chosen)
    throw_usage("--to {}: '{}' must be {}, as its name says; give it another name", chosen, path, promised);
  return chosen;
}

bool holds_trees(const std::string& format) { return format == "pt" || format == "legacy"; }

std::string write_checkpoint(const Value& root, const Weights& weights, const std::string& path,
                             const WriteOptions& options) {
  if (holds_trees(options.format)) {
    const bool legacy = options.format == "legacy";
    save(root, path, {.format = legacy ? SaveFormat::Legacy : SaveFormat::Zip});
    return fmt::format("PyTorch's {}, {}", legacy ? "stream format" : "zip format",
                       size_text(std::filesystem::file_size(path)));
  }
  const StateDict tensors = strided(weights, options.format);
  if (options.format == "npz") {
    save_npz(tensors, path);
    return fmt::format("NumPy arrays, {}", size_text(std::filesystem::file_size(path)));
  }
  std::string text;
  if (options.shard_bytes > 0) {
    const std::vector<std::string> files = io::save_safetensors_shards(tensors, path, options.shard_bytes);
    text = files.size() == 1
               ? "safetensors, one file: all fits"
               : fmt::format("safetensors in {} shards and '{}'", files.size() - 1, shown(files.back()));
  } else {
    save_safetensors(tensors, path);
    text = fmt::format("safetensors, {}", size_text(std::filesystem::file_size(path)));
  }
  if (const size_t shared = shared_count(tensors); shared > 0)
    text += fmt::format("; {} with memory of an earlier one written anew", count_text(shared, "tensor"));
  return text;
}

}  // namespace tern::cli
