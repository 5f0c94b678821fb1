// nn.Module: the base of layers and of classes written in Python. Layers are in layers.cpp, lists of modules
// in python/tern/nn/containers.py.
#include "modules.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "bindings.h"
#include "errors.h"
#include "values.h"

namespace tern::python {

// ---- classes written in Python

static thread_local HeldFields* held_fields = nullptr;

HeldFields::HeldFields() : outer_(std::exchange(held_fields, this)) {}
HeldFields::~HeldFields() { held_fields = outer_; }

void PythonModule::put(Field field) {
  auto made = std::make_shared<Field>(std::move(field));
  for (auto& each : fields_)
    if (each->name == made->name) return each.swap(made);  // what was there may call Python when it goes
  fields_.push_back(std::move(made));
}

const PythonModule::Field* PythonModule::find_field(const std::string& name) const {
  for (const auto& field : fields_)
    if (field->name == name) return field.get();
  return nullptr;
}

void PythonModule::set_parameter(const std::string& name, py::object parameter) {
  Field field{name, Kind::Parameter, {}, {}, std::move(parameter)};
  static_cast<Tensor&>(field.parameter) = field.object.cast<Tensor>();
  put(std::move(field));
}

void PythonModule::set_buffer(const std::string& name, const Tensor& buffer, bool persistent) {
  put({name, Kind::Buffer, {}, nn::Buffer(buffer, {.persistent = persistent}), {}});
}

void PythonModule::set_module(const std::string& name, py::object module) {
  if (!module.is_none())
    if (const auto* below = dynamic_cast<const PythonModule*>(&module.cast<nn::Module&>());
        below && below->reaches(*this))
      throw ValueError("'" + name +
                       "': a module can not be below itself; to refer to one above, keep it in a list");
  put({name, Kind::Module, {}, {}, std::move(module)});
}

bool PythonModule::reaches(const PythonModule& other) const {
  std::vector<const PythonModule*> open{this};
  std::set<const PythonModule*> seen;
  while (!open.empty()) {
    const PythonModule* next = open.back();
    open.pop_back();
    if (next == &other) return true;
    if (!seen.insert(next).second) continue;
    for (const auto& field : next->fields_)
      if (field->kind == Kind::Module && !field->object.is_none())
        if (const auto* below = dynamic_cast<const PythonModule*>(&field->object.cast<nn::Module&>()))
          open.push_back(below);
  }
  return false;
}

int PythonModule::traverse(visitproc visit, void* arg) const {
  for (const auto& field : fields_) Py_VISIT(field->object.ptr());
  return 0;
}

std::optional<py::object> PythonModule::find(const std::string& name) const {
  const Field* field = find_field(name);
  if (!field) return std::nullopt;
  switch (field->kind) {
    case Kind::Parameter:
      if (field->object && field->object.cast<Tensor>().is_same(field->parameter)) return field->object;
      return py::cast(field->parameter);
    case Kind::Buffer:
      return py::cast(static_cast<const Tensor&>(field->buffer));
    case Kind::Module:
      return field->object;
  }
  return std::nullopt;
}

bool PythonModule::has_buffer(const std::string& name) const {
  const Field* field = find_field(name);
  return field && field->kind == Kind::Buffer;
}

bool PythonModule::has_module(const std::string& name) const {
  const Field* field = find_field(name);
  return field && field->kind == Kind::Module;
}

bool PythonModule::is_saved(const std::string& name) const {
  const Field* field = find_field(name);
  return field && field->buffer.persistent;
}

PythonModule::PythonModule(const PythonModule& other) : nn::Module(other) {
  for (const auto& field : other.fields_) fields_.push_back(std::make_shared<Field>(*field));
}

bool PythonModule::remove(const std::string& name) {
  const auto found =
      std::find_if(fields_.begin(), fields_.end(), [&](const auto& field) { return field->name == name; });
  if (found == fields_.end()) return false;
  const std::shared_ptr<Field> removed = std::move(*found);  // what it held may call Python when it goes
  fields_.erase(found);
  return true;
}

std::vector<std::pair<std::string, py::object>> PythonModule::modules_below() const {
  std::vector<std::pair<std::string, py::object>> modules;
  for (const auto& field : fields_)
    if (field->kind == Kind::Module) modules.emplace_back(field->name, field->object);
  return modules;
}

std::vector<std::pair<std::string, const char*>> PythonModule::tensor_fields() const {
  std::vector<std::pair<std::string, const char*>> names;
  for (const auto& field : fields_)
    if (field->kind == Kind::Parameter)
      names.emplace_back(field->name, "parameter");
    else if (field->kind == Kind::Buffer)
      names.emplace_back(field->name, field->buffer.persistent ? "buffer" : "not saved");
  return names;
}

void PythonModule::collect_fields(nn::Fields& fields) {
  const py::gil_scoped_acquire gil;
  if (held_fields) held_fields->fields.insert(held_fields->fields.end(), fields_.begin(), fields_.end());
  for (const auto& field : fields_) switch (field->kind) {
      case Kind::Parameter:
        fields.add(field->name, field->parameter);
        break;
      case Kind::Buffer:
        fields.add(field->name, field->buffer);
        break;
      case Kind::Module:
        if (!field->object.is_none()) fields.add(field->name, field->object.cast<nn::Module&>());
        break;
    }
}

std::string PythonModule::class_name() const {
  const py::gil_scoped_acquire gil;
  const py::object object = existing_object(*this);
  return object ? py::type::of(object).attr("__name__").cast<std::string>() : "Module";
}

std::string PythonModule::extra_repr() const {
  const py::gil_scoped_acquire gil;
  const py::function written = py::get_override(static_cast<const nn::Module*>(this), "extra_repr");
  return written ? std::string(py::str(written())) : std::string();
}

py::object existing_object(const nn::Module& module) {
  const auto* type = reinterpret_cast<PyTypeObject*>(py::type::of<nn::Module>().ptr());
  auto [next, end] = py::detail::get_internals().registered_instances.equal_range(&module);
  for (; next != end; ++next) {
    auto* object = reinterpret_cast<PyObject*>(next->second);
    if (PyObject_TypeCheck(object, const_cast<PyTypeObject*>(type)))
      return py::reinterpret_borrow<py::object>(object);
  }
  return {};
}

py::object module_object(const nn::Module& module, const py::object& owner) {
  if (py::object object = existing_object(module)) return object;
  const auto owned_by = owner.cast<std::shared_ptr<nn::Module>>();
  return py::cast(std::shared_ptr<nn::Module>(owned_by, const_cast<nn::Module*>(&module)));
}

namespace {

// ---- attributes

PythonModule* as_python(nn::Module& module) { return dynamic_cast<PythonModule*>(&module); }

/// The module of an object whose class may have forgotten to call __init__ of its base.
nn::Module& made(py::handle self) {
  if (!reinterpret_cast<py::detail::instance*>(self.ptr())->get_value_and_holder().holder_constructed()) {
    PyErr_SetString(PyExc_AttributeError,
                    ("super().__init__() must be called in " + std::string(Py_TYPE(self.ptr())->tp_name) +
                     ".__init__() before anything is assigned to its attributes")
                        .c_str());
    throw py::error_already_set();
  }
  return self.cast<nn::Module&>();
}

/// Parameters, buffers and modules become fields, everything else an attribute of Python.
void set_attribute(py::object self, const std::string& name, py::object value) {
  nn::Module& module = made(self);
  PythonModule* own = as_python(module);
  const bool is_module = py::isinstance<nn::Module>(value);
  if (own) {
    const bool is_tensor = py::isinstance<TensorImpl>(value);
    auto hide_attribute = [&] {
      const py::dict attributes = self.attr("__dict__");
      if (attributes.contains(name)) PyDict_DelItemString(attributes.ptr(), name.c_str());
    };
    if (is_parameter(value)) {
      hide_attribute();
      return own->set_parameter(name, value);
    }
    if (is_module) {
      hide_attribute();
      return own->set_module(name, value);
    }
    if (const std::optional<py::object> field = own->find(name)) {
      if (own->has_buffer(name) && (is_tensor || value.is_none()))
        return own->set_buffer(name, value.cast<Tensor>(), own->is_saved(name));
      if (value.is_none()) {
        if (own->has_module(name)) return own->set_module(name, value);
        return own->set_parameter(name, value);
      }
      const char* kind = own->has_buffer(name)   ? "a buffer (a tensor or None expected)"
                         : own->has_module(name) ? "a module (nn.Module or None expected)"
                                                 : "a parameter (nn.Parameter or None expected)";
      throw TypeError("cannot assign '" + std::string(Py_TYPE(value.ptr())->tp_name) + "' to '" + name +
                      "', which is " + kind);
    }
  } else if ((is_module || is_parameter(value)) && !py::hasattr(py::type::of(self), name.c_str())) {
    throw TypeError("'" + module.class_name() + "' is a layer with fields of its own, to which '" + name +
                    "' can not be added; hold the layer in a class derived from nn.Module");
  }
  if (PyObject_GenericSetAttr(self.ptr(), py::str(name).ptr(), value.ptr()) != 0)
    throw py::error_already_set();
}

/// Called for what is no attribute of Python.
py::object get_attribute(py::object self, const std::string& name) {
  nn::Module& module = made(self);
  if (PythonModule* own = as_python(module))
    if (std::optional<py::object> field = own->find(name)) return *field;
  const nn::Fields fields = module.fields();  // also those that take the place of a field, as weight_g
  for (const auto& [child, below] : fields.modules)
    if (child == name) return module_object(*below, self);
  for (const auto& [own, parameter] : fields.parameters)
    if (own == name) return parameter_object(*parameter);
  for (const auto& [own, buffer] : fields.buffers)
    if (own == name) return py::cast(static_cast<const Tensor&>(*buffer));
  PyErr_SetString(PyExc_AttributeError,
                  ("'" + module.class_name() + "' object has no attribute '" + name + "'").c_str());
  throw py::error_already_set();
}

void delete_attribute(py::object self, const std::string& name) {
  PythonModule* own = as_python(made(self));
  if (own && own->remove(name)) return;
  if (PyObject_GenericSetAttr(self.ptr(), py::str(name).ptr(), nullptr) != 0) throw py::error_already_set();
}

PythonModule& python_module(nn::Module& module, const char* function) {
  if (PythonModule* own = as_python(module)) return *own;
  throw TypeError(std::string(function) + ": '" + module.class_name() +
                  "' is a layer with fields of its own");
}

// ---- lists

template <class T>
py::iterator iterate(const T& items) {
  return py::iter(py::cast(items));
}

py::iterator named_parameters(const nn::Module& module, const std::string& prefix, bool recurse) {
  py::list list;
  for (const auto& [name, parameter] : module.named_parameters(recurse))
    list.append(py::make_tuple(prefix.empty() ? name : prefix + "." + name, parameter_object(parameter)));
  return py::iter(list);
}

/// Modules with their paths from `root`, as Python's objects; each once. Those that C++ made inside others
/// keep the nearest one above alive that has an object.
py::list named_modules(const py::object& root,
                       const std::vector<std::pair<std::string, nn::Module*>>& modules,
                       bool remove_duplicate) {
  py::list list;
  std::unordered_map<std::string, py::object> objects{{"", root}};
  std::set<const nn::Module*> seen;
  for (const auto& [path, module] : modules) {
    if (!seen.insert(module).second && remove_duplicate) continue;
    std::string above = path;
    while (!objects.contains(above)) {
      const size_t dot = above.rfind('.');
      above.resize(dot == std::string::npos ? 0 : dot);
    }
    list.append(py::make_tuple(path, objects[path] = module_object(*module, objects[above])));
  }
  return list;
}

/// The remedies that an error of C++ names, as they are written here.
std::string in_python(std::string text) {
  const std::pair<const char*, const char*> words[] = {
      {".on_mismatch = OnMismatch::Skip", "on_mismatch=\"skip\""}, {".prefix = ", "prefix="}};
  for (const auto& [ours, pythons] : words)
    for (size_t place = 0; (place = text.find(ours, place)) != std::string::npos;)
      text.replace(place, std::string_view(ours).size(), pythons);
  return text;
}

void check_new_name(const py::object& self, const std::string& name, const char* what) {
  const auto refuse = [&](const std::string& text) { throw py::key_error(text); };
  if (name.empty()) refuse(std::string(what) + " name can't be empty string \"\"");
  if (name.find('.') != std::string::npos)
    refuse(std::string(what) + " name can't contain \".\", got: " + name);
  const PythonModule* own = as_python(self.cast<nn::Module&>());
  if (own && !own->find(name) && py::hasattr(self, name.c_str()))
    refuse("attribute '" + name + "' already exists");
}

}  // namespace

void bind_modules(py::module_& m) {
  py::class_<nn::IncompatibleKeys>(m, "IncompatibleKeys")
      .def_readonly("missing_keys", &nn::IncompatibleKeys::missing_keys)
      .def_readonly("unexpected_keys", &nn::IncompatibleKeys::unexpected_keys)
      .def_readonly("mismatched", &nn::IncompatibleKeys::mismatched)
      .def("__repr__", &nn::IncompatibleKeys::str)
      .def("__iter__", [](const nn::IncompatibleKeys& self) {
        return py::iter(py::make_tuple(self.missing_keys, self.unexpected_keys));
      });

  ModuleClass c(m, "Module", py::dynamic_attr(),
                "Base of layers and networks: derive a class, make layers in __init__, and write forward().");
  c.def(py::init_alias<>());
  // For copies (nn/copies.py): the same tensors, modes, hooks, and for now the same modules below.
  c.def("_init_as", [](py::object self, nn::Module& other) {
    auto& into = python_module(self.cast<nn::Module&>(), "copy");
    into.become(python_module(other, "copy"));
  });
  c.def("__call__", &call_module);
  c.def("_call_python", &call_module);
  c.def("forward", [](const nn::Module& self, py::args, py::kwargs) -> py::object {
    throw NotImplementedError("Module [" + self.class_name() +
                              "] is missing the required \"forward\" function");
  });
  c.def("__setattr__", &set_attribute);
  c.def("__getattr__", &get_attribute);
  c.def("__delattr__", &delete_attribute);
  c.def("_str", [](const nn::Module& self) { return self.str(); });
  c.def("__dir__", [](py::object self) {
    py::list names = imported("builtins", "object").attr("__dir__")(self);
    const nn::Fields fields = self.cast<nn::Module&>().fields();
    const auto add = [&](const auto& list) {
      for (const auto& [name, field] : list) names.append(name);
    };
    add(fields.parameters), add(fields.buffers), add(fields.modules);
    return names;
  });
  c.def("extra_repr", [](const nn::Module& self) {
    return dynamic_cast<const PythonModule*>(&self) ? std::string() : self.extra_repr();
  });
  c.def("_class_name", [](const nn::Module& self) { return self.class_name(); });

  c.def(
      "register_parameter",
      [](py::object self, const std::string& name, py::object parameter) {
        PythonModule& own = python_module(self.cast<nn::Module&>(), "register_parameter");
        if (!parameter.is_none() && !is_parameter(parameter))
          throw TypeError("register_parameter: '" + name + "' needs an nn.Parameter or None, got '" +
                          Py_TYPE(parameter.ptr())->tp_name + "'");
        check_new_name(self, name, "parameter");
        own.set_parameter(name, std::move(parameter));
      },
      py::arg("name"), py::arg("param"));
  c.def(
      "register_buffer",
      [](py::object self, const std::string& name, const Tensor& tensor, bool persistent) {
        PythonModule& own = python_module(self.cast<nn::Module&>(), "register_buffer");
        check_new_name(self, name, "buffer");
        own.set_buffer(name, tensor, persistent);
      },
      py::arg("name"), py::arg("tensor"), py::arg("persistent") = true);
  for (const char* name : {"register_module", "add_module"})
    c.def(
        name,
        [](py::object self, const std::string& child, py::object module) {
          PythonModule& own = python_module(self.cast<nn::Module&>(), "add_module");
          if (!module.is_none() && !py::isinstance<nn::Module>(module))
            throw TypeError("add_module: '" + std::string(Py_TYPE(module.ptr())->tp_name) + "' is no module");
          check_new_name(self, child, "module");
          own.set_module(child, std::move(module));
        },
        py::arg("name"), py::arg("module"));
  // For replicas: whatever tensor, in the place of a parameter.
  c.def("_set_tensor", [](nn::Module& self, const std::string& name, py::object tensor) {
    python_module(self, "_set_tensor").set_parameter(name, std::move(tensor));
  });
  c.def("_is_python", [](nn::Module& self) { return as_python(self) != nullptr; });
  c.def("_modules_below",
        [](nn::Module& self) { return python_module(self, "_modules_below").modules_below(); });
  c.def("_tensor_fields", [](nn::Module& self) {
    std::vector<std::pair<std::string, const char*>> names;
    if (const PythonModule* own = as_python(self)) return own->tensor_fields();
    const nn::Fields fields = self.fields();
    for (const auto& [name, parameter] : fields.parameters) names.emplace_back(name, "parameter");
    for (const auto& [name, buffer] : fields.buffers)
      names.emplace_back(name, buffer->persistent ? "buffer" : "not saved");
    return names;
  });

  c.def(
      "parameters",
      [](const nn::Module& self, bool recurse) {
        py::list list;
        for (const Tensor& parameter : self.parameters(recurse)) list.append(parameter_object(parameter));
        return py::iter(list);
      },
      py::arg("recurse") = true);
  c.def("named_parameters", &named_parameters, py::arg("prefix") = "", py::arg("recurse") = true);
  c.def(
      "buffers", [](const nn::Module& self, bool recurse) { return iterate(self.buffers(recurse)); },
      py::arg("recurse") = true);
  c.def(
      "named_buffers",
      [](const nn::Module& self, bool recurse) { return iterate(self.named_buffers(recurse)); },
      py::arg("recurse") = true);
  c.def("_named_children", [](py::object self) {
    return named_modules(self, self.cast<nn::Module&>().named_children(), /*remove_duplicate=*/true);
  });
  c.def("_named_modules", [](py::object self, bool remove_duplicate) {
    return named_modules(self, self.cast<nn::Module&>().named_modules(), remove_duplicate);
  });

  const auto to = [](py::object self, std::optional<Device> device, std::optional<DType> dtype, bool) {
    auto& module = self.cast<nn::Module&>();
    const HeldFields held;
    const py::gil_scoped_release no_gil;
    if (device) module.to(*device);
    if (dtype) module.to(*dtype);
    return self;
  };
  c.def(
      "to", [to](py::object self, DType dtype, bool) { return to(std::move(self), {}, dtype, false); },
      py::arg("dtype"), py::arg("non_blocking") = false);
  c.def("to", to, py::arg("device") = py::none(), py::arg("dtype") = py::none(),
        py::arg("non_blocking") = false);
  c.def(
      "to",
      [to](py::object self, const Tensor& like) {
        return to(std::move(self), like.device(), like.dtype(), false);
      },
      py::arg("tensor").none(false));
  c.def("cpu", [to](py::object self) { return to(std::move(self), kCPU, {}, false); });
  c.def(
      "cuda",
      [to](py::object self, std::optional<Device> device) {
        return to(std::move(self), device.value_or(Device(DeviceType::CUDA, -1)), {}, false);
      },
      py::arg("device") = py::none());
  const std::pair<const char*, DType> conversions[] = {{"float", DType::Float32},
                                                       {"double", DType::Float64},
                                                       {"half", DType::Float16},
                                                       {"bfloat16", DType::BFloat16}};
  for (const auto& [name, dtype] : conversions)
    c.def(name, [to, dtype = dtype](py::object self) { return to(std::move(self), {}, dtype, false); });

  c.def("_train_all", [](nn::Module& self, bool mode) { self.train(mode); });
  c.def_property(
      "training", [](const nn::Module& self) { return self.is_training(); },
      [](nn::Module& self, bool mode) {
        std::vector<std::pair<nn::Module*, bool>> below;  // which stay as they are
        for (nn::Module* module : self.modules())
          if (module != &self) below.emplace_back(module, module->is_training());
        self.train(mode);
        for (const auto& [module, before] : below) module->train(before);
      });
  c.def(
      "zero_grad", [](nn::Module& self, bool set_to_none) { self.zero_grad(set_to_none); },
      py::arg("set_to_none") = true);
  c.def(
      "requires_grad_",
      [](py::object self, bool requires_grad) {
        self.cast<nn::Module&>().requires_grad_(requires_grad);
        return self;
      },
      py::arg("requires_grad") = true);
  c.def(
      "_state_dict",
      [](const nn::Module& self, const std::string& prefix) {
        return state_dict_to_python(self.state_dict(), prefix);
      },
      py::arg("prefix") = "");
  c.def(
      "load_state_dict",
      [](nn::Module& self, py::object dict, bool strict, bool assign, const std::string& prefix,
         const std::string& on_mismatch) {
        if (on_mismatch != "error" && on_mismatch != "skip")
          throw ValueError("load_state_dict: on_mismatch is 'error' or 'skip', not '" + on_mismatch + "'");
        const StateDict state = state_dict_from_python(dict);
        const HeldFields held;
        const py::gil_scoped_release no_gil;
        try {
          return self.load_state_dict(
              state, {.strict = strict,
                      .prefix = prefix,
                      .assign = assign,
                      .on_mismatch = on_mismatch == "skip" ? nn::OnMismatch::Skip : nn::OnMismatch::Error});
        } catch (const CheckpointError& error) {
          throw CheckpointError(in_python(error.message()));
        }
      },
      py::arg("state_dict"), py::arg("strict") = true, py::arg("assign") = false, py::arg("prefix") = "",
      py::arg("on_mismatch") = "error",
      "Copies the tensors of the dict into the module's. prefix='module.' takes off what DataParallel put "
      "before the names, prefix='auto' whatever wrapper is recognised. on_mismatch='skip' leaves tensors "
      "whose "
      "sizes do not fit as they are, and names them in the result's `mismatched`.");
  bind_hooks(c);
}

}  // namespace tern::python
