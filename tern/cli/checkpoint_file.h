// From a checkpoint file to the names and tensors of the model in it, and back into a file of any format that
// can be written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tern/cli/output.h"
#include "tern/io/summary.h"

namespace tern::cli {

/// Names with tensors, or with what stands for one (a sparse tensor, a quantized one).
using Weights = std::vector<std::pair<std::string, Value>>;

struct LoadedCheckpoint {
  io::Summary summary;            ///< with the numbers
  Weights weights;                ///< of the model
  std::vector<std::string> keys;  ///< the way from the root to the dict that holds them
  bool from_dict = false;         ///< they are in that dict; else of modules, or all tensors there are
  bool is_nested = false;         ///< they are all that is in it, also in the containers inside it
  bool from_module = false;       ///< they are a whole model's, which is still one in `summary.root`
  Value attributes;               ///< of that dict (`_metadata`)
  std::vector<std::string> rest;  ///< what else the file has beside the model, by keys
  size_t outside = 0;             ///< tensors of the file beside `weights`
  /// Of them, those of whole models that no state dict has; they are not in `summary.root` any more.
  size_t dropped = 0;
  /// Where nothing tells which tensors are the model: what check_one_model says. All are the weights then.
  std::string doubt;
};

struct ModelOptions {
  /// The keys of the model, joined by dots; ".": all tensors of the file by their full names. Empty: the dict
  /// that io::find_state_dict finds, or a whole model, or all tensors.
  std::string key = {};
  bool state_dicts = false;  ///< whole models become their state dicts, in `summary.root` too
  /// `weights` has what a dict of PyTorch's can hold: modules' entries that are no tensors (`_extra_state`),
  /// and arrays as they are.
  bool any_values = false;
};

/// The file that a command line names; "-" is what comes on standard input, which is read once, up to its
/// end. Throws IoError, also where that is a terminal.
std::shared_ptr<const io::ByteSource> open_input(const std::string& path);
/// io::summarize_file for what a command line names.
io::Summary summarize_input(const std::string& path, const io::SummaryOptions& options);

/// What is in a file, with the numbers. Throws IoError, CheckpointError; the latter also for a file that
/// would run code in Python.
io::Summary load_summary(const std::string& path);
/// The model in a file. Throws as load_summary, CheckpointError also for a key that is not there.
LoadedCheckpoint load_checkpoint(const std::string& path, const ModelOptions& options = {});
/// Throws CheckpointError where nothing tells which tensors are the model.
void check_one_model(const LoadedCheckpoint& loaded, const std::string& path);

/// How many of `weights` are tensors or stand for one.
size_t tensor_count(const Weights& weights);

/// Puts the values of `after` in the places of those of `before` with the same position, wherever in the tree
/// they are.
void replace_weights(Value& root, const Weights& before, const Weights& after);

/// The versions of modules (`_metadata`) with their paths changed like the names of tensors by taking away
/// `strip` and putting `add` before.
Value rename_metadata(const Value& attributes, const std::string& strip, const std::string& add);

/// An OrderedDict of `weights` with these attributes.
Value weights_dict(const Weights& weights, const Value& attributes);

struct WriteOptions {
  std::string format;        ///< "pt", "legacy", "safetensors", "npz"
  uint64_t shard_bytes = 0;  ///< above 0: safetensors in shards of at most so many bytes
  bool compact = false;      ///< see SaveOptions
  /// Where the bytes go instead of a file.
  std::shared_ptr<const BinaryOutput> standard_output = {};
};

/// The format of `--to`, or without it that of the file's name. Throws UsageError for an unknown one, for a
/// name that promises another, and without `--to` for one that promises a format that is not written.
std::string output_format(const std::string& path, const std::string& format);

/// output_format for a path, of which "-" is standard output: what is printed goes to standard error then.
WriteOptions write_options_for(const std::string& path, const std::string& format);

/// True for PyTorch's formats, which hold any tree of values; the others hold tensors by name.
bool holds_trees(const std::string& format);

/// Writes `root` as PyTorch file or `weights` in another format, safely: the old file stays on failure.
/// Returns what was written, in words.
std::string write_checkpoint(const Value& root, const Weights& weights, const std::string& path,
                             const WriteOptions& options);

}  // namespace tern::cli
