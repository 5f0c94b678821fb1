// nn.Module in Python: classes that are written there, and what they are called with.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "casters.h"

namespace tern::python {

/// A module of a class that is written in Python (the alias of nn::Module). Its fields are what was assigned
/// to its attributes: the Python object holds this, and this the Python objects of the modules below.
class PythonModule final : public nn::Module {
 public:
  PythonModule() = default;
  PythonModule(const PythonModule& other);
  PythonModule& operator=(PythonModule&&) = default;

  void collect_fields(nn::Fields& fields) override;
  std::string class_name() const override;
  std::string extra_repr() const override;

  // An attribute keeps its place when it is assigned again, and has one kind.
  // The Python object of a parameter is kept, with what was assigned to its attributes.
  void set_parameter(const std::string& name, py::object parameter);
  void set_parameter(const std::string& name, const Tensor& parameter) {
    set_parameter(name, py::cast(parameter));
  }
  void set_buffer(const std::string& name, const Tensor& buffer, bool persistent);
  /// Throws ValueError where this module would be below itself.
  void set_module(const std::string& name, py::object module);
  /// The field of this name; nothing where there is none.
  std::optional<py::object> find(const std::string& name) const;
  bool has_buffer(const std::string& name) const;
  bool has_module(const std::string& name) const;
  /// Whether the buffer of this name is saved.
  bool is_saved(const std::string& name) const;
  bool remove(const std::string& name);
  /// Takes over what another has: the same tensors, modes, hooks and modules below.
  void become(const PythonModule& other) { *this = PythonModule(other); }
  /// Names of parameters and buffers, with "parameter", "buffer" or "not saved".
  std::vector<std::pair<std::string, const char*>> tensor_fields() const;
  /// The modules below, as Python's objects.
  std::vector<std::pair<std::string, py::object>> modules_below() const;

  // For Python's collection of cycles.
  int traverse(visitproc visit, void* arg) const;
  void clear() { std::exchange(fields_, {}); }

 private:
  enum class Kind { Parameter, Buffer, Module };
  struct Field {
    std::string name;
    Kind kind{};
    nn::Parameter parameter;
    nn::Buffer buffer;
    py::object object;  ///< of a parameter or a module
  };
  void put(Field field);
  const Field* find_field(const std::string& name) const;
  bool reaches(const PythonModule& other) const;

  std::vector<std::shared_ptr<Field>> fields_;  ///< what is assigned anew is another Field
};

/// While this is there, fields that the thread was told of stay, whatever other threads assign: for work
/// without Python's lock.
class HeldFields {
 public:
  HeldFields();
  HeldFields(const HeldFields&) = delete;
  HeldFields& operator=(const HeldFields&) = delete;
  ~HeldFields();

  std::vector<std::shared_ptr<const void>> fields;

 private:
  HeldFields* outer_;
};

using ModuleClass = py::class_<nn::Module, PythonModule, std::shared_ptr<nn::Module>>;

/// The Python object that the module has, or none (null).
py::object existing_object(const nn::Module& module);
/// The same, or a new one for a module that C++ made inside `owner`, which it keeps alive.
py::object module_object(const nn::Module& module, const py::object& owner);

// In module_hooks.cpp.
/// `module(...)`: forward with hooks, and with the module's path in errors and profiles; as nn::detail::call.
py::object call_module(py::object self, py::args given, py::kwargs named);
void bind_hooks(ModuleClass& c);
/// After all classes of modules are there: Python's collector looks into modules, and one whose __init__ was
/// not called is refused.
void finish_module_classes(py::module_& m);

}  // namespace tern::python
