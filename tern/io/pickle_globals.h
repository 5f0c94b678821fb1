// The allow-list: every class and function whose meaning the readers know, with what stands for calling it. A
// name from a file is only ever compared with this list; nothing is imported or run. The rows are in
// pickle_python.cpp, torch_rebuild.cpp, numpy_rebuild.cpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tern/core/storage.h"
#include "tern/io/value.h"

namespace tern::io {

struct GlobalRow;

/// What a pickle may ask of the file it is in.
class PickleHost {
 public:
  virtual ~PickleHost() = default;
  /// The value behind a persistent id. Throws CheckpointError for an id that the container does not have.
  virtual Value persistent_load(const Value& id) = 0;
  /// Runs `check` when the storages have their bytes; it throws CheckpointError when they are not what they
  /// must be.
  virtual void check_later(std::function<void()> check) = 0;
  /// Where a tensor that lived at `location` ("cuda:1") goes.
  virtual Device device_for(const std::string& location) = 0;
  /// What `torch.storage._load_from_bytes` stands for: a complete checkpoint inside the pickle.
  virtual Value load_nested(const std::string& bytes) = 0;
  /// Counts memory that a call has taken for a copy of what the pickle has; the reader sets it against the
  /// pickle's size.
  void count_copy(size_t nbytes) noexcept { copied_ += nbytes; }
  size_t take_copied() noexcept { return std::exchange(copied_, 0); }
  /// The storage that stands for `given` with its numbers of `dtype` conjugated or negated; null until
  /// somebody has made it.
  Storage& resolved_storage(const Storage& given, DType dtype, bool conj, bool neg) {
    auto& [kept, resolved] = resolved_[{given.get(), dtype, conj, neg}];
    kept = given;
    return resolved;
  }

 private:
  size_t copied_ = 0;
  std::map<std::tuple<const StorageImpl*, DType, bool, bool>, std::pair<Storage, Storage>> resolved_;
};

using CallArgs = std::vector<Value>;
/// Gives what calling the function or class with `args` would give. Throws CheckpointError for wrong
/// arguments.
using GlobalCall = Value (*)(PickleHost& host, const Value& callee, const CallArgs& args);
/// Gives `state` to an object that `call` made (BUILD).
using GlobalSetState = void (*)(PickleHost& host, ValueObject& object, const Value& state);

struct GlobalRow {
  std::string_view module;
  std::string_view name;
  GlobalCall call = nullptr;  ///< null for a name that is only a value
  GlobalSetState set_state = nullptr;
  DType dtype = DType::UInt8;  ///< of a storage or tensor class
  bool typed = false;          ///< dtype is meant
};

std::span<const GlobalRow> python_globals();
std::span<const GlobalRow> torch_globals();
std::span<const GlobalRow> numpy_globals();

/// The value for a name in a pickle: a dtype, or the name with its row in the list (null when it is not
/// there).
Value find_global(std::string_view module, std::string_view name);

/// The row of a name, or null.
inline const GlobalRow* row_of(const GlobalName& name) { return static_cast<const GlobalRow*>(name.known); }
inline const GlobalRow* row_of(const Value& value) {
  return value.kind() == ValueKind::Global ? row_of(value.as_global()) : nullptr;
}

/// (requires_grad, volatile, hooks): what a parameter got after it was made, before torch 0.4. Throws
/// CheckpointError.
void set_tensor_state(const Tensor& tensor, const Value& state);

/// True for names that begin as a class does, with a capital, perhaps after underscores.
bool is_class_name(std::string_view name) noexcept;

/// The class in a class, "Outer.Inner", that `getattr(Outer, 'Inner')` stands for: how Python writes its name
/// before protocol 4. None for any other value, for names of methods, and for more than 16 classes in each
/// other.
std::optional<GlobalName> nested_class(const Value& value);

/// An object that stands for the call `callee(*args)`.
Value make_object(Value callee, CallArgs args, ValueObject::Made made = ValueObject::Made::Called);

}  // namespace tern::io
