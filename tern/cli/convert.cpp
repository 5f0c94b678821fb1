// `tern convert`: a checkpoint into another format, with other names, dtypes and parts.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <regex>
#include <unordered_map>
#include <unordered_set>

#include "tern/base/check.h"
#include "tern/cli/checkpoint_file.h"
#include "tern/cli/checkpoint_text.h"
#include "tern/cli/command.h"
#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/io/tensor_numbers.h"
#include "tern/io/word_list.h"
#include "tern/train/terminal.h"

namespace tern::cli {
namespace {

/// Longer names are not given to regular expressions, whose time and stack grow with them.
constexpr size_t kMaxMatchedName = 4096;

struct Rename {
  std::regex pattern;
  std::string replacement;
  std::string text;
};

struct ConvertOptions {
  std::string in, out, format, key, strip, add, dtype, shard;
  std::vector<std::string> renames, only;
};

std::regex parse_pattern(const std::string& text, std::string_view option) {
  try {
    return std::regex(text);
  } catch (const std::regex_error&) {
    throw_usage("{}: '{}' is no regular expression", option, text);
  }
}

std::vector<Rename> parse_renames(const std::vector<std::string>& texts) {
  std::vector<Rename> renames;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      throw_usage("--rename must be PATTERN=NEW, got '{}'", text);
    renames.push_back({parse_pattern(text.substr(0, equals), "--rename"), text.substr(equals + 1), text});
  }
  return renames;
}

void note(const std::string& text) { fmt::print("  {}\n", shown(text)); }

void check_name(const std::string& name) {
  TERN_CHECK(name.size() <= kMaxMatchedName, ValueError, "a name of {} bytes is not matched with patterns",
             name.size());
}

void keep_only(Weights& weights, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  std::vector<std::regex> patterns;
  for (const std::string& text : texts) patterns.push_back(parse_pattern(text, "--only"));
  const size_t before = tensor_count(weights);
  std::erase_if(weights, [&](const auto& entry) {
    check_name(entry.first);
    for (const std::regex& pattern : patterns)
      if (std::regex_search(entry.first, pattern)) return false;
    return true;
  });
  const size_t kept = tensor_count(weights);
  TERN_CHECK(kept > 0, ValueError, "--only: none of {} matches", count_text(before, "name"));
  note(fmt::format("kept {} of {}", train::with_commas(static_cast<long long>(kept)),
                   count_text(before, "tensor")));
}

void strip_prefix(Weights& weights, std::string& prefix) {
  if (prefix.empty()) return;
  if (prefix == "auto") {
    std::vector<std::string> names;
    for (const auto& [name, value] : weights)
      if (io::stands_for_tensor(value)) names.push_back(name);
    prefix = io::wrapper_prefix(names);
    if (prefix.empty()) {
      note("no prefix of a wrapper is found");
      return;
    }
  }
  size_t count = 0;
  for (auto& [name, value] : weights)
    if (name.starts_with(prefix) && name.size() > prefix.size()) {
      name.erase(0, prefix.size());
      ++count;
    }
  TERN_CHECK(count > 0, ValueError, "--strip-prefix: no name begins with '{}'; the first is '{}'", prefix,
             weights.empty() ? "" : weights.front().first);
  note(fmt::format(
      "took '{}' from {}{}", prefix, count_text(count, "name"),
      count < weights.size() ? fmt::format("; {} did not begin with it", weights.size() - count) : ""));
}

void rename(Weights& weights, const std::vector<Rename>& renames) {
  for (const Rename& each : renames) {
    size_t count = 0;
    for (auto& [name, value] : weights) {
      check_name(name);
      std::string changed = std::regex_replace(name, each.pattern, each.replacement);
      count += changed != name;
      name = std::move(changed);
    }
    TERN_CHECK(count > 0, ValueError, "--rename '{}' changes no name", each.text);
    note(fmt::format("--rename '{}' changed {}", each.text, count_text(count, "name")));
  }
}

void check_distinct(const Weights& weights) {
  std::unordered_set<std::string_view> names;
  for (const auto& [name, value] : weights) {
    TERN_CHECK(!name.empty(), ValueError, "a tensor would have no name: --add-prefix NAME gives it one");
    TERN_CHECK(names.insert(name).second, ValueError, "two tensors would have the name '{}'", name);
  }
}

/// Floating-point tensors get the dtype; those that are one tensor stay one.
void convert_dtype(Weights& weights, DType dtype) {
  size_t converted = 0, infinite = 0;
  std::vector<std::string> left;
  std::unordered_map<std::string, Tensor> done;
  for (auto& [name, value] : weights) {
    if (!value.is_tensor() || !value.as_tensor().is_floating_point()) {
      if (io::stands_for_tensor(value)) left.push_back(name);
      continue;
    }
    const Tensor tensor = value.as_tensor();
    if (tensor.dtype() == dtype) continue;
    const std::string key = fmt::format("{} {} {} {} {}", static_cast<const void*>(tensor.storage().get()),
                                        tensor.storage_offset(), to_string(tensor.shape()),
                                        to_string(tensor.strides()), tern::name(tensor.dtype()));
    auto [known, added] = done.try_emplace(key);
    if (added) {
      known->second = tensor.detach().to(dtype);
      if (itemsize(dtype) < itemsize(tensor.dtype()) &&
          io::summarize_numbers(tensor).infinities < io::summarize_numbers(known->second).infinities)
        ++infinite;
    }
    value = known->second;
    ++converted;
  }
  note(fmt::format("{} converted to {}", count_text(converted, "tensor"), tern::name(dtype)));
  if (!left.empty()) note(fmt::format("not floating-point, left as is: {}", io::some_words(left)));
  if (infinite > 0)
    note(fmt::format("{} got infinities: numbers too large for {}", count_text(infinite, "tensor"),
                     tern::name(dtype)));
}

/// `dict` in the place from which the weights came, with everything else of the file.
Value put_back(const LoadedCheckpoint& loaded, const Value& dict) {
  Value parent, level = loaded.summary.root;
  for (const std::string& key : loaded.keys) {
    parent = level;
    level = *parent.find(key);
  }
  for (const auto& [key, value] : level.as_dict()) {
    if (io::is_module_entry(key, value)) continue;
    TERN_CHECK(!dict.contains(key), ValueError, "a tensor would have the name {} of another entry",
               key.str(100));
    dict.as_dict().set(key, value);
  }
  if (loaded.keys.empty()) return dict;
  parent.as_dict().set(loaded.keys.back(), dict);
  return loaded.summary.root;
}

int run(const ConvertOptions& options) {
  const std::vector<Rename> renames = parse_renames(options.renames);
  WriteOptions write;
  std::string out = options.out;
  std::error_code ignored;
  if (std::filesystem::is_directory(out, ignored) && !options.shard.empty())
    out = (std::filesystem::path(out) / "model.safetensors").string();
  write.format = output_format(out, options.format);
  if (!options.shard.empty()) {
    write.shard_bytes = parse_size(options.shard, "--shard");
    if (!options.format.empty() && options.format != "safetensors")
      throw_usage("--shard goes with safetensors, not with --to {}", options.format);
    write.format = "safetensors";
    if (std::filesystem::path(out).extension() != ".safetensors")
      throw_usage("--shard: the output must be a folder or end in .safetensors, got '{}'", out);
  }
  std::optional<DType> dtype;
  if (!options.dtype.empty()) {
    try {
      dtype = parse_dtype(options.dtype);
    } catch (const DTypeError& error) {
      throw_usage("--dtype: {}", error.what());
    }
    if (!is_floating_point(*dtype)) throw_usage("--dtype must be floating-point, got '{}'", options.dtype);
  }

  LoadedCheckpoint loaded =
      load_checkpoint(options.in, {.key = options.key, .extra_states = holds_trees(write.format)});
  Weights& weights = loaded.weights;
  const bool whole =
      holds_trees(write.format) && options.only.empty() &&
      (loaded.from_dict || (options.strip.empty() && options.add.empty() && renames.empty() && !dtype));
  const bool unchanged = whole && !loaded.from_dict;
  if (!unchanged) check_one_model(loaded, options.in);
  fmt::print("{}: {}, {}\n", shown(options.in), loaded.summary.format,
             count_text(tensor_count(weights), "tensor"));
  keep_only(weights, options.only);
  std::string strip = options.strip;
  strip_prefix(weights, strip);
  rename(weights, renames);
  if (!options.add.empty())
    for (auto& [name, value] : weights) name = options.add + name;
  if (!unchanged) check_distinct(weights);
  if (dtype) convert_dtype(weights, *dtype);

  const Value attributes = rename_metadata(loaded.attributes, strip, options.add);
  Value root;
  if (holds_trees(write.format)) {
    root = unchanged ? loaded.summary.root : weights_dict(weights, attributes);
    if (whole && !unchanged) root = put_back(loaded, root);
  }
  if (!whole && !loaded.rest.empty()) note("left out: " + io::some_words(loaded.rest));
  const std::string written = write_checkpoint(root, weights, out, write);
  fmt::print("{}: {}\n", shown(out), written);
  return 0;
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("convert", "Write a checkpoint in another format, with other names or dtype");
  auto options = std::make_shared<ConvertOptions>();
  command->add_option("in", options->in, "The checkpoint")->required();
  command->add_option("out", options->out, "The file to write")->required();
  command
      ->add_option("--to", options->format,
                   "pt, legacy, safetensors or npz; by default as the name of the file says")
      ->type_name("FORMAT");
  command
      ->add_option("--key", options->key,
                   "Where in the file the model is: its keys, joined by dots; '.': all tensors")
      ->type_name("KEY");
  command
      ->add_option("--strip-prefix", options->strip,
                   "Take PREFIX from the names; auto: that of a known wrapper")
      ->type_name("PREFIX");
  command->add_option("--add-prefix", options->add, "Put PREFIX before the names")->type_name("PREFIX");
  command
      ->add_option("--rename", options->renames,
                   "Replace what the regular expression matches ($1: its first group)")
      ->type_name("PATTERN=NEW")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--only", options->only,
                   "Keep tensors whose name has a match of one of the regular expressions")
      ->type_name("PATTERN")
      ->expected(1, -1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--dtype", options->dtype, "Convert floating-point tensors: float32, bf16, fp16, ...")
      ->type_name("DTYPE");
  command->add_option("--shard", options->shard, "Several files of at most this size, and an index (2GiB)")
      ->type_name("SIZE");
  command->footer(
      "Prefixes, names and dtypes are those of the model in the file; what else a .pt file has is kept.\n"
      "\nExamples:\n  tern convert model.pt model.safetensors --strip-prefix module.\n"
      "  tern convert old.pt new.pt --rename '^encoder\\.(\\d+)=layers.$1' --dtype bf16\n"
      "  tern convert big.pt folder/model.safetensors --shard 2GiB");
  command->callback([options, &action] {
    action = [options] { return with_errors("convert", [&] { return run(*options); }); };
  });
}

}  // namespace tern::cli
