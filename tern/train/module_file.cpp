// Modules to trees of inert objects and back. How objects of torch.nn.Module are pickled:
// torch/nn/modules/module.py,
// __setstate__.
#include "tern/train/module_file.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "tern/base/check.h"
#include "tern/core/allocation_limit.h"
#include "tern/nn/containers.h"
#include "tern/nn/init.h"
#include "tern/nn/lazy.h"
#include "tern/nn/norm.h"
#include "tern/train/module_classes.h"

namespace tern {

namespace {

constexpr int kMaxDepth = 200;
/// A module that stands in several places of a file is one in each of them here: without a limit a small file
/// would make 2^depth modules.
constexpr int kMaxRepeated = 1 << 16;
/// What the making of a module may take besides the numbers that the file has for it.
constexpr size_t kExtraBytes = size_t{1} << 20;

struct Registered {
  std::string python_name;
  std::type_index type;
  ModuleFactory make;
  ModuleSettings settings;
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

constexpr std::string_view kHookDicts[] = {"_backward_pre_hooks",
                                           "_backward_hooks",
                                           "_forward_hooks",
                                           "_forward_hooks_with_kwargs",
                                           "_forward_hooks_always_called",
                                           "_forward_pre_hooks",
                                           "_forward_pre_hooks_with_kwargs",
                                           "_state_dict_hooks",
                                           "_state_dict_pre_hooks",
                                           "_load_state_dict_pre_hooks",
                                           "_load_state_dict_post_hooks"};

// ---- writing

class ModuleWriter {
 public:
  Value write(const nn::Module& module, const std::string& path) {
    const std::type_index type = typeid(module);
    if (const train::ModuleClass* known = train::find_module_class(type))
      return object(module, {known->module, known->name}, known->settings(module), known, path);
    if (auto entry = find_registered([&](const Registered& e) { return e.type == type; })) {
      const size_t dot = entry->python_name.rfind('.');
      return object(module, {entry->python_name.substr(0, dot), entry->python_name.substr(dot + 1)},
                    entry->settings ? entry->settings(module) : train::Attributes(), nullptr, path);
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
    if (module.hooks() && !module.hooks()->parametrizations.empty()) {
      const auto& p = module.hooks()->parametrizations.front();
      TERN_THROW(
          ValueError,
          "save_module: the {} of {} is computed by {}, which no file can say: call remove_{} before, or "
          "save the state dict",
          p.name, shown(path), p.kind, p.kind);
    }
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
    for (auto& [key, value] : settings) {
      TERN_CHECK(!state.contains(key), ValueError,
                 "save_module: {}: the settings of {}.{} name '{}', which all modules have", shown(path),
                 name.module, name.name, key);
      state.as_dict().set(key, std::move(value));
    }
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
    for (std::string_view hooks : kHookDicts) dict.set(hooks, Value::ordered_dict());
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
  nn::AnyModule read(const Value& value) {
    nn::AnyModule module = read(value, "", 0);
    with_context(shown(""), [&] { set_mode(*module, value.as_object()); });
    return module;
  }

  nn::AnyModule read_layer(const Value& value, const train::ModuleClass& layer) {
    derived_ = &value.as_object();
    return with_context(shown(""), [&] {
      nn::AnyModule module = made_of_settings(layer, value);
      fill(*module, *derived_, /*filled_below=*/false, /*depth=*/0);
      set_mode(*module, *derived_);
      return module;
    });
  }

 private:
  /// A module, and whether the modules below it have their tensors already.
  struct Made {
    nn::AnyModule module;
    bool filled_below = false;
  };

  nn::AnyModule read(const Value& value, const std::string& path, int depth) {
    const std::string context = shown(path);
    TERN_CHECK(depth < kMaxDepth, CheckpointError, "{}: modules are nested deeper than {}", context,
               kMaxDepth);
    TERN_CHECK(value.is_object(), CheckpointError, "{} is {}, not a module{}", context, value.str(60),
               value.is_dict() ? ": load() reads it, and load_state_dict() takes it" : "");
    if (!read_.insert(value.identity()).second)
      TERN_CHECK(++repeated_ <= kMaxRepeated, CheckpointError,
                 "{}: more than {} modules of the file are modules that stand elsewhere in it too", context,
                 kMaxRepeated);
    const std::string name = value.as_object().class_name();
    if (const auto entry = find_registered([&](const Registered& e) { return e.python_name == name; }))
      return with_context(context, [&] { return read_registered(*entry, value.as_object(), depth); });
    Made made = make(value, path, depth);
    with_context(context, [&] { fill(*made.module, value.as_object(), made.filled_below, depth); });
    return std::move(made.module);
  }

  Made make(const Value& value, const std::string& path, int depth) {
    const ValueObject& object = value.as_object();
    const std::string name = object.class_name();
    if (name == "torch.nn.modules.container.Sequential")
      return {container<nn::Sequential>(object, path, depth), true};
    if (name == "torch.nn.modules.container.ModuleList")
      return {container<nn::ModuleList<>>(object, path, depth), true};
    if (name == "torch.nn.modules.container.ModuleDict")
      return {container<nn::ModuleDict<>>(object, path, depth), true};
    const train::ModuleClass* known = train::find_module_class(name);
    TERN_CHECK(known, CheckpointError,
               "{} is of the class {}, which Tern does not have: register a class for it, "
               "TERN_REGISTER_MODULE(\"{}\", "
               "...), or take the tensors alone, state_dict_of(load(path, {{.weights_only = false}}))",
               shown(path), name, name);
    return {with_context(shown(path), [&] { return made_of_settings(*known, value); })};
  }

  /// Layers draw no numbers, which the file has. It has none for tensors that are no fields: where a class
  /// keeps such a one, it is made again with all that it draws.
  nn::AnyModule read_registered(const Registered& entry, const ValueObject& object, int depth) {
    const auto read_one = [&] {
      nn::AnyModule module = entry.make(object);
      fill(*module, object, /*filled_below=*/false, depth);
      return module;
    };
    std::vector<Storage> skipped;
    nn::AnyModule module = [&] {
      const nn::init::SkipInitGuard skip(&skipped);
      return read_one();
    }();
    return any_in_use(skipped) ? read_one() : module;
  }

  /// Whether anybody else has one of the storages, which may be there more than once.
  static bool any_in_use(const std::vector<Storage>& storages) {
    std::unordered_map<const StorageImpl*, int64_t> own;
    for (const Storage& storage : storages) ++own[storage.get()];
    return std::any_of(own.begin(), own.end(),
                       [](const auto& held) { return held.first->use_count() > held.second; });
  }

  /// Sizes are the file's word, and layers are made before their tensors are compared with its: the file must
  /// hold as many numbers as are made of it. Some layers of transformers are made twice.
  static nn::AnyModule made_of_settings(const train::ModuleClass& known, const Value& value) {
    const size_t numbers = numbers_held(value);
    const nn::init::SkipInitGuard skip;  // all that these layers draw are parameters, which fill() replaces
    const AllocationLimit limit(2 * numbers * itemsize(get_default_dtype()) + kExtraBytes);
    try {
      return known.make(value.as_object());
    } catch (const CheckpointError&) {
      throw;
    } catch (const TooLargeError& error) {
      TERN_THROW(CheckpointError, "the settings ask for more than the {} numbers that the file holds: {}",
                 numbers, error.message());
    } catch (const OutOfMemoryError&) {
      throw;
    } catch (const Error& error) {  // settings that no layer takes are the file's fault
      TERN_THROW(CheckpointError, "{}", error.message());
    }
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
    TERN_CHECK(nn::detail::can_have_shape(own, other.shape()), CheckpointError,
               "'{}' has the shape {} in the file, but the module made from the file's settings has {}", name,
               to_string(other.shape()), to_string(own.shape()));
  }

  /// Whether a module that was made with this parameter or buffer computes without it too: norms without
  /// weight and statistics, any layer without its biases. Of several that belong together none is there then.
  template <class Named>
  static bool is_optional(const nn::Module& module, const std::string& name, const ValueDict& values,
                          const Named& fields) {
    const bool is_norm = module.as<nn::ChannelNorm>() || module.as<nn::LayerNorm>() ||
                         module.as<nn::GroupNorm>() || module.as<nn::RMSNorm>();
    if (name == "in_proj_bias" || (is_norm && (name == "weight" || name == "num_batches_tracked")))
      return true;
    const char* kind = is_norm && name.starts_with("running_") ? "running_" : "bias";
    return name.starts_with(kind) && std::all_of(fields.begin(), fields.end(), [&](const auto& field) {
             const Value* value = field.first.starts_with(kind) ? values.find(Value(field.first)) : nullptr;
             return !value || value->is_none();
           });
  }

  template <class Named>
  static void check_optional(const char* what, const nn::Module& module, const std::string& name,
                             const ValueDict& values, const Named& fields) {
    TERN_CHECK(is_optional(module, name, values, fields), CheckpointError,
               "the {} '{}' is None in the file, but a {} made from the file's settings needs it", what, name,
               module.class_name());
  }

  /// Puts the object's tensors in the place of the module's own, and those of the modules below likewise
  /// unless they are filled.
  void fill(nn::Module& module, const ValueObject& object, bool filled_below, int depth) {
    TERN_CHECK(depth < kMaxDepth, CheckpointError, "modules are nested deeper than {}", kMaxDepth);
    const nn::Fields fields = module.fields();
    const ValueDict& parameters = entries(object, "_parameters");
    for (const auto& [name, field] : fields.parameters) {
      const Value* value = parameters.find(Value(name));
      TERN_CHECK(value, CheckpointError, "the file has no parameter '{}'", name);
      if (value->is_none()) {
        check_optional("parameter", module, name, parameters, fields.parameters);
        *field = nn::Parameter();
        continue;
      }
      const Tensor tensor = value->as_tensor();
      check_same(*field, tensor, name);
      auto [found, added] = tied_.try_emplace(&tensor.impl());
      if (added) found->second = nn::Parameter(tensor, tensor.requires_grad());
      *field = found->second;
    }
    const bool may_have_more = &object == derived_;
    if (!may_have_more) check_known("parameter", parameters, fields.parameters);
    const ValueDict& buffers = entries(object, "_buffers");
    for (const auto& [name, field] : fields.buffers) {
      const Value* value = buffers.find(Value(name));
      // Files from before PyTorch 0.4.1 do not count batches.
      if (!value && name == "num_batches_tracked") continue;
      TERN_CHECK(value, CheckpointError, "the file has no buffer '{}'", name);
      if (value->is_none()) {
        check_optional("buffer", module, name, buffers, fields.buffers);
        *field = Tensor();
        continue;
      }
      const Tensor tensor = value->as_tensor();
      check_same(*field, tensor, name);
      auto [found, added] = tied_buffers_.try_emplace(&tensor.impl());
      if (added) found->second = tensor.detach();
      *field = found->second;
    }
    if (!may_have_more) check_known("buffer", buffers, fields.buffers);
    if (filled_below) return;
    const Value* modules = object.attribute("_modules");
    for (const auto& [name, child] : fields.modules) {
      const ValueObject& child_object = find_child(modules, name);
      with_context(fmt::format("'{}'", name),
                   [&, &inner = child] { fill(*inner, child_object, false, depth + 1); });
    }
    if (modules && !may_have_more)
      check_known_modules(modules->as_dict(), fields.modules, "",
                          /*may_lack_functions=*/!object.class_name().starts_with("torch."));
  }

  template <class Named>
  static bool has_name(const Named& fields, const std::string& name) {
    return std::any_of(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
  }

  /// What no field takes would be lost without a word.
  template <class Named>
  static void check_known(const char* what, const ValueDict& entries, const Named& fields) {
    for (const auto& [name, value] : entries)
      TERN_CHECK(value.is_none() || has_name(fields, name.as_str()), CheckpointError,
                 "the file has a {} {}, which the module lacks", what, name.str(60));
  }

  /// Calls `see` with what stands among the parameters and buffers of a module and of those below it, and in
  /// the place of a module.
  template <class See>
  static void visit_tensors(const Value& top, const See& see) {
    std::vector<const Value*> open{&top};
    for (std::unordered_set<const void*> seen; !open.empty();) {
      const Value& module = *open.back();
      open.pop_back();
      if (!module.is_object()) {
        see(module);
        continue;
      }
      if (!seen.insert(module.identity()).second) continue;
      for (const char* kind : {"_parameters", "_buffers"})
        for (const auto& [name, tensor] : entries(module.as_object(), kind)) see(tensor);
      for (const auto& [name, child] : entries(module.as_object(), "_modules")) open.push_back(&child);
    }
  }

  /// False for a relu or a dropout, in whose place a registered class may call a function.
  static bool holds_tensors(const Value& module) {
    bool found = false;
    visit_tensors(module, [&](const Value& value) { found = found || !value.is_none(); });
    return found;
  }

  /// How many numbers there are in the storages of a module and of those below it; shapes may repeat them.
  static size_t numbers_held(const Value& module) {
    size_t count = 0;
    std::unordered_set<const StorageImpl*> counted;
    visit_tensors(module, [&](const Value& value) {
      if (value.is_none()) return;
      const Tensor tensor = value.as_tensor();
      if (counted.insert(tensor.storage().get()).second)
        count += tensor.storage()->nbytes() / itemsize(tensor.dtype());
    });
    return count;
  }

  template <class Named>
  static void check_known_modules(const ValueDict& modules, const Named& fields, const std::string& prefix,
                                  bool may_lack_functions) {
    for (const auto& [key, value] : modules) {
      const std::string name = prefix + key.as_str();
      if (value.is_none() || has_name(fields, name)) continue;
      if (may_lack_functions && !holds_tensors(value)) continue;
      // A list whose elements are the fields "blocks.0", "blocks.1", or an empty one.
      const bool has_elements = std::any_of(fields.begin(), fields.end(), [&](const auto& field) {
        return field.first.starts_with(name + ".");
      });
      TERN_CHECK(has_elements, CheckpointError, "the file has a module '{}', which the module lacks", name);
      const ValueObject& list = value.as_object();
      check_known("parameter", entries(list, "_parameters"), nn::Fields().parameters);
      check_known("buffer", entries(list, "_buffers"), nn::Fields().buffers);
      check_known_modules(entries(list, "_modules"), fields, name + ".", /*may_lack_functions=*/false);
    }
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
    if (training && training->as_bool() != module.is_training()) module.train(training->as_bool());
    const Value* modules = object.attribute("_modules");
    for (const auto& [name, child] : module.fields().modules) set_mode(*child, find_child(modules, name));
  }

  std::unordered_map<const TensorImpl*, nn::Parameter> tied_;
  std::unordered_map<const TensorImpl*, Tensor> tied_buffers_;
  std::unordered_set<const void*> read_;
  int repeated_ = 0;
  const ValueObject* derived_ = nullptr;  ///< of a class that has more than the layer that is made of it
};

/// Reading moves no generator on: what a constructor draws by itself comes from a copy. Values of another
/// kind than a module has are the file's fault.
template <class Body>
nn::AnyModule read_apart(const Body& body) {
  Generator apart;
  apart.set_bytes(default_generator().bytes());
  const DefaultGeneratorGuard guard(std::move(apart));
  try {
    return body();
  } catch (const TypeError& error) {
    TERN_THROW(CheckpointError, "{}", error.message());
  }
}

const train::ModuleClass& layer_class(const Value& value, std::type_index layer) {
  const train::ModuleClass* known = train::find_module_class(layer);
  TERN_CHECK(known && value.is_object(), CheckpointError, "{} is no layer that a file can have",
             value.str(60));
  return *known;
}

/// Appends the places of the hooks in a tree of modules that was read.
void list_hooks(const Value& module, const std::string& path, std::unordered_set<const void*>& seen,
                std::vector<std::string>& found) {
  if (!module.is_object() || !seen.insert(module.identity()).second) return;
  for (std::string_view kind : kHookDicts) {
    const Value* hooks = module.as_object().attribute(kind);
    // Beside the hooks themselves there are flags of some of them, by the same keys.
    const bool flags = kind.ends_with("_with_kwargs") || kind.ends_with("_always_called");
    if (!flags && hooks && hooks->is_dict() && hooks->length() > 0)
      found.push_back(join(path, std::string(kind)));
  }
  if (const Value* modules = module.as_object().attribute("_modules"))
    for (const auto& [key, child] : modules->as_dict())
      list_hooks(child, join(path, key.as_str()), seen, found);
}

}  // namespace

void register_module(const std::string& python_name, std::type_index type, ModuleFactory make,
                     ModuleSettings settings) {
  TERN_CHECK(python_name.find('.') != std::string::npos, ValueError,
             "register_module: '{}' is no name of a class with its module, such as \"__main__.MLP\"",
             python_name);
  Registry& known = registry();
  std::lock_guard lock(known.mutex);
  std::erase_if(known.entries,
                [&](const Registered& e) { return e.python_name == python_name || e.type == type; });
  known.entries.push_back({python_name, type, std::move(make), std::move(settings)});
}

Value module_to_value(const nn::Module& module) {
  nn::detail::check_initialized("save_module", module);
  return ModuleWriter().write(module, "");
}

nn::AnyModule module_from_value(const Value& value, LoadReport* report) {
  nn::AnyModule module = read_apart([&] { return ModuleReader().read(value); });
  if (report) {
    std::unordered_set<const void*> seen;
    list_hooks(value, "", seen, report->hooks);
  }
  return module;
}

nn::AnyModule layer_from_value(const Value& value, std::type_index layer) {
  return read_apart([&] { return ModuleReader().read_layer(value, layer_class(value, layer)); });
}

nn::AnyModule layer_of_settings(const Value& value, std::type_index layer) {
  const nn::init::SkipInitGuard skip;
  return read_apart([&] { return layer_class(value, layer).make(value.as_object()); });
}

void save_module(const nn::Module& module, const std::filesystem::path& path, const SaveOptions& options) {
  save(module_to_value(module), path, options);
}

nn::AnyModule load_module(const std::filesystem::path& path, LoadOptions options) {
  options.weights_only = false;
  const Value value = load(path, options);
  return with_context(fmt::format("loading '{}'", path.string()),
                      [&] { return module_from_value(value, options.report); });
}

}  // namespace tern
