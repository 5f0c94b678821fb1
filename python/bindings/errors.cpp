// The exceptions of base/error.h as Python classes, and the way from one to the other.
#include "errors.h"

#include "bindings.h"

namespace tern::python {

namespace {

struct ErrorClass {
  const char* name;
  bool (*is_of)(const Error&);  ///< or of one derived from it
  PyObject* (*python_base)();   ///< what is raised in Python for such an error; null: none beside Error
  PyObject* object = nullptr;
};

template <class E>
ErrorClass error_class(const char* name, PyObject* (*python_base)()) {
  return {name, [](const Error& error) { return dynamic_cast<const E*>(&error) != nullptr; }, python_base};
}

PyObject* runtime_error() { return PyExc_RuntimeError; }

ErrorClass error_classes[] = {
    error_class<ShapeError>("ShapeError", runtime_error),
    error_class<DTypeError>("DTypeError", runtime_error),
    error_class<LinAlgError>("LinAlgError", runtime_error),
    error_class<DeviceError>("DeviceError", runtime_error),
    error_class<IndexError>("IndexError", [] { return PyExc_IndexError; }),
    error_class<ValueError>("ValueError", [] { return PyExc_ValueError; }),
    error_class<TypeError>("TypeError", [] { return PyExc_TypeError; }),
    error_class<AutogradError>("AutogradError", runtime_error),
    error_class<OutOfMemoryError>("OutOfMemoryError", runtime_error),
    error_class<CaptureError>("CaptureError", runtime_error),
    error_class<DistributedError>("DistributedError", runtime_error),
    error_class<IoError>("IoError", [] { return PyExc_OSError; }),
    error_class<CheckpointError>("CheckpointError", runtime_error),
    error_class<DataError>("DataError", runtime_error),
    error_class<NotImplementedError>("NotImplementedError", [] { return PyExc_NotImplementedError; }),
};

PyObject* base_class = nullptr;
PyObject* enough_class = nullptr;

/// The error that is on its way through Python, for those who add to its message (nn/module_call.h).
thread_local Error carried{""};

const ErrorClass* find_class(const Error& error) {
  for (const ErrorClass& each : error_classes)
    if (each.is_of(error)) return &each;
  return nullptr;
}

}  // namespace

void edit_message(py::error_already_set& error, const std::function<void(Error&)>& edit) {
  for (const ErrorClass& each : error_classes) {
    if (error.type().ptr() != each.object) continue;
    carried = Error(py::str(error.value()));
    edit(carried);
    py::setattr(error.value(), "args", py::make_tuple(carried.message()));
  }
}

void rethrow_enough(const py::error_already_set& error) {
  if (error.matches(enough_class)) throw nn::utils::detail::Enough();
}

void bind_errors(py::module_& m) {
  base_class = PyErr_NewExceptionWithDoc("tern.Error", "Base of every exception that Tern raises.",
                                         PyExc_Exception, nullptr);
  m.attr("Error") = py::reinterpret_borrow<py::object>(base_class);
  for (ErrorClass& each : error_classes) {
    const py::object bases = py::make_tuple(py::reinterpret_borrow<py::object>(base_class),
                                            py::reinterpret_borrow<py::object>(each.python_base()));
    each.object = PyErr_NewException(("tern." + std::string(each.name)).c_str(), bases.ptr(), nullptr);
    m.attr(each.name) = py::reinterpret_borrow<py::object>(each.object);
  }
  enough_class = PyErr_NewException("tern._Enough", PyExc_BaseException, nullptr);
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const nn::utils::detail::Enough&) {
      PyErr_SetNone(enough_class);
    } catch (const Error& error) {
      try {
        std::rethrow_if_nested(error);
      } catch (py::error_already_set& cause) {  // what Python threw inside: that, with what Tern knows of it
        if (py::hasattr(cause.value(), "add_note")) cause.value().attr("add_note")(error.what());
        cause.restore();
        return;
      } catch (...) {
      }
      nn::detail::hand_on_context(error, carried);
      const ErrorClass* its = find_class(error);
      PyErr_SetString(its ? its->object : base_class, error.what());
    }
  });
}

}  // namespace tern::python
