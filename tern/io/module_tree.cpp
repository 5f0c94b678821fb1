// The state dict of inert modules, as torch/nn/modules/module.py, Module.state_dict.
#include "tern/io/module_tree.h"

#include "tern/base/check.h"
#include "tern/io/torch_script.h"
#include "tern/io/value_nodes.h"

namespace tern {

namespace {

constexpr size_t kMaxDepth = 500;
constexpr size_t kMaxTensors = 1'000'000;
constexpr size_t kMaxNameBytes = size_t{256} << 20;
constexpr size_t kMaxModules = 1'000'000;

bool is_script_object(const Value& value) {
  if (!value.is_object()) return false;
  const Value& callee = value.as_object().callee;
  return callee.kind() == ValueKind::Global &&
         io::is_script_class(callee.as_global().module, callee.as_global().name);
}

/// The entries of a dict, also of an object that is one (an OrderedDict in a hook's wrapper, for example).
const ValueDict* entries_of(const Value* value) {
  return value && value->is_dict() ? &value->as_dict() : nullptr;
}

class Walk {
 public:
  StateDict result;

  void module(const Value& value, const std::string& prefix, size_t depth) {
    TERN_CHECK(depth <= kMaxDepth && ++modules_ <= kMaxModules, CheckpointError,
               "the modules of the model are nested deeper than {}, or more than {}", kMaxDepth, kMaxModules);
    const ValueObject& object = value.as_object();
    if (is_script_object(value)) return script_module(object, prefix, depth);
    if (const ValueDict* parameters = entries_of(object.attribute("_parameters")))
      for (const auto& [key, parameter] : *parameters) add(prefix, key, parameter);
    if (const ValueDict* buffers = entries_of(object.attribute("_buffers")))
      for (const auto& [key, buffer] : *buffers)
        if (!is_not_persistent(object, key)) add(prefix, key, buffer);
    if (const ValueDict* modules = entries_of(object.attribute("_modules")))
      for (const auto& [key, child] : *modules)
        if (is_module_object(child)) module(child, prefix + text_of(key) + ".", depth + 1);
  }

 private:
  static bool is_not_persistent(const ValueObject& object, const Value& name) {
    const Value* names = object.attribute("_non_persistent_buffers_set");
    return names && names->kind() == ValueKind::Set && names->as_set().contains(name);
  }

  void script_module(const ValueObject& object, const std::string& prefix, size_t depth) {
    const ValueDict* attributes = entries_of(&object.state);
    if (!attributes) return;
    for (const auto& [key, value] : *attributes) {
      if (value.is_tensor())
        add(prefix, key, value);
      else if (is_script_object(value))
        module(value, prefix + text_of(key) + ".", depth + 1);
    }
  }

  static std::string text_of(const Value& key) {
    TERN_CHECK(key.is_str(), CheckpointError, "a module has a part with the name {}", key.str(50));
    return key.as_str();
  }

  void add(const std::string& prefix, const Value& key, const Value& value) {
    if (value.is_none()) return;
    std::string name = prefix + text_of(key);
    bool tensor = value.is_tensor() || (value.is_object() && value.as_object().payload.is_tensor());
    TERN_CHECK(tensor, TypeError,
               "'{}' of the model is {}, which no state dict holds (a quantized, sparse or meta tensor?)",
               name.substr(0, 100), detail::describe(value));
    name_bytes_ += name.size();
    TERN_CHECK(result.size() < kMaxTensors && name_bytes_ <= kMaxNameBytes, CheckpointError,
               "the model has more than {} tensors, or their names more than {} bytes", kMaxTensors,
               kMaxNameBytes);
    result.insert(name, value.as_tensor());
  }

  size_t modules_ = 0;
  size_t name_bytes_ = 0;
};

}  // namespace

bool is_module_object(const Value& value) {
  if (!value.is_object()) return false;
  const ValueObject& object = value.as_object();
  return is_script_object(value) ||
         (entries_of(object.attribute("_parameters")) && entries_of(object.attribute("_modules")));
}

StateDict state_dict_of(const Value& model) {
  TERN_CHECK(is_module_object(model), TypeError,
             "state_dict_of: {} is given, not a module; of a dict that holds one, give the entry: "
             "state_dict_of(file[\"model\"])",
             detail::describe(model));
  Walk walk;
  walk.module(model, "", 0);
  return std::move(walk.result);
}

}  // namespace tern
