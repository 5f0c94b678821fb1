// Whole models as PyTorch pickles them (torch.save(net)), to and from Tern's modules. State dicts, which need
// no classes on the other side, are io's; the table of classes is in module_classes.h.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include "tern/io/serialize.h"
#include "tern/nn/any_module.h"

namespace tern {

/// Writes a whole model so that `torch.load(path, weights_only=False)` gives PyTorch's own modules: each
/// layer as the class of torch.nn with the same name, its parameters, buffers, mode and settings. Of a class
/// that is registered its parameters, buffers, modules and mode are written, and what its ModuleSettings say:
/// an object that PyTorch makes of it has no other attributes, since its __init__ is not run. Parameters
/// that are tied stay tied; hooks are not written. Throws ValueError, naming the module's path, for a class
/// that is neither one of torch.nn's nor registered.
void save_module(const nn::Module& module, const std::filesystem::path& path,
                 const SaveOptions& options = {});

/// Reads a whole model that PyTorch or save_module wrote, and makes real modules of it. Nothing from the file
/// is run: classes are looked up by name among those of torch.nn that Tern has and those that are registered.
/// Throws CheckpointError, naming the module's path, for any other class, for settings that Tern's layers
/// lack, for sizes of more numbers than the file holds (before memory is taken for them), for a None where a
/// layer needs a tensor, and for parameters, buffers and modules of the file that have no field in the class
/// (state_dict_of takes the tensors from such a file); only modules without tensors may be missing in a
/// registered class, whose forward() may call relu() itself. A module that stands in several places becomes
/// one in each of them, which share their tensors; at most 65536 such repetitions are read.
/// No random numbers are drawn for what the file has, and the default generator stays where it is.
/// `options.weights_only` is not looked at. Hooks are not read: `options.report` gets their places.
nn::AnyModule load_module(const std::filesystem::path& path, LoadOptions options = {});

/// The same with the tree of values between: what save() takes, and what load() gives.
Value module_to_value(const nn::Module& module);
nn::AnyModule module_from_value(const Value& value, LoadReport* report = nullptr);
/// A layer of torch.nn's of this type from an object of a class that is derived from it, whose own
/// parameters, buffers and modules are left aside.
nn::AnyModule layer_from_value(const Value& value, std::type_index layer);
/// The same with any numbers in its tensors: their shapes alone count. For values that are trusted.
nn::AnyModule layer_of_settings(const Value& value, std::type_index layer);

/// Makes an empty module of a class from what the file says about it, an inert object; its parameters,
/// buffers and mode are filled in afterwards. What it makes is not limited by what the file holds: sizes that
/// it takes from a file that is not trusted are for it to check. Layers that it makes draw no numbers
/// (nn::init::SkipInitGuard) unless tensors that are no fields of the module keep what was drawn: then it is
/// called once more, and they do. It must not copy what its layers drew.
using ModuleFactory = std::function<nn::AnyModule(const ValueObject& object)>;

/// The plain attributes of an object of the class in Python, which is what a ModuleFactory finds in `object`
/// again: `{{"heads", 4}, {"scale", 0.5}}`.
using ModuleSettings = std::function<std::vector<std::pair<std::string, Value>>(const nn::Module& module)>;

/// Registers a class of one's own under the name that it has in Python, "__main__.MLP": load_module makes
/// `type` of it, save_module writes modules of `type` under this name. A later registration of a name or type
/// replaces the earlier.
void register_module(const std::string& python_name, std::type_index type, ModuleFactory make,
                     ModuleSettings settings = {});

}  // namespace tern

/// Registers a class whose default constructor makes the right layers: `TERN_REGISTER_MODULE("__main__.MLP",
/// MLP);` at the level of a namespace. What its constructor needs of the file, and attributes to be written,
/// are for register_module.
#define TERN_REGISTER_MODULE(python_name, ...) TERN_REGISTER_MODULE_(python_name, __COUNTER__, __VA_ARGS__)
#define TERN_REGISTER_MODULE_(python_name, number, ...) \
  TERN_REGISTER_MODULE__(python_name, number, __VA_ARGS__)
#define TERN_REGISTER_MODULE__(python_name, number, ...)                                       \
  [[maybe_unused]] static const bool tern_registered_module_##number = [] {                    \
    ::tern::register_module(python_name, typeid(__VA_ARGS__), [](const ::tern::ValueObject&) { \
      return ::tern::nn::AnyModule(__VA_ARGS__());                                             \
    });                                                                                        \
    return true;                                                                               \
  }()
