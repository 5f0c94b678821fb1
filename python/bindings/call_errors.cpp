// What is said of a call with wrong arguments: PyTorch's short sentences in the place of all forms that the
// function has and of all that it was given.
#include <fmt/format.h>

#include "bindings.h"
#include "errors.h"

namespace tern::python {

namespace {

PyCFunctionWithKeywords dispatch = nullptr;  ///< pybind11's, one for all functions

std::string type_name(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }

/// The forms in pybind11's text, as "(input: Tensor, dim: int = 0) -> Tensor".
std::vector<std::string> forms_in(const std::string& text) {
  std::vector<std::string> forms;
  for (size_t number = 1, at = 0;; ++number) {
    const std::string mark = "\n    " + std::to_string(number) + ". ";
    at = text.find(mark, at);
    if (at == std::string::npos) return forms;
    at += mark.size();
    const std::string form = text.substr(at, text.find('\n', at) - at);
    forms.push_back(form.substr(form.find('(')));
  }
}

bool takes(const std::string& form, const std::string& keyword) {
  return form.find("(" + keyword + ":") != std::string::npos ||
         form.find(", " + keyword + ":") != std::string::npos || form.find("**") != std::string::npos;
}

/// "linear()", and of a class's __init__ "Linear.__init__()".
std::string call_name(const std::string& text, PyObject* args, bool is_constructor) {
  const std::string name = text.substr(0, text.find("()"));
  if (!is_constructor) return name + "()";
  std::string type = type_name(PyTuple_GET_ITEM(args, 0));
  return type.substr(type.rfind('.') + 1) + ".__init__()";
}

std::string shorter(const std::string& text, PyObject* args, PyObject* named, bool is_constructor) {
  std::vector<std::string> forms = forms_in(text);
  if (forms.size() > 1)  // the one for PyTorch's further names, which are no others
    std::erase_if(forms, [](const std::string& form) { return form.starts_with("(*args, **kwargs)"); });
  const std::string name = call_name(text, args, is_constructor);
  std::vector<std::string> given;
  for (Py_ssize_t i = is_constructor ? 1 : 0; i < PyTuple_GET_SIZE(args); ++i)
    given.push_back(type_name(PyTuple_GET_ITEM(args, i)));
  if (named)
    for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(named)) {
      const std::string keyword = py::str(key);
      if (std::none_of(forms.begin(), forms.end(), [&](const auto& form) { return takes(form, keyword); }))
        return name + " got an unexpected keyword argument '" + keyword + "'";
      given.push_back(keyword + "=" + type_name(value));
    }
  std::string result = name + ": the arguments fit none of the forms that it takes:";
  for (const std::string& form : forms) result += "\n    " + form;
  return result + "\nIt was given (" + fmt::format("{}", fmt::join(given, ", ")) + ")";
}

PyObject* call(PyObject* self, PyObject* args, PyObject* named) {
  PyObject* result = dispatch(self, args, named);
  if (result || !PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_TypeError)) return result;
  py::error_already_set error;
  const std::string text = py::str(error.value());
  const bool is_function = text.find("(): incompatible function arguments.") != std::string::npos;
  const bool is_constructor = text.find("(): incompatible constructor arguments.") != std::string::npos;
  if (is_function || is_constructor)
    PyErr_SetString(PyExc_TypeError, shorter(text, args, named, is_constructor).c_str());
  else
    error.restore();
  return nullptr;
}

void shorten(PyObject* function) {
  if (PyInstanceMethod_Check(function)) function = PyInstanceMethod_GET_FUNCTION(function);
  if (!PyCFunction_Check(function)) return;
  PyMethodDef* definition = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  constexpr int kFlags = METH_VARARGS | METH_KEYWORDS;
  if ((definition->ml_flags & kFlags) != kFlags) return;
  const auto called =
      reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void (*)()>(definition->ml_meth));
  if (called == &call) return;
  if (!dispatch) dispatch = called;
  if (called == dispatch)
    definition->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call));
}

void shorten_all(const py::dict& names) {
  for (const auto& [name, value] : names) shorten(value.ptr());
}

}  // namespace

void shorten_call_errors(py::module_& m) {
  shorten_all(m.attr("__dict__"));
  for (const auto& [name, value] : m.attr("__dict__").cast<py::dict>())
    if (PyType_Check(value.ptr())) shorten_all(py::dict(value.attr("__dict__")));
}

}  // namespace tern::python
