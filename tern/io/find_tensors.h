// Where the tensors of a checkpoint are: every tensor in a tree of values with its dotted path, the state
// dict among them, the prefix of a wrapper. Reading of files is in summary.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/io/value.h"

namespace tern::io {

enum class TensorKind : uint8_t { Tensor, Parameter, Array, Storage, Quantized, Sparse, Meta };
std::string_view name(TensorKind kind) noexcept;

/// A tensor, or what stands for one: an array, a storage, the parts of a sparse tensor.
struct FoundTensor {
  std::string path;  ///< keys and positions joined by dots, from the root
  TensorKind kind = TensorKind::Tensor;
  Value value;
  Tensor tensor;      ///< its numbers, where they are one strided tensor; of packed ones the bytes
  std::string dtype;  ///< "float32"; of other arrays NumPy's name ("str96", "datetime64", "object")
  std::vector<int64_t> shape;
  std::vector<int64_t> stride;  ///< in elements; empty where there is none
  int64_t offset = 0;           ///< in elements, from the begin of the storage
  uint64_t nbytes = 0;          ///< of its elements; of a sparse tensor, of its parts
  std::vector<Tensor> parts;    ///< of a sparse tensor: indices and values
};

/// What stands for the key of a dict's entry in a path: the text itself, Python's text of other values, and
/// for a tensor (the state of an optimizer that was saved whole has parameters as keys) the entry's position.
std::string key_text(const Value& key, size_t position);

/// All tensors in the order of the tree; one that is in it twice comes twice. Members of sets and of arrays
/// of objects are numbered; tensors that are keys are not looked at. The state of an object of an
/// unknown class counts as its own entries, the arguments of its constructor stand under `__args__`, a state
/// that is no dict under `__state__`. Throws CheckpointError when the tree, walked through, has more than
/// `max_values` values.
std::vector<FoundTensor> find_tensors(const Value& root, size_t max_values = 5'000'000);

/// True for a tensor, and for an object that stands for one: a parameter, an array, a sparse tensor.
bool stands_for_tensor(const Value& value);

/// A dict of names and tensors inside a checkpoint.
struct FoundStateDict {
  std::vector<std::string> keys;  ///< the way from the root to it; empty for the root itself
  Value dict;
};

/// The dicts that may be the model: one, or several where nothing tells which, or none where no dict holds a
/// tensor under a name. Looked at are the root and the dicts in it, two levels deep, but those of optimizers.
/// One whose tensors have names with dots ("fc.weight") comes before one whose have not; then what a usual
/// key holds ("state_dict", "model") before the root, the root before what is under other keys. Beside a
/// whole model (module_tree.h) only a usual key or the root counts, with dots.
std::vector<FoundStateDict> find_state_dicts(const Value& root);
/// The model, where only one of the dicts may be it.
std::optional<FoundStateDict> find_state_dict(const Value& root);

/// Whether an entry of a state dict is a module's, so that its name changes with the names of tensors: a
/// tensor, `_extra_state`, whatever has a name with dots. Others ("epoch") were put beside them.
bool is_module_entry(const Value& key, const Value& value);

/// The prefixes of wrappers ("module.", "_orig_mod.", "model.") that all names begin with, outermost first,
/// joined; "" when there is none.
std::string wrapper_prefix(const std::vector<std::string>& names);

}  // namespace tern::io
