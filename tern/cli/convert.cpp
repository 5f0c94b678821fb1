// `tern convert`: a checkpoint into another format, with other names, dtypes and parts.
#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "tern/base/check.h"
#include "tern/cli/checkpoint_file.h"
#include "tern/cli/checkpoint_text.h"
#include "tern/cli/command.h"
#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/io/file.h"
#include "tern/io/tensor_numbers.h"
#include "tern/io/utf8.h"
#include "tern/io/word_list.h"
#include "tern/train/terminal.h"

namespace tern::cli {
namespace {

/// Of RE2, whose time grows with the length of the text alone: names come from files that may be hostile.
using Pattern = std::shared_ptr<const RE2>;

struct Rename {
  Pattern pattern;
  std::string replacement;
  std::string text;
};

struct ConvertOptions {
  std::string in, out, format, key, strip, add, dtype, shard;
  std::vector<std::string> renames, only;
  bool compact = false;

  /// Names are changed or taken out, for which they must be those of one dict.
  bool change_names() const { return !strip.empty() || !add.empty() || !renames.empty() || !only.empty(); }
};

Pattern parse_pattern(const std::string& text, std::string_view option) {
  RE2::Options quiet;
  quiet.set_log_errors(false);
  auto pattern = std::make_shared<const RE2>(text, quiet);
  if (!pattern->ok()) throw_usage("{}: '{}' is no regular expression: {}", option, text, pattern->error());
  return pattern;
}

/// RE2's form of what is put for a match: \1 for $1. "$&" is the match, "$$" a dollar.
std::string rewrite_of(std::string_view text) {
  std::string rewrite;
  for (size_t at = 0; at < text.size(); ++at) {
    const char next = text[at] == '$' && at + 1 < text.size() ? text[at + 1] : ' ';
    if (text[at] == '\\')
      rewrite += "\\\\";
    else if (next == '&' || (next >= '0' && next <= '9'))
      rewrite += {'\\', next == '&' ? '0' : next};
    else
      rewrite += text[at];
    at += next == '$' || next == '&' || (next >= '0' && next <= '9');
  }
  return rewrite;
}

std::vector<Rename> parse_renames(const std::vector<std::string>& texts) {
  std::vector<Rename> renames;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      throw_usage("--rename must be PATTERN=NEW, got '{}'", text);
    renames.push_back(
        {parse_pattern(text.substr(0, equals), "--rename"), rewrite_of(text.substr(equals + 1)), text});
    if (std::string error; !renames.back().pattern->CheckRewriteString(renames.back().replacement, &error))
      throw_usage("--rename '{}': the pattern has no such group", text);
  }
  return renames;
}

void note(const std::string& text) { fmt::print("  {}\n", shown(text)); }

void keep_only(Weights& weights, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  std::vector<Pattern> patterns;
  for (const std::string& text : texts) patterns.push_back(parse_pattern(text, "--only"));
  const size_t before = tensor_count(weights);
  std::erase_if(weights, [&](const auto& entry) {
    return std::ranges::none_of(
        patterns, [&](const Pattern& pattern) { return RE2::PartialMatch(entry.first, *pattern); });
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
      const std::string before = name;
      RE2::GlobalReplace(&name, *each.pattern, each.replacement);
      count += name != before;
    }
    TERN_CHECK(count > 0, ValueError, "--rename '{}' changes no name", each.text);
    note(fmt::format("--rename '{}' changed {}", each.text, count_text(count, "name")));
  }
}

void check_names(const Weights& weights, const std::string& format) {
  std::unordered_set<std::string_view> names;
  for (const auto& [name, value] : weights) {
    TERN_CHECK(!name.empty() || holds_trees(format), ValueError,
               "a tensor would have no name: --add-prefix NAME gives it one");
    TERN_CHECK(io::is_utf8(name, /*surrogates=*/holds_trees(format)), ValueError,
               "a tensor would have the name '{}', which is not UTF-8", name);
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
    const std::string key =
        fmt::format("{} {} {} {} {} {}", static_cast<const void*>(tensor.storage().get()),
                    tensor.storage_offset(), to_string(tensor.shape()), to_string(tensor.strides()),
                    tern::name(tensor.dtype()), tensor.requires_grad());
    auto [known, added] = done.try_emplace(key);
    if (added) {
      known->second = tensor.detach().to(dtype).requires_grad_(tensor.requires_grad());
      if (itemsize(dtype) < itemsize(tensor.dtype()) &&
          io::summarize_numbers(tensor).infinities < io::summarize_numbers(known->second).infinities)
        ++infinite;
    }
    value = known->second;
    ++converted;
  }
  note(fmt::format("{} converted to {}", count_text(converted, "tensor"), tern::name(dtype)));
  if (!left.empty())
    note(fmt::format("no floating-point tensors, left as they are: {}", io::some_words(left)));
  if (infinite > 0)
    note(fmt::format("{} got infinities: numbers too large for {}", count_text(infinite, "tensor"),
                     tern::name(dtype)));
}

/// The file's tree with the weights in the place from which they came, and everything else in its order.
Value put_back(const LoadedCheckpoint& loaded, const Value& attributes) {
  Value parent, level = loaded.summary.root;
  for (const std::string& key : loaded.keys) {
    parent = level;
    level = *parent.find(key);
  }
  Value dict = weights_dict(loaded.weights, attributes);
  if (!loaded.is_nested) {
    dict = level.as_dict().is_ordered_dict() ? Value::ordered_dict() : Value::dict();
    dict.as_dict().set_attributes(attributes);
    auto weight = loaded.weights.begin();
    for (const auto& [key, value] : level.as_dict()) {
      const bool is_module_entry = io::is_module_entry(key, value);
      const Value name = is_module_entry ? Value(weight->first) : key;
      TERN_CHECK(!dict.contains(name), ValueError, "a tensor would have the name {} of another entry",
                 name.str(100));
      dict.as_dict().set(name, is_module_entry ? weight++->second : value);
    }
  }
  if (loaded.keys.empty()) return dict;
  parent.as_dict().set(loaded.keys.back(), dict);
  return loaded.summary.root;
}

void note_dropped(size_t count) {
  if (count > 0)
    note(fmt::format("left out: {} of a whole model that no state dict has", count_text(count, "tensor")));
}

/// What is not in the file that is written.
void note_left_out(const LoadedCheckpoint& loaded) {
  if (loaded.rest.empty()) return note_dropped(loaded.outside);
  std::string text = "left out: " + io::some_words(loaded.rest);
  if (loaded.outside > 0) text += fmt::format(" ({})", count_text(loaded.outside, "tensor"));
  note(text);
}

/// What of the file is as it was, beside a model that was changed.
void note_kept(const LoadedCheckpoint& loaded) {
  if (loaded.outside > loaded.dropped)
    note(fmt::format("kept beside the model, as it was: {}",
                     count_text(loaded.outside - loaded.dropped, "tensor")));
}

DType parse_float(const std::string& text) {
  DType dtype{};
  try {
    dtype = parse_dtype(text);
  } catch (const DTypeError& error) {
    throw_usage("--dtype: {}", error.what());
  }
  if (tern::name(dtype).starts_with("float") && !is_floating_point(dtype))
    throw_usage(
        "--dtype: converting to {} is not supported; possible are float64, float32, float16, bfloat16",
        tern::name(dtype));
  if (!is_floating_point(dtype)) throw_usage("--dtype must be floating-point, got '{}'", text);
  return dtype;
}

/// The file to write; with --shard a folder may be given.
std::string path_of_output(const ConvertOptions& options) {
  std::error_code ignored;
  const bool is_folder = !options.shard.empty() && std::filesystem::is_directory(options.out, ignored);
  return is_folder ? (std::filesystem::path(options.out) / "model.safetensors").string() : options.out;
}

WriteOptions write_options(const ConvertOptions& options, const std::string& out) {
  WriteOptions write = write_options_for(out, options.format);
  write.compact = options.compact;
  if (options.shard.empty()) return write;
  write.shard_bytes = parse_size(options.shard, "--shard");
  if (!options.format.empty() && options.format != "safetensors")
    throw_usage("--shard goes with safetensors, not with --to {}", options.format);
  if (io::lower_extension(out) != ".safetensors")
    throw_usage("--shard: the output must be a folder or end in .safetensors, got '{}'", out);
  return write;
}

int run(ConvertOptions options) {
  const std::vector<Rename> renames = parse_renames(options.renames);
  const std::string out = path_of_output(options);
  const WriteOptions write = write_options(options, out);
  std::optional<DType> dtype;
  if (!options.dtype.empty()) dtype = parse_float(options.dtype);
  const bool trees = holds_trees(write.format);

  LoadedCheckpoint loaded =
      load_checkpoint(options.in, {.key = options.key, .state_dicts = true, .any_values = trees});
  Weights& weights = loaded.weights;
  const bool copies = trees && !options.change_names() && !dtype && !loaded.from_module &&
                      (tensor_count(weights) > 0 || loaded.dropped == 0);
  if (!copies) {
    check_one_model(loaded, options.in);
    TERN_CHECK(tensor_count(weights) > 0, ValueError, "'{}' has no tensors", options.in);
  }
  fmt::print("{}: {}, {}\n", shown(options.in), loaded.summary.format,
             count_text(tensor_count(weights), "tensor"));
  keep_only(weights, options.only);
  strip_prefix(weights, options.strip);
  rename(weights, renames);
  if (!options.add.empty())
    for (auto& [name, value] : weights) name = options.add + name;
  const bool keeps_tree = trees && !options.change_names() && !loaded.from_module;
  if (!keeps_tree) check_names(weights, write.format);
  const Weights before = weights;
  if (dtype) convert_dtype(weights, *dtype);

  const Value attributes = rename_metadata(loaded.attributes, options.strip, options.add);
  const bool keeps_rest = keeps_tree || (trees && loaded.from_dict && options.only.empty());
  Value root;
  if (keeps_tree) {
    root = loaded.summary.root;
    replace_weights(root, before, weights);
  } else if (trees) {
    root = keeps_rest ? put_back(loaded, attributes) : weights_dict(weights, attributes);
  }
  if (keeps_rest)
    note_dropped(loaded.dropped);
  else
    note_left_out(loaded);
  if (keeps_rest && !copies) note_kept(loaded);
  const std::string written = write_checkpoint(root, weights, out, write);
  fmt::print("{}: {}\n", shown(out), written);
  return 0;
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("convert", "Write a checkpoint in another format, with other names or dtype");
  auto options = std::make_shared<ConvertOptions>();
  command->add_option("in", options->in, "The checkpoint; '-': standard input")->required();
  command->add_option("out", options->out, "The file to write; '-': standard output")->required();
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
                   "Replace what the regular expression matches ($1: its first group); may be given several "
                   "times")
      ->type_name("PATTERN=NEW")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option(
          "--only", options->only,
          "Keep tensors whose name has a match of the regular expression; may be given several times")
      ->type_name("PATTERN")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--dtype", options->dtype, "Convert floating-point tensors: float32, bf16, fp16, ...")
      ->type_name("DTYPE");
  command
      ->add_option("--shard", options->shard,
                   "Several safetensors files of at most SIZE, such as 2GiB or 5GB, and their index; OUT is "
                   "a folder or ends in .safetensors")
      ->type_name("SIZE");
  command->add_flag("--compact", options->compact,
                    "Without what no tensor uses of its storage (safetensors and npz never have that)");
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
