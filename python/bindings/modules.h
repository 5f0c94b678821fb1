// nn.Module in Python: classes that are written there, and what they are called with.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "casters.h"

namespace tern::python {

/// What was assigned to the attributes of a module: all fields of a class that is written in Python, and
/// those that a layer of C++ has after its own. The module holds this, and this the Python objects of the
/// modules below.
class PythonFields final : public nn::detail::AddedFields {
 public:
  PythonFields() = default;
  PythonFields(const PythonFields& other);
  PythonFields& operator=(const PythonFields&) = delete;

  void collect(nn::Fields& fields) override;
  std::shared_ptr<AddedFields> copy() const override { return std::make_shared<PythonFields>(*this); }

  // An attribute keeps its place when it is assigned again, and has one kind.
  // The Python object of a parameter is kept, with what was assigned to its attributes.
  void set_parameter(const std::string& name, py::object parameter);
  void set_buffer(const std::string& name, const Tensor& buffer, bool persistent);
  /// Of what is not above it; see add_module.
  void set_module(const std::string& name, py::object module);
  /// The field of this name; nothing where there is none.
  std::optional<py::object> find(const std::string& name) const;
  bool has_buffer(const std::string& name) const;
  bool has_module(const std::string& name) const;
  /// Whether the buffer of this name is saved.
  bool is_saved(const std::string& name) const;
  bool remove(const std::string& name);
  /// Names of parameters and buffers, with "parameter", "buffer" or "not saved".
  std::vector<std::pair<std::string, const char*>> tensor_fields() const;
  /// The modules below, as Python's objects.
  std::vector<std::pair<std::string, py::object>> modules_below() const;

  // A layer's own tensor that was deleted is no parameter any more; it takes any tensor then. Modules that
  // others stand in for are none of its modules; "layers" hides "layers.0" too.
  void hide(const std::string& name) { hidden_.insert(name); }
  void show(const std::string& name) { hidden_.erase(name); }
  bool is_hidden(const std::string& name) const {
    return !hidden_.empty() && (hidden_.contains(name) || hidden_.contains(name.substr(0, name.find('.'))));
  }

  /// The Python object of a layer's own parameter, kept for what is assigned to its attributes.
  py::object keep(const std::string& name, const Tensor& parameter);

  // For Python's collection of cycles.
  int traverse(visitproc visit, void* arg) const;
  void clear() {
    const auto fields = std::exchange(fields_, {});
    const auto kept = std::exchange(kept_, {});
  }

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

  std::vector<std::shared_ptr<Field>> fields_;  ///< what is assigned anew is another Field
  std::map<std::string, py::object> kept_;
  std::set<std::string> hidden_;
};

/// Null where the module has none.
PythonFields* python_fields(const nn::Module& module);
/// The same, made where there are none.
PythonFields& make_python_fields(nn::Module& module);
/// Throws ValueError where `to` would be below itself.
void add_module(nn::Module& to, const std::string& name, py::object module);

/// A module of a class that is written in Python (the alias of nn::Module): all its fields are PythonFields.
class PythonModule final : public nn::Module {
 public:
  PythonModule() { set_added_fields(std::make_shared<PythonFields>()); }

  void collect_fields(nn::Fields&) override {}
  std::string class_name() const override;
  std::string extra_repr() const override;
  /// Takes over what another has: the same tensors, modes, hooks and modules below.
  void become(const PythonModule& other) { *this = PythonModule(other); }
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
/// Functions of Python among a deep copy's hooks are deep copies too: a module's method is one of its copy.
void copy_hooks(nn::Module& module, const py::dict& memo);
/// After all classes of modules are there: Python's collector looks into modules, and one whose __init__ was
/// not called is refused.
void finish_module_classes(py::module_& m);

}  // namespace tern::python
