// TorchScript archives: their modules and constants as plain values. The program in them is left alone.
#pragma once

#include <string>
#include <string_view>

#include "tern/io/value.h"

namespace tern::io {

/// The classes that a TorchScript archive defines itself: their objects hold only attributes.
bool is_script_class(std::string_view module, std::string_view name);

/// The storages of an archive of torch 1.0 and 1.1, which has a JSON text instead of a pickle.
class ScriptStorages {
 public:
  virtual ~ScriptStorages() = default;
  /// The storage in the entry `record`. Throws CheckpointError when there is none.
  virtual Value script_storage(const std::string& record, DType dtype, const std::string& location) = 0;
};

/// The tree of modules that model.json describes, as objects with parameters and submodules as attributes.
/// Throws CheckpointError.
Value read_script_model(std::string_view json, ScriptStorages& storages);

/// Puts the tensors of constants.pkl into the attribute `__constants__` of the model; there are none when the
/// tuple is empty.
void add_script_constants(Value& model, const Value& constants);

}  // namespace tern::io
