// The classes of torch.nn that Tern has: what their pickled objects say about them, and back. For
// module_file.cpp only.
#pragma once

#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include "tern/io/value.h"
#include "tern/nn/any_module.h"

namespace tern::train {

using Attributes = std::vector<std::pair<std::string, Value>>;

struct ModuleClass {
  std::string module;  ///< "torch.nn.modules.linear"
  std::string name;    ///< "Linear"
  std::type_index type;
  /// The settings that an object of the class has, besides what all modules have.
  Attributes (*settings)(const nn::Module& module);
  /// A module with these settings; throws CheckpointError for those that Tern's layer lacks.
  nn::AnyModule (*make)(const ValueObject& object);
  /// Parameters and buffers that may be absent, and stand as None then.
  std::vector<std::string> parameters;
  std::vector<std::string> buffers;
};

/// Null for a class that is not there.
const ModuleClass* find_module_class(std::string_view python_name);  ///< "torch.nn.modules.linear.Linear"
const ModuleClass* find_module_class(std::type_index type);

}  // namespace tern::train
