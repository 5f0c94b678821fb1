// Modules to trees of inert objects and back. How objects of torch.nn.Module are pickled:
// torch/nn/modules/module.py,
// __setstate__.
#include "tern/train/module_file.h"

#include <mutex>
#include <unordered_map>

#include "tern/base/check.h"
#include "tern/nn/containers.h"
#include "tern/train/module_classes.h"

namespace tern {

namespace {

constexpr int kMaxDepth = 200;

struct Registered {
  std::string python_name;
  std::type_index type;
  ModuleFactory make;
};
struct Registry {
  std::mutex mutex;
  std::vector<Registered> entries;
};
Registry& registry() {
  static Registry instance;
  return instance;
}
template <class Matches>
std::optional<Registered> find_registered(Matches&& matches) {
  Registry& known = registry();
  std::lock_guard lock(known.mutex);
  for (const Registered& entry : known.entries)
    if (matches(entry)) return entry;
  return std::nullopt;
}

std::string shown(const std::string& path) {
  return path.empty() ? "the model" : fmt::format("module '{}'", path);
}
std::string join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

// ---- writing

class ModuleWriter {
 public:
  Value write(const nn::Module& module, const std::string& path) {
    const std::type_index type = typeid(module);
    if (const train::ModuleClass* known = train::find_module_class(type))
      return object(module, {known->module, known->name}, known->settings(module), known, path);
    if (auto entry = find_registered([&](const Registered& e) { return e.type == type; })) {
      const size_t dot = entry->python_name.rfind('.');
      return object(module, {entry->python_name.substr(0, dot), entry->python_name.substr(dot + 1)}, {},
                    nullptr, path);
    }
    const std::string name = module.class_name();
    if (name == "ModuleList" || name == "ModuleDict")
      return object(module, {"torch.nn.modules.container", name}, {}, nullptr, path);
    TERN_THROW(ValueError,
               "save_module: {} is of the class {}, which is none of torch.nn's: register the name that it "
               "has in Python, "
               "TERN_REGISTER_MODULE(\"__main__.{}\", {}), or save the state dict",
               shown(path), name, name, name);
  }

 private:
  Value parameter(const nn::Parameter& parameter) {
    auto [found, added] = parameters_.try_emplace(&parameter.impl());
    if (added) {
      ValueObject object;
      object.callee = GlobalName{"torch._utils", "_rebuild_parameter"};
      object.args = Value::tuple({parameter.detach(), parameter.requires_grad(), Value::ordered_dict()});
      found->second = Value(std::move(object));
    }
    return found->second;
  }

  Value object(const nn::Module& module, const GlobalName& name, train::Attributes settings,
               const train::ModuleClass* known, const std::string& path) {
    const nn::Fields fields = module.fields();
    Value parameters = Value::ordered_dict(), buffers = Value::ordered_dict(),
          modules = Value::ordered_dict();
    std::vector<Value> not_persistent;
    if (known) {
      for (const std::string& absent : known->parameters) parameters.as_dict().set(absent, Value());
      for (const std::string& absent : known->buffers) buffers.as_dict().set(absent, Value());
    }
    for (const auto& [field, tensor] : fields.parameters) parameters.as_dict().set(field, parameter(*tensor));
    for (const auto& [field, tensor] : fields.buffers) {
      buffers.as_dict().set(field, Tensor(*tensor).detach());
      if (!tensor->persistent) not_persistent.emplace_back(field);
    }
    for (const auto& [field, child] : fields.modules) add_child(modules, field, *child, join(path, field));

    Value state = base_state(module.is_training(), parameters, buffers, modules, Value::set(not_persistent));
    for (auto& [key, value] : settings) state.as_dict().set(key, std::move(value));
    return new_object(name, std::move(state));
  }

  /// A field std::vector<M> has children "blocks.0", "blocks.1", which PyTorch has in a ModuleList.
  void add_child(Value& modules, const std::string& field, const nn::Module& child, const std::string& path) {
    const size_t dot = field.find('.');
    if (dot == std::string::npos) return modules.as_dict().set(field, write(child, path));
    const std::string list = field.substr(0, dot);
    if (!modules.contains(list)) {
      Value empty = Value::ordered_dict();
      modules.as_dict().set(
          list, new_object({"torch.nn.modules.container", "ModuleList"},
                           base_state(child.is_training(), Value::ordered_dict(), Value::ordered_dict(),
                                      Value::ordered_dict(), Value::set())));
    }
    Value inner = *modules.find(list)->as_object().attribute("_modules");
    add_child(inner, field.substr(dot + 1), child, path);
  }

  static Value base_state(bool training, Value parameters, Value buffers, Value modules,
                          Value not_persistent) {
    Value state = Value::dict();
    ValueDict& dict = state.as_dict();
    dict.set("training", training);
    dict.set("_parameters", std::move(parameters));
    dict.set("_buffers", std::move(buffers));
    dict.set("_non_persistent_buffers_set", std::move(not_persistent));
    for (const char* hooks :
         {"_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
          "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
          "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
          "_load_state_dict_post_hooks"})
      dict.set(hooks, Value::ordered_dict());
    dict.set("_is_full_backward_hook", Value());
    dict.set("_modules", std::move(modules));
    return state;
  }

  static Value new_object(const GlobalName& name, Value state) {
    ValueObject object;
    object.callee = name;
    object.made = ValueObject::Made::New;
    object.args = Value::tuple();
    object.state = std::move(state);
    object.has_state = true;
    return Value(std::move(object));
  }

  std::unordered_map<const TensorImpl*, Value> parameters_;
};

// ---- reading

class ModuleReader {
 public:
  nn::AnyModule read(const Value& value, const std::string& path, int depth = 0) {
    const std::string context = shown(path);
    TERN_CHECK(depth < kMaxDepth, CheckpointError, "{}: modules are nested deeper than {}", context,
               kMaxDepth);
    TERN_CHECK(value.is_object(), CheckpointError, "{} is {}, not a module{}", context, value.str(60),
               value.is_dict() ? ": load() reads it, and load_state_dict() takes it" : "");
    const ValueObject& object = value.as_object();
    nn::AnyModule module = make(object, path, depth);
    with_context(context, [&] { fill(*module, object, path, depth); });
    set_mode(*module, object);
    return module;
  }

 private:
  nn::AnyModule make(const ValueObject& object, const std::string& path, int depth) {
    const std::string name = object.class_name();
    if (auto entry = find_registered([&](const Registered& e) { return e.python_name == name; }))
      return with_context(shown(path), [&] { return entry->make(object); });
    const size_t dot = name.rfind('.');
    const std::string module = dot == std::string::npos ? "" : name.substr(0, dot),
                      last = name.substr(dot + 1);
    if (module == "torch.nn.modules.container") {
      if (last == "Sequential") return container<nn::Sequential>(object, path, depth);
      if (last == "ModuleList") return container<nn::ModuleList<>>(object, path, depth);
      if (last == "ModuleDict") return container<nn::ModuleDict<>>(object, path, depth);
    }
    const train::ModuleClass* known = train::find_module_class(module, last);
    TERN_CHECK(known, CheckpointError,
               "{} is of the class {}, which Tern does not have: register a class for it, "
               "TERN_REGISTER_MODULE(\"{}\", "
               "...), or take the tensors alone, state_dict_of(load(path, {{.weights_only = false}}))",
               shown(path), name, name);
    return with_context(shown(path), [&] { return known->make(object); });
  }

  template <class Container>
  nn::AnyModule container(const ValueObject& object, const std::string& path, int depth) {
    Container result;
    const Value* modules = object.attribute("_modules");
    TERN_CHECK(modules, CheckpointError, "{} has no '_modules'", shown(path));
    for (const auto& [key, child] : modules->as_dict()) {
      nn::AnyModule made = read(child, join(path, key.as_str()), depth + 1);
      if constexpr (std::same_as<Container, nn::Sequential>)
        result.push_back(key.as_str(), std::move(made));
      else if constexpr (std::same_as<Container, nn::ModuleList<>>)
        result.push_back(std::move(made));
      else
        result.insert(key.as_str(), std::move(made));
    }
    return result;
  }

  static const ValueDict& entries(const ValueObject& object, const char* name) {
    const Value* value = object.attribute(name);
    TERN_CHECK(value && value->is_dict(), CheckpointError, "the object has no dict '{}'", name);
    return value->as_dict();
  }

  static void check_same(const Tensor& own, const Tensor& other, const std::string& name) {
    TERN_CHECK(own.shape() == other.shape(), CheckpointError,
               "'{}' has the shape {} in the file, but the module made from the file's settings has {}", name,
               to_string(other.shape()), to_string(own.shape()));
  }

  /// Puts the object's tensors in the place of the module's own, and those of the modules below likewise.
  void fill(nn::Module& module, const ValueObject& object, const std::string& path, int depth) {
    TERN_CHECK(depth < kMaxDepth, CheckpointError, "modules are nested deeper than {}", kMaxDepth);
    const nn::Fields fields = module.fields();
    const ValueDict& parameters = entries(object, "_parameters");
    size_t used = 0;
    for (const auto& [name, field] : fields.parameters) {
      const Value* value = parameters.find(Value(name));
      TERN_CHECK(value, CheckpointError, "the file has no parameter '{}'", name);
      ++used;
      if (value->is_none()) {
        *field = nn::Parameter();
        continue;
      }
      const Tensor tensor = value->as_tensor();
      check_same(*field, tensor, name);
      auto [found, added] = tied_.try_emplace(&tensor.impl());
      if (added) found->second = nn::Parameter(tensor, tensor.requires_grad());
      *field = found->second;
    }
    for (const auto& [name, value] : parameters)
      TERN_CHECK(value.is_none() || std::any_of(fields.parameters.begin(), fields.parameters.end(),
                                                [&wanted = name](const auto& field) {
                                                  return field.first == wanted.as_str();
                                                }),
                 CheckpointError, "the file has a parameter '{}', which the module lacks", name.str(60));
    const ValueDict& buffers = entries(object, "_buffers");
    for (const auto& [name, field] : fields.buffers) {
      const Value* value = buffers.find(Value(name));
      // Files from before PyTorch 0.4.1 do not count batches.
      if (!value && name == "num_batches_tracked") continue;
      TERN_CHECK(value, CheckpointError, "the file has no buffer '{}'", name);
      if (value->is_none()) {
        *field = Tensor();
        continue;
      }
      const Tensor tensor = value->as_tensor().detach();
      check_same(*field, tensor, name);
      *field = tensor;
    }
    const Value* modules = object.attribute("_modules");
    for (const auto& [name, child] : fields.modules) {
      if (modules && is_own_container(module)) break;  // its modules are filled already
      const ValueObject& child_object = find_child(modules, name);
      with_context(fmt::format("'{}'", name),
                   [&, &inner = child] { fill(*inner, child_object, path, depth + 1); });
    }
  }

  static bool is_own_container(const nn::Module& module) {
    return typeid(module) == typeid(nn::Sequential) || typeid(module) == typeid(nn::ModuleList<>) ||
           typeid(module) == typeid(nn::ModuleDict<>);
  }

  /// "blocks.0" is the entry "0" of the object "blocks".
  static const ValueObject& find_child(const Value* modules, const std::string& name) {
    const size_t dot = name.find('.');
    const Value* found = modules ? modules->find(Value(name.substr(0, dot))) : nullptr;
    TERN_CHECK(found && found->is_object(), CheckpointError, "the file has no module '{}'", name);
    const ValueObject& object = found->as_object();
    return dot == std::string::npos ? object : find_child(object.attribute("_modules"), name.substr(dot + 1));
  }

  /// The mode of each module, from the top down since train() sets all below.
  static void set_mode(nn::Module& module, const ValueObject& object) {
    const Value* training = object.attribute("training");
    if (training) module.train(training->as_bool());
    const Value* modules = object.attribute("_modules");
    for (const auto& [name, child] : module.fields().modules) set_mode(*child, find_child(modules, name));
  }

  std::unordered_map<const TensorImpl*, nn::Parameter> tied_;
};

}  // namespace

void register_module(const std::string& python_name, std::type_index type, ModuleFactory make) {
  TERN_CHECK(python_name.find('.') != std::string::npos, ValueError,
             "register_module: '{}' is no name of a class with its module, such as \"__main__.MLP\"",
             python_name);
  Registry& known = registry();
  std::lock_guard lock(known.mutex);
  std::erase_if(known.entries,
                [&](const Registered& e) { return e.python_name == python_name || e.type == type; });
  known.entries.push_back({python_name, type, std::move(make)});
}

Value module_to_value(const nn::Module& module) { return ModuleWriter().write(module, ""); }

nn::AnyModule module_from_value(const Value& value) { return ModuleReader().read(value, ""); }

void save_module(const nn::Module& module, const std::filesystem::path& path, const SaveOptions& options) {
  save(module_to_value(module), path, options);
}

nn::AnyModule load_module(const std::filesystem::path& path, LoadOptions options) {
  options.weights_only = false;
  const Value value = load(path, options);
  return with_context(fmt::format("loading '{}'", path.string()), [&] { return module_from_value(value); });
}

}  // namespace tern
