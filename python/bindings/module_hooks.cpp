// Calls of modules: hooks that are Python's functions, and what Python's collector of cycles sees of a
// module.
#include <algorithm>

#include "bindings.h"
#include "errors.h"
#include "modules.h"

namespace tern::python {

namespace {

// ---- hooks

/// A Python function inside a hook. Each copy of the hook has a reference of its own, so that the collector,
/// which visits those in a module's lists, takes all others for uses from outside.
class HeldFunction {
 public:
  HeldFunction(py::function function, bool keywords)
      : with_kwargs(keywords), function_(std::move(function)) {}
  HeldFunction(HeldFunction&& other) noexcept = default;
  HeldFunction(const HeldFunction& other) : with_kwargs(other.with_kwargs) {
    const py::gil_scoped_acquire gil;
    function_ = other.function_;
  }
  HeldFunction& operator=(const HeldFunction&) = delete;
  ~HeldFunction() {
    if (!function_) return;
    const py::gil_scoped_acquire gil;
    function_.release().dec_ref();
  }
  template <class... Args>
  py::object operator()(Args&&... args) const {
    return function_(std::forward<Args>(args)...);
  }
  PyObject* ptr() const { return function_.ptr(); }

  const bool with_kwargs;

 private:
  py::function function_;
};

py::tuple one(const Tensor& tensor) { return py::make_tuple(tensor); }

/// What a hook returned as a tensor; nothing for None.
Tensor tensor_of(py::object result, const char* hook) {
  if (py::isinstance<py::tuple>(result) && py::len(result) == 1) result = result.cast<py::tuple>()[0];
  if (result.is_none()) return Tensor();
  if (py::isinstance<TensorImpl>(result)) return result.cast<Tensor>();
  throw TypeError(std::string(hook) + ": the hook returned '" + Py_TYPE(result.ptr())->tp_name +
                  "', expected a tensor or None");
}

/// What the kinds of hooks share.
struct PythonHook {
  HeldFunction function;
  std::weak_ptr<nn::Module> module;
  const nn::Module* address;  ///< of this module; a copy of it has the same hooks, and another address

  py::object object_of(const nn::Module& called) const {
    if (&called == address) {  // in backward it may be gone
      const std::shared_ptr<nn::Module> alive = module.lock();
      return alive ? py::cast(alive) : py::none();
    }
    if (py::object object = existing_object(called)) return object;
    return py::cast(const_cast<nn::Module*>(&called), py::return_value_policy::reference);
  }
};
/// Of one tensor: before forward, and before backward.
struct HookBefore : PythonHook {
  Tensor operator()(const nn::Module& called, const Tensor& tensor) const {
    const py::gil_scoped_acquire gil;
    return tensor_of(function(object_of(called), one(tensor)), "pre hook");
  }
};
struct HookAfterForward : PythonHook {
  Tensor operator()(const nn::Module& called, const Tensor& input, const Tensor& output) const {
    const py::gil_scoped_acquire gil;
    return tensor_of(function(object_of(called), one(input), output), "register_forward_hook");
  }
};
struct HookAfterBackward : PythonHook {
  Tensor operator()(const nn::Module& called, const Tensor& grad_input, const Tensor& grad_output) const {
    const py::gil_scoped_acquire gil;
    return tensor_of(function(object_of(called), one(grad_input), one(grad_output)),
                     "register_full_backward_hook");
  }
};

// ---- calls

/// The place of the first tensor among the items of a tuple.
std::optional<size_t> first_tensor(const py::tuple& items) {
  for (size_t i = 0; i < items.size(); ++i)
    if (py::isinstance<TensorImpl>(items[i])) return i;
  return std::nullopt;
}

/// The tuple with another item at this place.
py::tuple with_item(const py::tuple& items, size_t place, py::object item) {
  py::list list(items);
  list[place] = std::move(item);
  return py::tuple(list);
}

py::tuple as_tuple(py::object value) {
  return py::isinstance<py::tuple>(value) ? value.cast<py::tuple>() : py::make_tuple(std::move(value));
}

/// The arguments after the hooks. Python's see and replace all that stand by position, C++'s the first
/// tensor.
void run_before(const nn::detail::ModuleHooks& hooks, const py::object& self, py::tuple& arguments,
                py::dict& named) {
  const auto before = hooks.before;  // a hook may take itself away
  for (const auto& [number, hook] : before) {
    if (const auto* own = hook.target<HookBefore>()) {
      const py::object result =
          own->function.with_kwargs ? own->function(self, arguments, named) : own->function(self, arguments);
      if (result.is_none()) continue;
      if (own->function.with_kwargs) {
        const auto both = result.cast<py::tuple>();
        arguments = both[0].cast<py::tuple>();
        named = both[1].cast<py::dict>();
      } else {
        arguments = as_tuple(result);
      }
    } else {
      const std::optional<size_t> place = first_tensor(arguments);
      const Tensor replaced =
          hook(self.cast<nn::Module&>(), place ? arguments[*place].cast<Tensor>() : Tensor());
      if (place && replaced.defined()) arguments = with_item(arguments, *place, py::cast(replaced));
    }
  }
}

py::object run_after(const nn::detail::ModuleHooks& hooks, const py::object& self, const py::tuple& arguments,
                     const py::dict& named, py::object output) {
  const auto after = hooks.after;
  for (const auto& [number, hook] : after) {
    if (const auto* own = hook.target<HookAfterForward>()) {
      const py::object result = own->function.with_kwargs ? own->function(self, arguments, named, output)
                                                          : own->function(self, arguments, output);
      if (!result.is_none()) output = result;
    } else {
      const std::optional<size_t> place = first_tensor(arguments);
      const bool is_tensor = py::isinstance<TensorImpl>(output);
      const Tensor replaced =
          hook(self.cast<nn::Module&>(), place ? arguments[*place].cast<Tensor>() : Tensor(),
               is_tensor ? output.cast<Tensor>() : Tensor());
      if (is_tensor && replaced.defined()) output = py::cast(replaced);
    }
  }
  return output;
}

using BackwardCall = std::shared_ptr<nn::detail::BackwardCall>;

/// The same, which keeps the module's object until backward is over.
BackwardCall keeping(BackwardCall call, py::object self) {
  if (!call) return call;
  auto kept = std::make_shared<std::pair<BackwardCall, std::shared_ptr<py::object>>>(std::move(call),
                                                                                     held(std::move(self)));
  return {kept, kept->first.get()};
}

/// The output, or the first tensor in a tuple of outputs, with its gradient watched.
py::object watch_output(const BackwardCall& backward, py::object output) {
  if (py::isinstance<TensorImpl>(output))
    return py::cast(nn::detail::watch_output(backward, output.cast<Tensor>()));
  if (!PyTuple_CheckExact(output.ptr())) return output;
  const auto outputs = output.cast<py::tuple>();
  const std::optional<size_t> place = first_tensor(outputs);
  if (!place) return output;
  return with_item(outputs, *place,
                   py::cast(nn::detail::watch_output(backward, outputs[*place].cast<Tensor>())));
}

/// It may wait for other processes.
std::shared_ptr<void> begin(const nn::detail::ModuleHooks& hooks, nn::Module& module) {
  if (!hooks.surrounding) return nullptr;
  const py::gil_scoped_release no_gil;
  return hooks.begin(module);
}

py::object call_with_hooks(nn::Module& module, const py::object& self, py::tuple arguments, py::dict named) {
  const std::shared_ptr<nn::detail::ModuleHooks> hooks = module.hooks();
  const std::shared_ptr<void> surrounded = begin(*hooks, module);
  hooks->compute_parameters(module);
  const BackwardCall backward = keeping(hooks->start_backward_call(module), self);
  run_before(*hooks, self, arguments, named);
  py::tuple seen = arguments;
  if (const auto place = backward ? first_tensor(arguments) : std::nullopt)
    seen = with_item(arguments, *place,
                     py::cast(nn::detail::watch_input(backward, arguments[*place].cast<Tensor>())));
  const py::object output = run_after(*hooks, self, arguments, named, self.attr("forward")(*seen, **named));
  return backward ? watch_output(backward, output) : output;
}

// ---- what the collector sees

/// The module of an object that nothing else holds; null before its __init__ too.
nn::Module* only_held_by(PyObject* object) {
  auto* instance = reinterpret_cast<py::detail::instance*>(object);
  if (!instance->simple_layout) return nullptr;  // pybind11 is about to make it
  py::detail::value_and_holder place = instance->get_value_and_holder();
  if (!place.holder_constructed() || place.holder<std::shared_ptr<nn::Module>>().use_count() != 1)
    return nullptr;
  return static_cast<nn::Module*>(place.value_ptr());
}

traverseproc traverse_attributes = nullptr;  ///< pybind11's own
inquiry clear_attributes = nullptr;

int visit_hooks(const nn::detail::ModuleHooks& hooks, visitproc visit, void* arg) {
  const auto visit_list = [&]<class Hook>(std::type_identity<Hook>, const auto& list) {
    for (const auto& [number, hook] : list)
      if (const Hook* own = hook.template target<Hook>()) Py_VISIT(own->function.ptr());
    return 0;
  };
  if (const int stop = visit_list(std::type_identity<HookBefore>(), hooks.before)) return stop;
  if (const int stop = visit_list(std::type_identity<HookAfterForward>(), hooks.after)) return stop;
  if (const int stop = visit_list(std::type_identity<HookBefore>(), hooks.backward_before)) return stop;
  return visit_list(std::type_identity<HookAfterBackward>(), hooks.backward_after);
}

/// From 3.11 on Python itself visits the attributes that its own classes add (those with __slots__ add none):
/// twice would keep all that is in them.
int visit_attributes(PyObject* object, visitproc visit, void* arg, traverseproc own) {
  PyTypeObject* const type = Py_TYPE(object);
  if (PY_VERSION_HEX < 0x030B0000 || type->tp_traverse == own || type->tp_dictoffset == 0)
    return traverse_attributes(object, visit, arg);
  Py_VISIT(Py_TYPE(object));
  return 0;
}

/// Of tensors, optimizers and all else that has attributes.
int traverse_object(PyObject* object, visitproc visit, void* arg) {
  return visit_attributes(object, visit, arg, &traverse_object);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  if (const int stop = visit_attributes(object, visit, arg, &traverse)) return stop;
  const nn::Module* module = only_held_by(object);
  if (!module) return 0;
  if (module->hooks() && module->hooks().use_count() == 1)
    if (const int stop = visit_hooks(*module->hooks(), visit, arg)) return stop;
  const PythonFields* fields = python_fields(*module);
  return fields ? fields->traverse(visit, arg) : 0;
}

int clear(PyObject* object) {
  if (nn::Module* module = only_held_by(object)) {
    if (module->hooks()) {
      nn::detail::ModuleHooks& hooks = *module->hooks();
      const auto before = std::exchange(hooks.before, {});
      const auto after = std::exchange(hooks.after, {});
      const auto backward_before = std::exchange(hooks.backward_before, {});
      const auto backward_after = std::exchange(hooks.backward_after, {});
    }
    if (PythonFields* fields = python_fields(*module)) fields->clear();
  }
  return clear_attributes(object);
}

ternaryfunc call_attribute = nullptr;  ///< Python's own call of what has __call__

/// A layer with hooks is called as a module that is written in Python: its hooks get all arguments as they
/// were given, and all results.
PyObject* call_layer(PyObject* object, PyObject* args, PyObject* named) {
  const auto place = reinterpret_cast<py::detail::instance*>(object)->get_value_and_holder();
  if (!place.holder_constructed() || !static_cast<nn::Module*>(place.value_ptr())->hooks())
    return call_attribute(object, args, named);
  const auto call = py::reinterpret_steal<py::object>(PyObject_GetAttrString(object, "_call_python"));
  return call ? PyObject_Call(call.ptr(), args, named) : nullptr;
}

/// In the place of a module that was never made: what pybind11 calls for one when it is used.
void* throw_unmade(size_t) {
  PyErr_SetString(PyExc_AttributeError,
                  "super().__init__() must be called in __init__() before the module is used");
  throw py::error_already_set();
}

}  // namespace

py::object call_module(py::object self, py::args given, py::kwargs named) {
  auto& module = self.cast<nn::Module&>();
  const nn::detail::ModuleScope scope(module);
  try {
    if (!module.hooks()) return self.attr("forward")(*given, **named);
    return call_with_hooks(module, self, given, named);
  } catch (Error& error) {
    nn::detail::add_module_context(error, module);
    throw;
  } catch (py::error_already_set& error) {
    edit_message(error, [&](Error& message) { nn::detail::add_module_context(message, module); });
    throw;
  }
}

void copy_hooks(nn::Module& module, const py::dict& memo) {
  if (!module.hooks()) return;
  const py::object deepcopy = imported("copy", "deepcopy");
  const auto copy_list = [&]<class Hook>(std::type_identity<Hook>, auto& list) {
    for (auto& [number, hook] : list)
      if (const Hook* own = hook.template target<Hook>()) {
        const py::object function = deepcopy(py::handle(own->function.ptr()), memo);
        const Hook copied{{HeldFunction(function.cast<py::function>(), own->function.with_kwargs),
                           own->module, own->address}};
        hook = copied;
      }
  };
  nn::detail::ModuleHooks& hooks = module.make_hooks();
  copy_list(std::type_identity<HookBefore>(), hooks.before);
  copy_list(std::type_identity<HookAfterForward>(), hooks.after);
  copy_list(std::type_identity<HookBefore>(), hooks.backward_before);
  copy_list(std::type_identity<HookAfterBackward>(), hooks.backward_after);
}

void bind_hooks(ModuleClass& c) {
  py::class_<nn::HookHandle>(c, "HookHandle")
      .def("remove", &nn::HookHandle::remove)
      .def("__deepcopy__", [](const nn::HookHandle& self, py::dict) { return self; })  // of the same hook
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](nn::HookHandle& self, py::args) { self.remove(); });
  c.def("_copy_hooks", &copy_hooks, py::arg("memo"));
  // `f` registers; `list` is where, for those that come first.
  const auto add = [&]<class Hook>(std::type_identity<Hook>, const char* name, auto f, auto list) {
    c.def(
        name,
        [f, list](py::object self, py::function hook, bool prepend, bool with_kwargs) {
          auto& module = self.cast<nn::Module&>();
          const Hook held{{HeldFunction(std::move(hook), with_kwargs),
                           self.cast<std::shared_ptr<nn::Module>>(), &module}};
          nn::HookHandle handle = (module.*f)(held);
          auto& hooks = *module.hooks().*list;
          if (prepend) std::rotate(hooks.begin(), hooks.end() - 1, hooks.end());
          return handle;
        },
        py::arg("hook"), py::kw_only(), py::arg("prepend") = false, py::arg("with_kwargs") = false);
  };
  using Hooks = nn::detail::ModuleHooks;
  using Module = nn::Module;
  add(std::type_identity<HookBefore>(), "register_forward_pre_hook",
      static_cast<nn::HookHandle (Module::*)(nn::ForwardPreHook)>(&Module::register_forward_pre_hook),
      &Hooks::before);
  add(std::type_identity<HookAfterForward>(), "register_forward_hook",
      static_cast<nn::HookHandle (Module::*)(nn::ForwardHook)>(&Module::register_forward_hook),
      &Hooks::after);
  add(std::type_identity<HookBefore>(), "register_full_backward_pre_hook",
      static_cast<nn::HookHandle (Module::*)(nn::BackwardPreHook)>(&Module::register_full_backward_pre_hook),
      &Hooks::backward_before);
  add(std::type_identity<HookAfterBackward>(), "register_full_backward_hook",
      static_cast<nn::HookHandle (Module::*)(nn::BackwardHook)>(&Module::register_full_backward_hook),
      &Hooks::backward_after);
}

void finish_module_classes(py::module_& m) {
  const py::object base = py::type::of<nn::Module>();
  const traverseproc pybinds = reinterpret_cast<PyTypeObject*>(base.ptr())->tp_traverse;
  traverse_attributes = pybinds;
  for (const auto& [name, value] : m.attr("__dict__").cast<py::dict>()) {
    if (!PyType_Check(value.ptr())) continue;
    auto* type = reinterpret_cast<PyTypeObject*>(value.ptr());
    if (!PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(base.ptr()))) {
      if (type->tp_traverse == pybinds) type->tp_traverse = &traverse_object;
      continue;
    }
    type->tp_traverse = &traverse;
    clear_attributes = std::exchange(type->tp_clear, &clear);
    if (type->tp_call && type->tp_call != &call_layer)
      call_attribute = std::exchange(type->tp_call, &call_layer);
    py::detail::get_type_info(type)->operator_new = &throw_unmade;
  }
}

}  // namespace tern::python
