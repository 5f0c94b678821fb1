// `tern merge` and `tern average`: several checkpoints into one.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/cli/checkpoint_file.h"
#include "tern/cli/checkpoint_text.h"
#include "tern/cli/command.h"
#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/io/save.h"
#include "tern/io/tensor_numbers.h"

namespace tern::cli {
namespace {

struct CombineOptions {
  std::vector<std::string> files;  ///< the last is the output, and may be one of those that are read
  std::string format, weights;
  bool override_names = false;
};

/// The entries of both `_metadata`; the later ones win.
Value joined_attributes(const Value& first, const Value& second) {
  if (!second.is_dict()) return first;
  if (!first.is_dict()) return second;
  const Value *a = first.find("_metadata"), *b = second.find("_metadata");
  if (!a || !b || !a->is_dict() || !b->is_dict()) return first;
  for (const auto& [key, value] : b->as_dict()) a->as_dict().set(key, value);
  return first;
}

LoadedCheckpoint load_model_of(const std::string& path) {
  LoadedCheckpoint loaded = load_checkpoint(path);
  check_one_model(loaded, path);
  fmt::print("{}: {}{}\n", shown(path), count_text(loaded.weights.size(), "tensor"),
             loaded.rest.empty() ? "" : fmt::format("; left out: {}", shown(some_names(loaded.rest))));
  return loaded;
}

/// CLI11 counts them for some policies of repeated options only. With fewer, the one to be written was
/// forgotten.
void check_count(const CombineOptions& options) {
  if (options.files.size() < 3)
    throw_usage("expected at least 3 files, the last of them to be written, got {}", options.files.size());
}

int run_merge(const CombineOptions& options) {
  check_count(options);
  const std::string out = options.files.back();
  const WriteOptions write = write_options_for(out, options.format);
  Weights merged;
  Value attributes;
  std::unordered_map<std::string, std::pair<size_t, std::string>> places;
  size_t replaced = 0;
  for (size_t f = 0; f + 1 < options.files.size(); ++f) {
    const std::string& path = options.files[f];
    const LoadedCheckpoint loaded = load_model_of(path);
    std::vector<std::string> twice;
    std::string before;
    for (const auto& [name, value] : loaded.weights) {
      auto [known, added] = places.try_emplace(name, merged.size(), path);
      if (added) {
        merged.emplace_back(name, value);
      } else {
        twice.push_back(name);
        before = known->second.second;
        merged[known->second.first].second = value;
        known->second.second = path;
      }
    }
    TERN_CHECK(twice.empty() || options.override_names, ValueError,
               "{} in '{}' and in '{}': {}; with --override the later file wins",
               twice.size() == 1 ? "a name is" : "names are", before, path, some_names(twice));
    replaced += twice.size();
    attributes = joined_attributes(attributes, loaded.attributes);
  }
  if (replaced > 0) fmt::print("  {} replaced by later ones\n", count_text(replaced, "tensor"));
  const std::string written = write_checkpoint(
      holds_trees(write.format) ? weights_dict(merged, attributes) : Value(), merged, out, write);
  fmt::print("{}: {}, {}\n", shown(out), count_text(merged.size(), "tensor"), written);
  return 0;
}

/// One for each file, with the sum 1.
std::vector<double> parse_weights(const std::string& text, size_t count) {
  std::vector<double> weights(count, 1.0 / static_cast<double>(count));
  if (text.empty()) return weights;
  const std::vector<std::string> parts = split(text, ',');
  if (parts.size() != count)
    throw_usage("--weights has {} numbers for {}", parts.size(), count_text(count, "file"));
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += weights[i] = parse_number(parts[i], "--weights");
  if (!(std::fabs(sum) > 1e-12) || !std::isfinite(sum))
    throw_usage("--weights have the sum {}, by which they cannot be divided", sum);
  if (std::fabs(sum - 1) > 1e-9) fmt::print("  weights have the sum {:.6g}: each is divided by it\n", sum);
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// The weighted sum of one tensor of several files, in float64.
struct Mean {
  std::string name;
  DType dtype;
  Tensor sum;  ///< of floating-point tensors
  Value last;  ///< of others
  bool agrees = true;
};

/// Of what is no dense tensor, whether it would be saved alike.
bool same_value(const Value& a, const Value& b) {
  if (a.is_tensor() && b.is_tensor() && io::has_numbers(a.as_tensor()) && io::has_numbers(b.as_tensor()))
    return a.as_tensor().dtype() == b.as_tensor().dtype() &&
           a.as_tensor().shape() == IntArrayRef(b.as_tensor().shape()) &&
           io::difference(a.as_tensor(), b.as_tensor()).different == 0;
  return save_to_buffer(a) == save_to_buffer(b);
}

void add_file(std::vector<Mean>& means, const LoadedCheckpoint& loaded, const std::string& path,
              double weight, bool first) {
  std::unordered_map<std::string, const Value*> values;
  for (const auto& [name, value] : loaded.weights) values.emplace(name, &value);
  if (!first) {
    std::vector<std::string> missing, extra;
    for (const Mean& mean : means)
      if (!values.contains(mean.name)) missing.push_back(mean.name);
    std::unordered_map<std::string, bool> known;
    for (const Mean& mean : means) known.emplace(mean.name, true);
    for (const auto& [name, value] : loaded.weights)
      if (!known.contains(name)) extra.push_back(name);
    TERN_CHECK(missing.empty(), ValueError, "'{}' has no {}", path, some_names(missing));
    TERN_CHECK(extra.empty(), ValueError, "'{}' has {}, which the first file has not", path,
               some_names(extra));
  } else {
    for (const auto& [name, value] : loaded.weights)
      means.push_back({name, value.is_tensor() ? value.as_tensor().dtype() : DType::UInt8, {}, {}, true});
  }
  for (Mean& mean : means) {
    const Value& value = *values.at(mean.name);
    const bool averaged = value.is_tensor() && value.as_tensor().is_floating_point();
    if (first && averaged) {
      Tensor wide = value.as_tensor().detach().to(float64, {.copy = true});
      mean.sum = wide.mul_(Scalar(weight));
    } else if (mean.sum.defined()) {
      TERN_CHECK(averaged && value.as_tensor().dtype() == mean.dtype, DTypeError,
                 "'{}' has dtype {} in the first file and {} in '{}'", mean.name, name(mean.dtype),
                 value.is_tensor() ? name(value.as_tensor().dtype()) : "another", path);
      const Tensor& tensor = value.as_tensor();
      TERN_CHECK(tensor.shape() == IntArrayRef(mean.sum.shape()), ShapeError,
                 "'{}' has shape {} in the first file and {} in '{}'", mean.name, to_string(mean.sum.shape()),
                 to_string(tensor.shape()), path);
      mean.sum.add_(tensor.detach().to(float64), Scalar(weight));
    } else {
      if (!first) {
        TERN_CHECK(!averaged, DTypeError, "'{}' is floating-point in '{}' only", mean.name, path);
        mean.agrees = mean.agrees && same_value(mean.last, value);
      }
      mean.last = value;
    }
  }
}

int run_average(const CombineOptions& options) {
  check_count(options);
  const NoGradGuard no_grad;
  const std::string out = options.files.back();
  const WriteOptions write = write_options_for(out, options.format);
  const size_t count = options.files.size() - 1;
  const std::vector<double> weights = parse_weights(options.weights, count);
  std::vector<Mean> means;
  Value attributes;
  for (size_t f = 0; f < count; ++f) {
    const LoadedCheckpoint loaded = load_model_of(options.files[f]);
    if (f == 0) attributes = loaded.attributes;
    add_file(means, loaded, options.files[f], weights[f], f == 0);
  }
  Weights result;
  std::vector<std::string> last;
  for (Mean& mean : means) {
    if (mean.sum.defined()) {
      result.emplace_back(mean.name, mean.sum.to(mean.dtype));
      mean.sum = {};
      continue;
    }
    if (!mean.agrees) last.push_back(mean.name);
    result.emplace_back(mean.name, mean.last);
  }
  if (!last.empty())
    fmt::print(
        "  no dense floating-point tensors and not the same in all files, so taken from the last: {}\n",
        shown(some_names(last)));
  const std::string written = write_checkpoint(
      holds_trees(write.format) ? weights_dict(result, attributes) : Value(), result, out, write);
  fmt::print("{}: the mean of {}, {}\n", shown(out), count_text(count, "file"), written);
  return 0;
}

CLI::App* add_command(CLI::App& app, const char* name, const char* what, CombineOptions& options) {
  CLI::App* command = app.add_subcommand(name, what);
  command
      ->add_option("files", options.files,
                   "The checkpoints, then the file to write; '-': standard input, standard output")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--to", options.format,
                   "pt, legacy, safetensors or npz; by default as the name of the output says")
      ->type_name("FORMAT");
  return command;
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  auto options = std::make_shared<CombineOptions>();
  CLI::App* command = add_command(app, "merge", "Join the tensors of several checkpoints", *options);
  command->add_flag("--override", options->override_names,
                    "Where a name is in several files, the later one wins");
  command->footer(
      "Examples:\n  tern merge encoder.pt decoder.safetensors model.pt\n"
      "  tern merge base.pt finetuned_head.pt model.pt --override");
  command->callback([options, &action] {
    action = [options] { return with_errors("merge", [&] { return run_merge(*options); }); };
  });
}

void add_average(CLI::App& app, Action& action) {
  auto options = std::make_shared<CombineOptions>();
  CLI::App* command = add_command(app, "average", "Average the tensors of several checkpoints", *options);
  command->add_option("--weights", options->weights, "How much each file counts; by default all the same")
      ->type_name("W1,W2,...");
  command->footer(
      "Floating-point tensors are averaged in float64. Others must be the same; else the last file's is "
      "taken.\n"
      "\nExamples:\n  tern average epoch8.pt epoch9.pt epoch10.pt mean.pt\n"
      "  tern average a.pt b.pt c.safetensors --weights 0.3,0.7");
  command->callback([options, &action] {
    action = [options] { return with_errors("average", [&] { return run_average(*options); }); };
  });
}

}  // namespace tern::cli
