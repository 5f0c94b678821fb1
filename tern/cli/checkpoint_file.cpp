// Reading of models from checkpoint files, and writing.
#include "tern/cli/checkpoint_file.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "tern/base/check.h"
#include "tern/cli/checkpoint_text.h"
#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/io/file.h"
#include "tern/io/module_tree.h"
#include "tern/io/npy.h"
#include "tern/io/numpy_types.h"
#include "tern/io/save.h"
#include "tern/io/shards_writer.h"
#include "tern/io/value_nodes.h"

namespace tern::cli {
namespace {

std::string text_of(const Value& key) { return key.is_str() ? key.as_str() : key.str(60); }

std::string joined(const std::vector<std::string>& keys) { return fmt::format("{}", fmt::join(keys, ".")); }

/// Walks through a tree and puts what `change` gives for a value in its place; that is not entered. Keys of
/// dicts and members of sets stay.
class Replacer {
 public:
  using Change = std::function<std::optional<Value>(const Value&)>;

  explicit Replacer(Change change) : change_(std::move(change)) {}

  void run(Value& value) {
    if (std::optional<Value> other = change_(value)) {
      value = *std::move(other);
      return;
    }
    if (!value.identity() || !seen_.insert(value.identity()).second) return;
    if (auto* sequence = value.node<detail::SequenceNode>()) {
      for (Value& item : sequence->items) run(item);
    } else if (value.is_dict()) {
      ValueDict& dict = value.as_dict();
      for (const auto& [key, entry] : dict)
        if (Value* place = dict.find(key)) run(*place);
    } else if (value.is_object() && !io::stands_for_tensor(value)) {
      ValueObject& object = value.as_object();
      for (Value* part : {&object.args, &object.kwargs, &object.state}) run(*part);
      for (Value& item : object.items) run(item);
      for (auto& [key, entry] : object.entries) run(entry);
    }
  }

 private:
  Change change_;
  std::unordered_set<const void*> seen_;
};

/// Of the modules in `model` by their paths. Files do not have them: they are those of torch.nn, where only
/// layers that count batches have another than 1.
void add_versions(StateDict& dict, const Value& model, const std::string& path) {
  const ValueObject& object = model.as_object();
  const Value *modules = object.attribute("_modules"), *buffers = object.attribute("_buffers");
  if (!modules || !modules->is_dict()) return;
  const bool counts = buffers && buffers->is_dict() && buffers->contains("num_batches_tracked");
  dict.set_version(path, counts ? 2 : 1);
  for (const auto& [key, child] : modules->as_dict())
    if (is_module_object(child))
      add_versions(dict, child, path.empty() ? key.as_str() : path + "." + key.as_str());
}

/// What torch.save(model.state_dict()) has.
Value saved_state_dict(const Value& model) {
  StateDict dict;
  for (const auto& [name, tensor] : state_dict_of(model)) dict.insert(name, tensor.detach());
  add_versions(dict, model, "");
  return dict;
}

/// Whole models in the file become their state dicts. A module without tensors stays where it is a part of
/// something else, such as a loss among settings.
void convert_modules(LoadedCheckpoint& loaded) {
  Value& root = loaded.summary.root;
  bool found = false;
  Replacer([&](const Value& value) -> std::optional<Value> {
    if (!is_module_object(value)) return std::nullopt;
    Value dict = saved_state_dict(value);
    if (dict.length() == 0 && &value != &root) return std::nullopt;
    found = true;
    return dict;
  }).run(root);
  const size_t before = loaded.summary.tensors.size();
  if (found) loaded.dropped = before - std::min(before, io::find_tensors(root).size());
}

bool has_modules(Value root) {
  bool found = false;
  Replacer([&](const Value& value) -> std::optional<Value> {
    found = found || is_module_object(value);
    return std::nullopt;
  }).run(root);
  return found;
}

void add_weight(LoadedCheckpoint& loaded, const io::FoundTensor& found, const ModelOptions& options) {
  const bool plain = found.kind == io::TensorKind::Array || found.kind == io::TensorKind::Storage;
  loaded.weights.emplace_back(found.path, plain && !options.any_values ? Value(found.tensor) : found.value);
}

/// With the key "." whole models stay what they are: it gives all of their insides by their full names.
void take_all_tensors(LoadedCheckpoint& loaded, const ModelOptions& options) {
  const Value& root = loaded.summary.root;
  if (options.state_dicts && options.key != ".") {
    convert_modules(loaded);
    for (const io::FoundTensor& found : io::find_tensors(root)) add_weight(loaded, found, options);
  } else {
    loaded.from_module = options.state_dicts && has_modules(root);
    for (const io::FoundTensor& found : loaded.summary.tensors) add_weight(loaded, found, options);
  }
  if (root.is_dict())
    for (const auto& [key, value] : root.as_dict())
      if (io::find_tensors(value).empty()) loaded.rest.push_back(text_of(key));
}

/// The keys of what lies beside the way to the model.
void add_rest(LoadedCheckpoint& loaded) {
  Value level = loaded.summary.root;
  std::string path;
  for (const std::string& key : loaded.keys) {
    for (const auto& [other, value] : level.as_dict())
      if (!(other == Value(key))) loaded.rest.push_back(path + text_of(other));
    path += key + ".";
    level = *level.find(key);
  }
}

void take_module(LoadedCheckpoint& loaded, const Value& model) {
  loaded.from_module = true;
  for (const auto& [name, tensor] : state_dict_of(model)) loaded.weights.emplace_back(name, tensor);
}

/// Tensors in the containers in a dict. None where names with dots show that it is a state dict, beside which
/// something else was put; optimizers do not count.
std::vector<std::pair<std::string, size_t>> nested_tensors(const ValueDict& dict) {
  std::vector<std::pair<std::string, size_t>> nested;
  for (const auto& [key, value] : dict) {
    const bool is_tensor = io::stands_for_tensor(value);
    if (is_tensor && key.is_str() && key.as_str().find('.') != std::string::npos) return {};
    if (is_tensor || (key.is_str() && key.as_str().starts_with("optim"))) continue;
    if (const size_t count = io::find_tensors(value).size(); count > 0)
      nested.emplace_back(text_of(key), count);
  }
  return nested;
}

/// True for a tensor, and for dicts, lists and tuples of nothing else.
bool is_tensor_tree(const Value& value, size_t depth = 0) {
  constexpr size_t kMaxDepth = 1000;
  if (io::stands_for_tensor(value)) return true;
  if (depth > kMaxDepth) return false;  // it may be inside itself
  if (value.is_dict())
    return std::ranges::all_of(value.as_dict(),
                               [&](const auto& entry) { return is_tensor_tree(entry.value, depth + 1); });
  return (value.is_list() || value.is_tuple()) &&
         std::ranges::all_of(value.as_sequence(),
                             [&](const Value& item) { return is_tensor_tree(item, depth + 1); });
}

void take_dict(LoadedCheckpoint& loaded, const Value& dict, const ModelOptions& options) {
  const std::vector<std::pair<std::string, size_t>> nested = nested_tensors(dict.as_dict());
  const auto own = static_cast<size_t>(std::ranges::count_if(
      dict.as_dict(), [](const auto& entry) { return io::stands_for_tensor(entry.value); }));
  if (options.key.empty() && !nested.empty() && !is_tensor_tree(dict)) {
    size_t count = 0;
    std::vector<std::string> keys;
    for (const auto& [key, tensors] : nested) {
      count += tensors;
      keys.push_back(key);
    }
    loaded.doubt = fmt::format(
        "has {} {} and {} deeper, in {}: nothing tells which are the model; 'tern convert --key "
        "KEY' takes those of one dict, '--key .' all",
        count_text(own, "tensor"),
        loaded.keys.empty() ? "in the file itself" : "under '" + joined(loaded.keys) + "'", count,
        some_names(keys));
    loaded.keys.clear();
    return take_all_tensors(loaded, options);
  }
  loaded.from_dict = true;
  loaded.is_nested = !nested.empty();
  loaded.attributes = dict.as_dict().attributes();
  if (loaded.is_nested) {
    for (const io::FoundTensor& found : io::find_tensors(dict)) add_weight(loaded, found, options);
  } else {
    for (const auto& [key, value] : dict.as_dict())
      if (io::is_module_entry(key, value) && (options.any_values || io::stands_for_tensor(value)))
        loaded.weights.emplace_back(key.as_str(), value);
      else
        loaded.rest.push_back(text_of(key));
  }
}

/// The dict or whole model in `dict` under keys that are `text` when joined by dots.
std::optional<io::FoundStateDict> find_under(const Value& dict, std::string_view text) {
  for (const auto& [key, entry] : dict.as_dict()) {
    if (!key.is_str() || !text.starts_with(key.as_str())) continue;
    const std::string_view rest = text.substr(key.as_str().size());
    if (rest.empty() && (entry.is_dict() || is_module_object(entry)))
      return io::FoundStateDict{{key.as_str()}, entry};
    if (!entry.is_dict() || rest.empty() || rest[0] != '.') continue;
    if (auto found = find_under(entry, rest.substr(1))) {
      found->keys.insert(found->keys.begin(), key.as_str());
      return found;
    }
  }
  return std::nullopt;
}

/// Whole models that have tensors: the file itself, or what is in its dict. Of several the one whose state
/// dict would be found there.
std::vector<io::FoundStateDict> find_modules(const Value& root) {
  if (is_module_object(root) && !state_dict_of(root).empty()) return {io::FoundStateDict{{}, root}};
  if (!root.is_dict()) return {};
  Value dicts = Value::dict();
  for (const auto& [key, value] : root.as_dict())
    if (key.is_str() && is_module_object(value)) dicts.as_dict().set(key, state_dict_of(value));
  std::vector<io::FoundStateDict> found = io::find_state_dicts(dicts);
  for (io::FoundStateDict& each : found) each.dict = *root.find(each.keys.front());
  return found;
}

void take_model(LoadedCheckpoint& loaded, const std::string& path, const ModelOptions& options) {
  const Value& root = loaded.summary.root;
  if (options.key == ".") return take_all_tensors(loaded, options);
  std::vector<io::FoundStateDict> found;
  if (options.key.empty()) {
    found = io::find_state_dicts(root);
    if (found.size() != 1)
      if (auto modules = find_modules(root); !modules.empty()) found = std::move(modules);
  } else {
    auto chosen = root.is_dict() ? find_under(root, options.key) : std::nullopt;
    TERN_CHECK(chosen, CheckpointError, "'{}' has no dict under the key '{}'", path, options.key);
    found.push_back(*std::move(chosen));
  }
  if (found.size() == 1) {
    Value model = found.front().dict;
    loaded.keys = found.front().keys;
    if (options.state_dicts) {
      convert_modules(loaded);
      model = root;
      for (const std::string& key : loaded.keys) model = *model.find(key);
    }
    if (is_module_object(model))
      take_module(loaded, model);
    else
      take_dict(loaded, model, options);
    if (loaded.doubt.empty()) add_rest(loaded);
    TERN_CHECK(options.key.empty() || tensor_count(loaded.weights) > 0, CheckpointError,
               "'{}': what is under the key '{}' holds no tensors", path, options.key);
    return;
  }
  if (found.size() > 1) {
    std::vector<std::string> candidates;
    for (const io::FoundStateDict& each : found) candidates.push_back(joined(each.keys));
    loaded.doubt = fmt::format(
        "has several dicts that may be the model: {}; 'tern convert --key {}' takes that one, "
        "'--key .' all tensors",
        some_names(candidates, 5), candidates.front());
  } else if (is_module_object(root) && !loaded.summary.tensors.empty()) {
    std::vector<std::string> names;
    for (const io::TensorEntry& entry : loaded.summary.tensors) names.push_back(entry.path);
    loaded.doubt = fmt::format(
        "is a whole model with an empty state dict; it has {} elsewhere, {}: 'tern "
        "convert --key .' takes all",
        count_text(names.size(), "tensor"), some_names(names));
  }
  take_all_tensors(loaded, options);
}

/// Whether a format without trees has no such numbers.
bool lacks(std::string_view format, DType dtype) {
  return format == "npz" ? io::numpy_code(dtype).empty() : dtype == DType::Complex128;
}

StateDict strided(const Weights& weights, std::string_view format) {
  StateDict tensors;
  for (const auto& [name, value] : weights) {
    TERN_CHECK(value.is_tensor() || (value.is_object() && value.as_object().payload.is_tensor() &&
                                     !is_quantized(value.as_tensor().dtype())),
               CheckpointError, "'{}' is no plain tensor, which is all that {} can hold; --to pt writes it",
               name, format);
    const DType dtype = value.as_tensor().dtype();
    TERN_CHECK(!lacks(format, dtype), DTypeError,
               "'{}' has the dtype {}, which {} lacks; {}--to pt writes it", name, tern::name(dtype), format,
               is_floating_point(dtype) ? "--dtype float32 converts it, " : "");
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

std::shared_ptr<const io::ByteSource> open_input(const std::string& path) {
  if (path != "-") return io::open_file(path);
  static const std::shared_ptr<const io::ByteSource> standard_input = [] {
    TERN_CHECK(!::isatty(STDIN_FILENO), IoError,
               "standard input is a terminal: give a file, or send one by '<' or '|'");
    return io::open_descriptor(STDIN_FILENO, "standard input");
  }();
  return standard_input;
}

io::Summary summarize_input(const std::string& path, const io::SummaryOptions& options) {
  return path == "-" ? io::summarize_source(open_input(path), options) : io::summarize_file(path, options);
}

io::Summary load_summary(const std::string& path) {
  io::Summary summary = summarize_input(path, {.values = true});
  TERN_CHECK(summary.verdict() != io::Verdict::WouldRunCode, CheckpointError,
             "'{}': Python would run code when it opens this file ('tern inspect' says more)", path);
  return summary;
}

LoadedCheckpoint load_checkpoint(const std::string& path, const ModelOptions& options) {
  LoadedCheckpoint loaded;
  loaded.summary = load_summary(path);
  take_model(loaded, path, options);
  const size_t all = loaded.summary.tensors.size();
  loaded.outside = all - std::min(all, tensor_count(loaded.weights));
  return loaded;
}

void check_one_model(const LoadedCheckpoint& loaded, const std::string& path) {
  TERN_CHECK(loaded.doubt.empty(), CheckpointError, "'{}' {}", path, loaded.doubt);
}

size_t tensor_count(const Weights& weights) {
  return static_cast<size_t>(std::count_if(
      weights.begin(), weights.end(), [](const auto& entry) { return io::stands_for_tensor(entry.second); }));
}

void replace_weights(Value& root, const Weights& before, const Weights& after) {
  std::unordered_map<const void*, Value> changed;
  for (size_t i = 0; i < before.size(); ++i)
    if (!before[i].second.is_same(after[i].second))
      changed.emplace(before[i].second.identity(), after[i].second);
  Replacer([&](const Value& value) -> std::optional<Value> {
    const auto found = changed.find(value.identity());
    return found == changed.end() ? std::nullopt : std::optional(found->second);
  }).run(root);
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
  const std::string extension = io::lower_extension(path);
  const std::string promised = extension == ".safetensors" ? "safetensors" : extension == ".npz" ? "npz" : "";
  const std::string chosen = !format.empty() ? format : !promised.empty() ? promised : "pt";
  static constexpr std::string_view kKnown[] = {"pt", "legacy", "safetensors", "npz"};
  static constexpr std::string_view kForeign[] = {".onnx", ".h5",      ".hdf5",    ".keras",
                                                  ".gguf", ".ggml",    ".json",    ".tflite",
                                                  ".pb",   ".msgpack", ".mlmodel", ".t7"};
  if (std::find(std::begin(kKnown), std::end(kKnown), chosen) == std::end(kKnown))
    throw_usage("--to: unknown format '{}'; possible are pt, legacy, safetensors and npz", chosen);
  if (extension == ".npy") throw_usage("'{}': .npy files hold one array without a name; give a .npz", path);
  if (!promised.empty() && promised != chosen)
    throw_usage("--to {}: '{}' must be {}, as its name says; give it another name", chosen, path, promised);
  if (format.empty() && std::find(std::begin(kForeign), std::end(kForeign), extension) != std::end(kForeign))
    throw_usage("'{}': {} files are not written; give a .pt, .safetensors or .npz, or say --to FORMAT", path,
                extension);
  return chosen;
}

WriteOptions write_options_for(const std::string& path, const std::string& format) {
  WriteOptions options{.format = output_format(path, format)};
  if (path == "-") options.standard_output = std::make_shared<const BinaryOutput>();
  return options;
}

bool holds_trees(const std::string& format) { return format == "pt" || format == "legacy"; }

std::string write_checkpoint(const Value& root, const Weights& weights, const std::string& path,
                             const WriteOptions& options) {
  // Writes by one of two functions, and tells the size.
  const auto written = [&](const auto& to_file, const auto& to_buffer) {
    if (!options.standard_output) {
      to_file();
      return size_text(std::filesystem::file_size(path));
    }
    const std::vector<std::byte> bytes = to_buffer();
    options.standard_output->write(bytes);
    return size_text(bytes.size());
  };
  if (holds_trees(options.format)) {
    const bool legacy = options.format == "legacy";
    const SaveOptions how{.format = legacy ? SaveFormat::Legacy : SaveFormat::Zip,
                          .compact = options.compact};
    return fmt::format("PyTorch's {}, {}", legacy ? "stream format" : "zip format",
                       written([&] { save(root, path, how); }, [&] { return save_to_buffer(root, how); }));
  }
  const StateDict tensors = strided(weights, options.format);
  if (options.format == "npz")
    return fmt::format("NumPy arrays, {}", written([&] { save_npz(tensors, path); },
                                                   [&] {
                                                     io::MemorySink sink;
                                                     io::write_npz(tensors, sink);
                                                     return std::move(sink.bytes());
                                                   }));
  std::string text;
  if (options.shard_bytes > 0) {
    const std::vector<std::string> files = io::save_safetensors_shards(tensors, path, options.shard_bytes);
    text = files.size() == 1
               ? "safetensors, one file: all fits"
               : fmt::format("safetensors in {} shards and '{}'", files.size() - 1, shown(files.back()));
  } else {
    text = "safetensors, " + written([&] { save_safetensors(tensors, path); },
                                     [&] { return save_safetensors_to_buffer(tensors); });
  }
  if (const size_t shared = shared_count(tensors); shared > 0)
    text += fmt::format("; {} with memory of an earlier one written anew", count_text(shared, "tensor"));
  return text;
}

}  // namespace tern::cli
