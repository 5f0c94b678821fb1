// nn.Module: the base of layers and of classes written in Python. Layers are in layers.cpp, lists of modules
// in python/tern/nn/containers.py.
#include "modules.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "bindings.h"
#include "errors.h"
#include "layers.h"
#include "tern/nn/whole_shapes.h"
#include "values.h"

namespace tern::python {

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

namespace {

/// Whether the class of a layer's object, which there may be none of, has a forward() that is written in
/// Python.
bool has_own_forward(const nn::Module& module, const py::object& object) {
  const auto* layer = py::detail::get_type_info(typeid(module));
  if (!object || !layer) return false;
  const py::handle base = reinterpret_cast<PyObject*>(layer->type);
  return !py::type::of(object).attr("forward").is(base.attr("forward"));
}

}  // namespace

void check_forward(const char* what, const nn::Module& module) {
  const py::object object = existing_object(module);
  if (has_own_forward(module, object))
    throw TypeError(
        std::string(what) + ": " + Py_TYPE(object.ptr())->tp_name +
        " has a forward() of its own, which a layer of C++ would not call: write the layer around it "
        "in Python too, with nn.ModuleList for several");
}

py::object replacement_of(const nn::Module& layer, const char* name) {
  const PythonFields* fields = python_fields(layer);
  return fields && fields->is_hidden(name) ? fields->find(name).value_or(py::none()) : py::object();
}

void replace_module(nn::Module& layer, const char* name, py::object value) {
  if (!value.is_none() && !py::isinstance<nn::Module>(value))
    throw TypeError("cannot assign '" + std::string(Py_TYPE(value.ptr())->tp_name) + "' as child module '" +
                    name + "' (nn.Module or None expected)");
  if (!has_own_forward(layer, existing_object(layer)))
    throw TypeError(std::string(name) + ": the forward() of " + layer.class_name() +
                    " calls a module of another class there than " + Py_TYPE(value.ptr())->tp_name +
                    ": derive a class with a forward() of its own");
  add_module(layer, name, std::move(value));
  make_python_fields(layer).hide(name);
}

void restore_module(nn::Module& layer, const char* name) {
  if (PythonFields* fields = python_fields(layer); fields && fields->is_hidden(name)) {
    fields->remove(name);
    fields->show(name);
  }
}

py::object module_object(const nn::Module& module, const py::object& owner) {
  if (py::object object = existing_object(module)) return object;
  const auto owned_by = owner.cast<std::shared_ptr<nn::Module>>();
  return py::cast(std::shared_ptr<nn::Module>(owned_by, const_cast<nn::Module*>(&module)));
}

namespace {

// ---- attributes

bool is_python(const nn::Module& module) { return dynamic_cast<const PythonModule*>(&module); }

bool is_made(py::handle self) {
  return reinterpret_cast<py::detail::instance*>(self.ptr())->get_value_and_holder().holder_constructed();
}

/// The module of an object whose class may have forgotten to call __init__ of its base.
nn::Module& made(py::handle self) {
  if (!is_made(self)) {
    PyErr_SetString(PyExc_AttributeError,
                    ("super().__init__() must be called in " + std::string(Py_TYPE(self.ptr())->tp_name) +
                     ".__init__() before parameters and modules are assigned to its attributes")
                        .c_str());
    throw py::error_already_set();
  }
  return self.cast<nn::Module&>();
}

/// Whether the class has a property of this name, as layers have for their own fields.
bool has_property(py::handle self, const std::string& name) {
  PyObject* found = _PyType_Lookup(Py_TYPE(self.ptr()), py::str(name).ptr());
  return found && Py_TYPE(found)->tp_descr_set;
}

/// A parameter or buffer among the layer's own fields, computed and deleted ones too; null where there is
/// none.
Tensor* own_tensor(nn::Module& module, const std::string& name) {
  nn::Fields own;
  module.collect_fields(own);
  for (const auto& [field, parameter] : own.parameters)
    if (field == name) return parameter;
  for (const auto& [field, buffer] : own.buffers)
    if (field == name) return buffer;
  return nullptr;
}

bool has_own_module(nn::Module& module, const std::string& name) {
  nn::Fields own;
  module.collect_fields(own);
  return std::any_of(own.modules.begin(), own.modules.end(),
                     [&](const auto& field) { return field.first == name; });
}

void set_generic(const py::object& self, const std::string& name, PyObject* value) {
  if (PyObject_GenericSetAttr(self.ptr(), py::str(name).ptr(), value) != 0) throw py::error_already_set();
}

/// A value for a field of Python's that is there already.
void set_field(PythonFields& fields, const std::string& name, const py::object& value) {
  const bool is_tensor = py::isinstance<TensorImpl>(value);
  if (fields.has_buffer(name) && (is_tensor || value.is_none()))
    return fields.set_buffer(name, value.cast<Tensor>(), fields.is_saved(name));
  if (value.is_none()) {
    if (fields.has_module(name)) return fields.set_module(name, value);
    return fields.set_parameter(name, value);
  }
  const char* kind = fields.has_buffer(name)   ? "a buffer (a tensor or None expected)"
                     : fields.has_module(name) ? "a module (nn.Module or None expected)"
                                               : "a parameter (nn.Parameter or None expected)";
  throw TypeError("cannot assign '" + std::string(Py_TYPE(value.ptr())->tp_name) + "' to '" + name +
                  "', which is " + kind);
}

/// Parameters, buffers and modules become fields, everything else an attribute of Python.
void set_attribute(py::object self, const std::string& name, py::object value) {
  const bool is_module = py::isinstance<nn::Module>(value), is_tensor = py::isinstance<TensorImpl>(value);
  if (!is_made(self) && !is_module && !is_parameter(value)) return set_generic(self, name, value.ptr());
  nn::Module& module = made(self);
  if (has_property(self, name)) return set_generic(self, name, value.ptr());
  if (!is_python(module)) {
    if (Tensor* own = is_tensor || value.is_none() ? own_tensor(module, name) : nullptr) {
      check_parameter(module, name.c_str(), value);
      *own = value.cast<Tensor>();
      return;
    }
    if (is_module && has_own_module(module, name))
      throw TypeError("'" + name + "' of '" + module.class_name() +
                      "' is a layer of its own, in whose place no other can be put");
  }
  if (is_module || is_parameter(value)) {
    const py::dict attributes = self.attr("__dict__");
    if (attributes.contains(name)) PyDict_DelItemString(attributes.ptr(), name.c_str());
    return is_module ? add_module(module, name, value)
                     : make_python_fields(module).set_parameter(name, value);
  }
  PythonFields* fields = python_fields(module);
  if (fields && fields->find(name)) return set_field(*fields, name, value);
  set_generic(self, name, value.ptr());
}

/// Called for what is no attribute of Python.
py::object get_attribute(py::object self, const std::string& name) {
  nn::Module& module = made(self);
  if (const PythonFields* added = python_fields(module))
    if (std::optional<py::object> field = added->find(name)) return *field;
  const nn::Fields fields = module.fields();  // also those that take the place of a field, as weight_g
  for (const auto& [child, below] : fields.modules)
    if (child == name) return module_object(*below, self);
  for (const auto& [own, parameter] : fields.parameters)
    if (own == name) return kept_parameter(module, name, *parameter);
  for (const auto& [own, buffer] : fields.buffers)
    if (own == name) return py::cast(static_cast<const Tensor&>(*buffer));
  if (const Tensor* own = own_tensor(module, name)) return py::cast(*own);
  PyErr_SetString(PyExc_AttributeError,
                  ("'" + module.class_name() + "' object has no attribute '" + name + "'").c_str());
  throw py::error_already_set();
}

void delete_attribute(py::object self, const std::string& name) {
  nn::Module& module = made(self);
  if (PythonFields* added = python_fields(module); added && added->remove(name)) return;
  if (own_tensor(module, name)) return make_python_fields(module).hide(name);
  set_generic(self, name, nullptr);
}

// ---- lists

template <class T>
py::iterator iterate(const T& items) {
  return py::iter(py::cast(items));
}

/// Calls `f(path, object)` for the parameters of a module, each once, in the order of C++.
template <class F>
void each_parameter(const nn::Module& root, bool recurse, F f) {
  std::set<const TensorImpl*> seen;
  for (const auto& [path, module] : root.named_modules()) {
    const PythonFields* added = python_fields(*module);
    for (const auto& [name, parameter] : module->fields().parameters) {
      if (!seen.insert(&parameter->impl()).second) continue;
      const std::optional<py::object> own = added ? added->find(name) : std::nullopt;
      f(path.empty() ? name : path + "." + name, own ? *own : kept_parameter(*module, name, *parameter));
    }
    if (!recurse) return;
  }
}

py::iterator named_parameters(const nn::Module& module, const std::string& prefix, bool recurse) {
  py::list list;
  each_parameter(module, recurse, [&](const std::string& name, const py::object& parameter) {
    list.append(py::make_tuple(prefix.empty() ? name : prefix + "." + name, parameter));
  });
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
  const PythonFields* fields = python_fields(self.cast<nn::Module&>());
  if (!(fields && fields->find(name)) && py::hasattr(self, name.c_str()))
    refuse("attribute '" + name + "' already exists");
}

}  // namespace

void bind_modules(py::module_& m) {
  using Names = std::vector<std::string>;
  py::class_<nn::IncompatibleKeys>(m, "IncompatibleKeys")
      .def(py::init([](Names missing, Names unexpected) {
             return nn::IncompatibleKeys{std::move(missing), std::move(unexpected), {}, {}};
           }),
           py::arg("missing_keys"), py::arg("unexpected_keys"))
      .def_readonly("missing_keys", &nn::IncompatibleKeys::missing_keys)
      .def_readonly("unexpected_keys", &nn::IncompatibleKeys::unexpected_keys)
      .def_readonly("mismatched", &nn::IncompatibleKeys::mismatched)
      .def_readonly("reasons", &nn::IncompatibleKeys::reasons)
      .def("__repr__", &nn::IncompatibleKeys::str)
      .def("__iter__", [](const nn::IncompatibleKeys& self) {
        return py::iter(py::make_tuple(self.missing_keys, self.unexpected_keys));
      });

  ModuleClass c(m, "Module", py::dynamic_attr(),
                "Base of layers and networks: derive a class, make layers in __init__, and write forward().");
  c.def(py::init_alias<>());
  // For copies (nn/copies.py): the same tensors, modes, hooks, and for now the same modules below.
  c.def("_init_as", [](py::object self, nn::Module& other) {
    dynamic_cast<PythonModule&>(self.cast<nn::Module&>()).become(dynamic_cast<PythonModule&>(other));
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
    const nn::detail::WholeShapes shapes(self);
    return dynamic_cast<const PythonModule*>(&self) ? std::string() : self.extra_repr();
  });
  c.def_property_readonly("_version", [](const nn::Module& self) { return self.state_version(); });
  c.def("_class_name", [](const nn::Module& self) { return self.class_name(); });

  c.def(
      "register_parameter",
      [](py::object self, const std::string& name, py::object parameter) {
        if (!parameter.is_none() && !is_parameter(parameter))
          throw TypeError("register_parameter: '" + name + "' needs an nn.Parameter or None, got '" +
                          Py_TYPE(parameter.ptr())->tp_name + "'");
        if (own_tensor(self.cast<nn::Module&>(), name) || has_property(self, name))
          return set_attribute(self, name, std::move(parameter));
        check_new_name(self, name, "parameter");
        make_python_fields(self.cast<nn::Module&>()).set_parameter(name, std::move(parameter));
      },
      py::arg("name"), py::arg("param"));
  c.def(
      "register_buffer",
      [](py::object self, const std::string& name, const Tensor& tensor, bool persistent) {
        check_new_name(self, name, "buffer");
        make_python_fields(self.cast<nn::Module&>()).set_buffer(name, tensor, persistent);
      },
      py::arg("name"), py::arg("tensor"), py::arg("persistent") = true);
  for (const char* name : {"register_module", "add_module"})
    c.def(
        name,
        [](py::object self, const std::string& child, py::object module) {
          if (!module.is_none() && !py::isinstance<nn::Module>(module))
            throw TypeError("add_module: '" + std::string(Py_TYPE(module.ptr())->tp_name) + "' is no module");
          if (has_own_module(self.cast<nn::Module&>(), child)) return set_attribute(self, child, module);
          check_new_name(self, child, "module");
          add_module(self.cast<nn::Module&>(), child, std::move(module));
        },
        py::arg("name"), py::arg("module"));
  // For replicas: whatever tensor, in the place of a parameter or buffer.
  c.def("_set_tensor", [](nn::Module& self, const std::string& name, py::object tensor) {
    Tensor* own = own_tensor(self, name);
    const PythonFields* added = python_fields(self);
    if (!own && !(added && added->find(name))) {
      const nn::Fields all = self.fields();  // also what a weight is computed from
      for (const auto& [field, parameter] : all.parameters)
        if (field == name) own = parameter;
      for (const auto& [field, buffer] : all.buffers)
        if (field == name) own = buffer;
    }
    if (own)
      *own = tensor.cast<Tensor>();
    else
      make_python_fields(self).set_parameter(name, std::move(tensor));
  });
  c.def("_own_tensors", [](nn::Module& self) {
    nn::Fields own;
    self.collect_fields(own);
    std::vector<std::string> names;
    for (const auto& [name, parameter] : own.parameters) names.push_back(name);
    for (const auto& [name, buffer] : own.buffers) names.push_back(name);
    return names;
  });
  c.def("_is_python", [](nn::Module& self) { return is_python(self); });
  // Modules that Python added, and all with those of the layer's own; also such as are None.
  c.def("_modules_added", [](nn::Module& self) {
    const PythonFields* added = python_fields(self);
    return added ? added->modules_below() : decltype(added->modules_below())();
  });
  c.def("_modules_below", [](py::object self) {
    auto& module = self.cast<nn::Module&>();
    nn::Fields own;
    module.collect_fields(own);
    std::vector<std::pair<std::string, py::object>> all;
    const PythonFields* added = python_fields(module);
    for (const auto& [name, below] : own.modules)
      if (!added || !added->is_hidden(name)) all.emplace_back(name, module_object(*below, self));
    if (added)
      for (auto& field : added->modules_below()) all.push_back(std::move(field));
    return all;
  });
  c.def("_tensor_fields", [](nn::Module& self) {
    const PythonFields* added = python_fields(self);
    std::vector<std::pair<std::string, const char*>> names, after;
    if (added) after = added->tensor_fields();
    if (is_python(self)) return after;
    const auto add = [&](const std::string& name, const char* kind) {
      if (!added || !added->find(name)) names.emplace_back(name, kind);
    };
    const nn::Fields fields = self.fields();
    for (const auto& [name, parameter] : fields.parameters) add(name, "parameter");
    for (const auto& [name, buffer] : fields.buffers) add(name, buffer->persistent ? "buffer" : "not saved");
    names.insert(names.end(), after.begin(), after.end());
    return names;
  });

  c.def(
      "parameters",
      [](const nn::Module& self, bool recurse) {
        py::list list;
        each_parameter(self, recurse,
                       [&](const std::string&, const py::object& parameter) { list.append(parameter); });
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

  // Memory formats are for tensors; what is in a module stays row-major, as its kernels want it.
  const auto to = [](py::object self, std::optional<Device> device, std::optional<DType> dtype, bool,
                     MemoryFormat = MemoryFormat::Preserve) {
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
        py::arg("non_blocking") = false, py::kw_only(), py::arg("memory_format") = MemoryFormat::Preserve);
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
