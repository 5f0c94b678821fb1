// Walking through a tree of values in search of tensors.
#include "tern/io/find_tensors.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_set>

#include "tern/base/check.h"
#include "tern/io/module_tree.h"
#include "tern/io/numpy_types.h"
#include "tern/io/pickle_globals.h"
#include "tern/io/tensor_kinds.h"

namespace tern::io {

namespace {

std::vector<int64_t> list_of(IntArrayRef sizes) { return {sizes.begin(), sizes.end()}; }

/// NumPy's name of a dtype that no DType is: "str64", "bytes16", "datetime64", "object", "void", "float128".
std::string array_dtype(const Value& dtype) {
  if (!dtype.is_object() || !dtype.as_object().args.is_tuple() || dtype.as_object().args.length() == 0)
    return "unknown";
  if (dtype.as_object().callee.kind() == ValueKind::Global &&
      dtype.as_object().callee.as_global().name == "_convert_to_stringdtype_kwargs")
    return "StringDType128";
  const Value& code_value = dtype.as_object().args.as_tuple()[0];
  const auto with_bits = [](const char* word, const Value& nbytes) {
    return fmt::format("{}{}", word, 8 * std::clamp<int64_t>(nbytes.as_int(), 0, 1 << 30));
  };
  // Of records the state tells the size: (version, order, base, names, fields, size, ...).
  const Value& state = dtype.as_object().state;
  if (code_value.kind() == ValueKind::Global && state.is_tuple() && state.length() > 5 &&
      state.as_tuple()[5].kind() == ValueKind::Int)
    return with_bits("record", state.as_tuple()[5]);
  if (code_value.is_dict())
    if (const Value* size = code_value.find("itemsize"); size && size->kind() == ValueKind::Int)
      return with_bits("void", *size);
  if (!code_value.is_str()) return "unknown";
  const std::string_view code = without_byte_order(code_value.as_str());
  if (code.empty()) return "unknown";
  int64_t width = 0;
  for (char c : code.substr(1))
    width = c >= '0' && c <= '9' && width < 1'000'000'000 ? width * 10 + (c - '0') : width;
  switch (code[0]) {
    case 'U':
      return fmt::format("str{}", 32 * width);
    case 'S':
    case 'a':
      return fmt::format("bytes{}", 8 * width);
    case 'M':
      return "datetime64";
    case 'm':
      return "timedelta64";
    case 'O':
      return "object";
    case 'V':
      return fmt::format("void{}", 8 * width);
    case 'f':
      return fmt::format("float{}", 8 * width);
    case 'c':
      return fmt::format("complex{}", 8 * width);
    default:
      return std::string(code);
  }
}

class Finder {
 public:
  explicit Finder(size_t max_values) : left_(max_values), max_values_(max_values) {}

  void walk(const Value& value) {
    TERN_CHECK(left_-- > 0, CheckpointError,
               "the tree has more than {} values when shared ones are counted each time", max_values_);
    switch (value.kind()) {
      case ValueKind::Tensor:
        add_tensor(value, value.as_tensor(), TensorKind::Tensor);
        return;
      case ValueKind::RawStorage:
        add_storage(value);
        return;
      case ValueKind::List:
      case ValueKind::Tuple:
      case ValueKind::Dict:
      case ValueKind::Set:
      case ValueKind::FrozenSet:
      case ValueKind::Object:
        break;
      default:
        return;
    }
    // A container that is inside itself is not entered again.
    if (!open_.insert(value.identity()).second) return;
    if (value.is_dict())
      walk_dict(value);
    else if (value.is_object())
      walk_object(value);
    else if (value.kind() == ValueKind::Set || value.kind() == ValueKind::FrozenSet)
      walk_members(value.as_set());
    else
      walk_items(value.as_sequence());
    open_.erase(value.identity());
  }

  std::vector<FoundTensor> found;

 private:
  /// Walks `value` at the path of one more step.
  void step(std::string_view part, const Value& value) {
    const size_t length = path_.size();
    const bool had_parts = has_parts_;
    if (has_parts_) path_ += '.';
    path_ += part;
    has_parts_ = true;
    walk(value);
    path_.resize(length);
    has_parts_ = had_parts;
  }
  void walk_items(const std::vector<Value>& items) {
    for (size_t i = 0; i < items.size(); ++i) step(std::to_string(i), items[i]);
  }
  void walk_members(const ValueDict& members) {
    size_t position = 0;
    for (const auto& entry : members) step(std::to_string(position++), entry.key);
  }
  /// The entries of a dict, or of what is like one.
  template <class Entries>
  void walk_entries(const Entries& entries) {
    size_t position = 0;
    for (const auto& [key, entry] : entries) step(key_text(key, position++), entry);
  }
  void walk_dict(const Value& value) {
    const ValueDict& dict = value.as_dict();
    walk_entries(dict);
    if (dict.attributes().is_dict()) walk_entries(dict.attributes().as_dict());
  }

  /// A state as pickle gives it: a dict of attributes, or a pair of one for __dict__ and one for __slots__.
  void walk_state(const Value& state) {
    if (state.is_none()) return;
    if (state.is_dict()) {
      walk_entries(state.as_dict());
      return;
    }
    if (state.is_tuple() && state.length() == 2) {
      const std::vector<Value>& pair = state.as_tuple();
      if ((pair[0].is_none() || pair[0].is_dict()) && pair[1].is_dict()) {
        walk_state(pair[0]);
        walk_state(pair[1]);
        return;
      }
    }
    step("__state__", state);
  }

  void walk_object(const Value& value) {
    const ValueObject& object = value.as_object();
    const GlobalRow* row = row_of(object.callee);
    if (row && row->module.starts_with("numpy")) {
      add_array(value);
      return;
    }
    const std::string_view function = row ? row->name : std::string_view();
    if (object.payload.is_tensor()) {
      const bool quantized = function == "_rebuild_qtensor";
      const bool parameter = function.starts_with("_rebuild_parameter") || is_parameter_class(object);
      add_tensor(value, object.payload.as_tensor(),
                 quantized   ? TensorKind::Quantized
                 : parameter ? TensorKind::Parameter
                             : TensorKind::Tensor);
      const bool attributes =
          object.state.is_dict() || (object.state.is_tuple() && object.state.length() == 2);
      if (!quantized && attributes) walk_state(object.state);
      return;
    }
    if (function == "_rebuild_sparse_tensor" || function == "_rebuild_sparse_csr_tensor") {
      add_sparse(value);
    } else if (function == "_rebuild_meta_tensor_no_storage") {
      add_meta(value);
    } else if (function == "_rebuild_qtensor") {
      add_packed(value);
    } else if (function == "_rebuild_parameter" || function == "_rebuild_from_type_v2" ||
               function == "_rebuild_parameter_with_state") {
      // Of a sparse or quantized tensor, or of one that has its numbers in tensors of its own.
      if (object.payload.is_object()) walk(object.payload);
      for (const Value& argument : object.args.as_tuple())
        if (argument.is_object()) walk(argument);
      walk_state(object.state);
    } else {
      if (object.args.is_tuple() && object.args.length() > 0) step("__args__", object.args);
      if (!object.kwargs.is_none()) step("__kwargs__", object.kwargs);
      walk_items(object.items);
      walk_entries(object.entries);
      walk_state(object.state);
    }
  }

  static bool is_parameter_class(const ValueObject& object) {
    // _rebuild_from_type_v2(function, class, arguments, state)
    if (!object.args.is_tuple() || object.args.length() < 2) return false;
    const Value& type = object.args.as_tuple()[1];
    return type.kind() == ValueKind::Global && type.as_global().module == "torch.nn.parameter";
  }

  FoundTensor& add(const Value& value, TensorKind kind) {
    FoundTensor& entry = found.emplace_back();
    entry.path = path_;
    entry.kind = kind;
    entry.value = value;
    return entry;
  }
  void add_tensor(const Value& value, const Tensor& tensor, TensorKind kind) {
    if (!tensor.defined()) return;
    if (kind == TensorKind::Tensor && tensor.requires_grad()) kind = TensorKind::Parameter;
    describe(add(value, kind), tensor);
  }
  static void describe(FoundTensor& entry, const Tensor& tensor) {
    entry.tensor = tensor;
    entry.dtype = name(tensor.dtype());
    entry.shape = list_of(tensor.shape());
    entry.stride = list_of(tensor.strides());
    entry.offset = tensor.storage_offset();
    entry.nbytes = tensor.nbytes();
  }
  void add_storage(const Value& value) {
    const StorageValue& held = value.as_storage();
    describe(add(value, TensorKind::Storage),
             Tensor::from_storage(held.storage, held.dtype, {held.numel}, {1}, held.offset));
  }
  /// A NumPy array. Scalars and dtypes are no tensors.
  void add_array(const Value& value) {
    const ValueObject& object = value.as_object();
    if (object.payload.is_tensor()) {
      describe(add(value, TensorKind::Array), object.payload.as_tensor());
      return;
    }
    if (!object.has_state || !object.state.is_tuple() || object.state.length() < 4) return;
    const std::vector<Value>& state = object.state.as_tuple();
    const size_t first = state.size() - 4;
    if (!state[first].is_tuple() && !state[first].is_list()) return;
    FoundTensor& entry = add(value, TensorKind::Array);
    entry.dtype = array_dtype(state[first + 1]);
    for (const Value& size : state[first].as_sequence()) entry.shape.push_back(size.as_int());
    if (state[first + 3].is_list()) walk_items(state[first + 3].as_list());
  }
  void add_sparse(const Value& value) {
    const std::vector<Value>& args = value.as_object().args.as_tuple();
    const std::vector<Value>& parts = args[1].as_sequence();
    FoundTensor& entry = add(value, TensorKind::Sparse);
    for (const Value& part : parts) {
      if (part.is_tensor()) {
        entry.parts.push_back(part.as_tensor());
        entry.dtype = name(part.as_tensor().dtype());  // the values come last
        entry.nbytes += part.as_tensor().nbytes();
      } else if (entry.shape.empty() &&
                 (part.is_tuple() || part.kind() == ValueKind::Size || part.is_list())) {
        for (const Value& size : part.as_sequence()) entry.shape.push_back(size.as_int());
      }
    }
  }
  void add_meta(const Value& value) {
    const std::vector<Value>& args = value.as_object().args.as_tuple();
    FoundTensor& entry = add(value, TensorKind::Meta);
    entry.dtype =
        args[0].kind() == ValueKind::DType ? std::string(name(args[0].as_dtype())) : args[0].str(60);
    for (const Value& size : args[1].as_sequence()) entry.shape.push_back(size.as_int());
    for (const Value& step : args[2].as_sequence()) entry.stride.push_back(step.as_int());
  }
  /// A quantized tensor with several numbers in a byte: its numbers are the bytes, as int_repr() gives them.
  void add_packed(const Value& value) {
    const std::vector<Value>& args = value.as_object().args.as_tuple();
    const StorageValue& held = args[0].as_storage();
    FoundTensor& entry = add(value, TensorKind::Quantized);
    entry.dtype = name(held.dtype);
    int64_t numel = 1;
    for (const Value& size : args[2].as_sequence()) {
      entry.shape.push_back(size.as_int());
      numel *= size.as_int();
    }
    for (const Value& step : args[3].as_sequence()) entry.stride.push_back(step.as_int());
    const int64_t packed = numbers_per_byte(args[0]), count = (numel + packed - 1) / packed;
    entry.nbytes = static_cast<uint64_t>(count);
    entry.tensor = Tensor::from_storage(held.storage, DType::UInt8, {count}, {1},
                                        held.offset + args[1].as_int() / packed);
  }

  size_t left_;
  size_t max_values_;
  std::string path_;
  bool has_parts_ = false;
  std::unordered_set<const void*> open_;
};

constexpr std::string_view kStateDictKeys[] = {"state_dict", "model_state_dict", "model_state", "model",
                                               "net",        "network",          "module",      "params_ema",
                                               "params",     "weights"};
constexpr std::string_view kPrefixes[] = {"module.",          "_orig_mod.", "_fsdp_wrapped_module.",
                                          "_forward_module.", "model.",     "net."};

/// Looks for the dict that is the model. What is found in one dict are dicts that are equally good: one, or
/// several between which nothing decides.
class StateDictSearch {
 public:
  std::vector<FoundStateDict> search(const Value& dict, int depth = 0) {
    // A dict that is in several places counts at the first, and is not looked for inside itself.
    if (seen_[depth].contains(dict.identity())) return {};
    for (int each = depth; each <= kMaxDepth; ++each) seen_[each].insert(dict.identity());
    std::vector<std::vector<FoundStateDict>> groups;  // the better ones first
    if (depth < kMaxDepth)
      for (std::string_view key : kStateDictKeys)
        if (const Value* entry = dict.find(key); entry && entry->is_dict())
          groups.push_back(below(key, *entry, depth));
    if (std::any_of(dict.as_dict().begin(), dict.as_dict().end(), is_named_tensor))
      groups.push_back({{{}, dict}});
    // Beside a whole model only what clearly is one counts.
    const bool has_module = std::any_of(dict.as_dict().begin(), dict.as_dict().end(),
                                        [](const auto& entry) { return is_module_object(entry.value); });
    std::vector<FoundStateDict>& others = groups.emplace_back();
    if (depth < kMaxDepth && !has_module)
      for (const auto& [key, entry] : dict.as_dict())
        if (key.is_str() && entry.is_dict() && !key.as_str().starts_with("optim"))
          std::ranges::move(below(key.as_str(), entry, depth), std::back_inserter(others));
    for (std::vector<FoundStateDict>& group : groups) {
      std::vector<FoundStateDict> dotted;
      std::ranges::copy_if(group, std::back_inserter(dotted), has_dotted_names);
      if (!dotted.empty()) return dotted;
    }
    for (std::vector<FoundStateDict>& group : groups)
      if (!group.empty() && !has_module) return std::move(group);
    return {};
  }

 private:
  static constexpr int kMaxDepth = 2;

  std::vector<FoundStateDict> below(std::string_view key, const Value& dict, int depth) {
    std::vector<FoundStateDict> found = search(dict, depth + 1);
    for (FoundStateDict& each : found) each.keys.emplace(each.keys.begin(), key);
    return found;
  }
  static bool is_named_tensor(const ValueDict::Entry& entry) {
    return entry.key.is_str() && stands_for_tensor(entry.value);
  }
  static bool has_dotted_names(const FoundStateDict& found) {
    const ValueDict& dict = found.dict.as_dict();
    return std::any_of(dict.begin(), dict.end(), [](const ValueDict::Entry& entry) {
      return is_named_tensor(entry) && entry.key.as_str().find('.') != std::string::npos;
    });
  }

  std::unordered_set<const void*> seen_[kMaxDepth + 1];
};

}  // namespace

std::string_view name(TensorKind kind) noexcept {
  constexpr std::array<std::string_view, 7> kNames = {"tensor",    "parameter", "array", "storage",
                                                      "quantized", "sparse",    "meta"};
  return kNames[static_cast<size_t>(kind)];
}

std::string key_text(const Value& key, size_t position) {
  if (key.is_str()) return key.as_str();
  const bool is_tensor = key.is_tensor() || (key.is_object() && stands_for_tensor(key));
  return is_tensor ? std::to_string(position) : key.str(200);
}

std::vector<FoundTensor> find_tensors(const Value& root, size_t max_values) {
  Finder finder(max_values);
  finder.walk(root);
  return std::move(finder.found);
}

bool stands_for_tensor(const Value& value) {
  if (value.is_tensor()) return true;
  if (!value.is_object()) return false;
  const ValueObject& object = value.as_object();
  const GlobalRow* row = row_of(object.callee);
  return object.payload.is_tensor() || (row && row->name.starts_with("_rebuild_"));
}

bool is_module_entry(const Value& key, const Value& value) {
  return key.is_str() && (stands_for_tensor(value) || key.as_str().find('.') != std::string::npos ||
                          key.as_str() == "_extra_state");
}

std::vector<FoundStateDict> find_state_dicts(const Value& root) {
  return root.is_dict() ? StateDictSearch().search(root) : std::vector<FoundStateDict>();
}

std::optional<FoundStateDict> find_state_dict(const Value& root) {
  std::vector<FoundStateDict> found = find_state_dicts(root);
  return found.size() == 1 ? std::optional(std::move(found.front())) : std::nullopt;
}

std::string wrapper_prefix(const std::vector<std::string>& names) {
  std::string prefix;
  for (bool longer = !names.empty(); longer;) {
    longer = false;
    for (std::string_view part : kPrefixes) {
      const bool all = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
        return name.size() > prefix.size() + part.size() &&
               std::string_view(name).substr(prefix.size()).starts_with(part) && name.starts_with(prefix);
      });
      if (!all) continue;
      prefix += part;
      longer = true;
      break;
    }
  }
  return prefix;
}

}  // namespace tern::io
