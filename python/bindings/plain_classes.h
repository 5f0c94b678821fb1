// The extension's classes made classes like any other in Python. pybind11 gives them a metaclass of its own,
// which keeps Python from deriving a class from them and from one that has another (ABC, Protocol).
#pragma once

#include <unordered_set>
#include <utility>
#include <vector>

#include "casters.h"

namespace tern::python {

/// A method as its class holds it: bound to an object where it is looked up there, called with the object
/// first where it is only called. As PyInstanceMethod, but the class gives the method itself, which another
/// class can hold too, and a call makes no bound one.
struct Method {
  PyObject_HEAD PyObject* function;
  vectorcallfunc vectorcall;

  static Method& of(PyObject* self) { return *reinterpret_cast<Method*>(self); }

  static PyObject* call(PyObject* self, PyObject* const* args, size_t count, PyObject* names) {
    return PyObject_Vectorcall(of(self).function, args, count, names);
  }
  /// Of __init__: as object.__new__ does, says which methods a class lacks that has abstract ones.
  static PyObject* call_init(PyObject* self, PyObject* const* args, size_t count, PyObject* names) {
    if (PyVectorcall_NARGS(count) > 0 && (Py_TYPE(args[0])->tp_flags & Py_TPFLAGS_IS_ABSTRACT) != 0)
      return PyBaseObject_Type.tp_new(Py_TYPE(args[0]), py::tuple().ptr(), nullptr);
    return call(self, args, count, names);
  }
  static PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
    if (object) return PyMethod_New(of(self).vectorcall == &call ? of(self).function : self, object);
    Py_INCREF(self);
    return self;
  }
  static PyObject* attribute(PyObject* self, PyObject* name) {
    PyObject* own = PyObject_GenericGetAttr(self, name);
    if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
    PyErr_Clear();
    return PyObject_GetAttr(of(self).function, name);
  }
  static PyObject* doc(PyObject* self, void*) { return PyObject_GetAttrString(of(self).function, "__doc__"); }
  static PyObject* text(PyObject* self) { return PyObject_Repr(of(self).function); }
  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(of(self).function);
    return 0;
  }
  static void free(PyObject* self) {
    PyObject_GC_UnTrack(self);
    Py_DECREF(of(self).function);
    PyObject_GC_Del(self);
  }

  static PyTypeObject* type() {
    static PyGetSetDef properties[] = {{"__doc__", &doc, nullptr, nullptr, nullptr}, {}};
    static PyTypeObject made = [] {
      PyTypeObject t{};
      t.ob_base = {PyObject_HEAD_INIT(nullptr) 0};
      t.tp_name = "tern._method";
      t.tp_basicsize = sizeof(Method);
      t.tp_flags =
          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
      t.tp_vectorcall_offset = offsetof(Method, vectorcall);
      t.tp_call = &PyVectorcall_Call;
      t.tp_descr_get = &bind;
      t.tp_getattro = &attribute;
      t.tp_getset = properties;
      t.tp_repr = &text;
      t.tp_traverse = &traverse;
      t.tp_dealloc = &free;
      return t;
    }();
    if (PyType_Ready(&made) < 0) throw py::error_already_set();
    return &made;
  }
  static py::object make(py::handle function, bool is_init) {
    auto* method = PyObject_GC_New(Method, type());
    if (!method) throw py::error_already_set();
    method->function = function.inc_ref().ptr();
    method->vectorcall = is_init ? &call_init : &call;
    PyObject_GC_Track(method);
    return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(method));
  }
};

/// While it lives, classes that are registered have the metaclass `type`. What pybind11's did for them is
/// done by finish().
class PlainClasses {
 public:
  PlainClasses() : metaclass_(std::exchange(py::detail::get_internals().default_metaclass, &PyType_Type)) {
    for (const auto& [type, info] : py::detail::get_internals().registered_types_cpp) before_.insert(info);
  }
  PlainClasses(const PlainClasses&) = delete;
  PlainClasses& operator=(const PlainClasses&) = delete;
  ~PlainClasses() { py::detail::get_internals().default_metaclass = metaclass_; }

  void finish() const {
    for (const auto& [type, info] : py::detail::get_internals().registered_types_cpp) {
      if (before_.contains(info)) continue;
      info->operator_new = &refuse_what_was_not_made;
      hold_methods(info->type);
    }
  }

 private:
  /// pybind11 asks for memory here where the __init__ of a class was never called, and takes it for an
  /// object.
  static void* refuse_what_was_not_made(size_t) {
    throw py::type_error("super().__init__() must be called before the object is used");
  }

  static void hold_methods(PyTypeObject* type) {
    std::vector<std::pair<py::object, py::object>> methods;
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(type->tp_dict, &at, &name, &value);)
      if (PyInstanceMethod_Check(value))
        methods.emplace_back(
            py::reinterpret_borrow<py::object>(name),
            Method::make(PyInstanceMethod_GET_FUNCTION(value), py::handle(name).equal(py::str("__init__"))));
    for (const auto& [key, method] : methods)
      if (PyDict_SetItem(type->tp_dict, key.ptr(), method.ptr()) < 0) throw py::error_already_set();
    PyType_Modified(type);
  }

  PyTypeObject* metaclass_;
  std::unordered_set<const py::detail::type_info*> before_;
};

}  // namespace tern::python
