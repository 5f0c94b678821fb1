// save and load, as python/tern/serialization.py and safetensors.py call them: PyTorch's files, safetensors,
// NumPy's.
#include "bindings.h"
#include "tern/io/find_tensors.h"
#include "values.h"

namespace tern::python {

namespace {

using Metadata = std::map<std::string, std::string>;

/// None, a device in any form, a dict from location to location, or a function of a location that gives a
/// device or None.
MapLocation map_location_from(const py::object& where) {
  if (where.is_none()) return {};
  if (py::isinstance<py::str>(where)) return where.cast<std::string>();
  if (py::isinstance<py::dict>(where)) {
    std::map<std::string, std::string> table;
    for (const auto& [from, to] : where.cast<py::dict>()) table.emplace(py::str(from), py::str(to));
    return table;
  }
  if (py::isinstance<py::function>(where))
    return MapLocation::Function([ask = Callback(where)](const std::string& location) {
      const py::gil_scoped_acquire gil;
      return ask(location).cast<std::optional<Device>>();
    });
  try {
    return where.cast<Device>();
  } catch (const py::cast_error&) {
    throw TypeError("load: map_location is a device, a text such as 'cpu', a dict or a function, not " +
                    std::string(py::repr(where)));
  }
}

LoadOptions options_from(const py::object& map_location, bool weights_only = true, bool mmap = false) {
  return {.map_location = map_location_from(map_location), .mmap = mmap, .weights_only = weights_only};
}

/// Bytes of Python, held in place.
class Bytes {
 public:
  explicit Bytes(const py::buffer& object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { PyBuffer_Release(&view_); }
  std::span<const std::byte> span() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

py::bytes to_bytes(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Runs `read(options)` without the GIL; what it has to say becomes a warning.
template <class Read>
auto read_with(LoadOptions options, Read read) {
  LoadReport report;
  options.report = &report;
  auto result = [&] {
    const py::gil_scoped_release no_gil;
    return read(options);
  }();
  if (const std::string said = report.str();
      !said.empty() && PyErr_WarnEx(PyExc_UserWarning, said.c_str(), 1) != 0)
    throw py::error_already_set();
  return result;
}

py::dict tensors_to_dict(const StateDict& tensors) {
  py::dict dict;
  for (const auto& [name, tensor] : tensors) dict[py::str(name)] = tensor;
  return dict;
}

void bind_torch_files(py::module_& m) {
  m.def("_save", [](py::object object, const std::string& path, bool compact, bool legacy) {
    const Value value = value_from_python(object);
    const py::gil_scoped_release no_gil;
    save(value, path, {.format = legacy ? SaveFormat::Legacy : SaveFormat::Zip, .compact = compact});
  });
  m.def("_save_to_bytes", [](py::object object, bool compact, bool legacy) {
    const Value value = value_from_python(object);
    std::vector<std::byte> bytes;
    {
      const py::gil_scoped_release no_gil;
      bytes = save_to_buffer(value,
                             {.format = legacy ? SaveFormat::Legacy : SaveFormat::Zip, .compact = compact});
    }
    return to_bytes(bytes);
  });
  m.def("_load", [](const std::string& path, py::object map_location, bool weights_only, bool mmap) {
    return value_to_python(read_with(options_from(map_location, weights_only, mmap),
                                     [&](const LoadOptions& options) { return load(path, options); }));
  });
  m.def("_load_from_bytes", [](py::buffer buffer, py::object map_location, bool weights_only) {
    const Bytes bytes(buffer);
    return value_to_python(
        read_with(options_from(map_location, weights_only),
                  [&](const LoadOptions& options) { return load_from_buffer(bytes.span(), options); }));
  });
  m.def("_layer_to_bytes", &layer_to_bytes);
  m.def("_layer_from_bytes", &layer_from_bytes);
  m.def("_tensors_in", [](py::object object) {
    const Value value = value_from_python(object);
    if (is_module_object(value)) return tensors_to_dict(state_dict_of(value));
    py::dict tensors;
    for (const io::FoundTensor& found : io::find_tensors(value))
      if (found.tensor.defined()) tensors[py::str(found.path)] = found.tensor;
    return tensors;
  });
}

void bind_safetensors(py::module_& m) {
  m.def("_save_safetensors", [](py::object tensors, const std::string& path, const Metadata& metadata) {
    const StateDict dict = state_dict_from_python(tensors);
    const py::gil_scoped_release no_gil;
    save_safetensors(dict, path, metadata);
  });
  m.def("_safetensors_to_bytes", [](py::object tensors, const Metadata& metadata) {
    return to_bytes(save_safetensors_to_buffer(state_dict_from_python(tensors), metadata));
  });
  m.def("_load_safetensors", [](const std::string& path, py::object device, bool mmap) {
    const SafetensorsFile file = read_with(options_from(device, true, mmap), [&](const LoadOptions& options) {
      return load_safetensors(path, options);
    });
    return py::make_tuple(tensors_to_dict(file.tensors), file.metadata);
  });
  m.def("_safetensors_from_bytes", [](py::buffer buffer, py::object device) {
    const Bytes bytes(buffer);
    const SafetensorsFile file = read_with(options_from(device), [&](const LoadOptions& options) {
      return load_safetensors_from_buffer(bytes.span(), options);
    });
    return py::make_tuple(tensors_to_dict(file.tensors), file.metadata);
  });
}

void bind_numpy_files(py::module_& m) {
  m.def(
      "_save_npy", [](const Tensor& tensor, const std::string& path) { save_npy(tensor, path); },
      ReleaseGil());
  m.def("_save_npz", [](py::object tensors, const std::string& path) {
    const StateDict dict = state_dict_from_python(tensors);
    const py::gil_scoped_release no_gil;
    save_npz(dict, path);
  });
  m.def("_load_npy", [](const std::string& path, py::object device) {
    return read_with(options_from(device),
                     [&](const LoadOptions& options) { return load_npy(path, options); });
  });
  m.def("_load_npz", [](const std::string& path, py::object device) {
    return tensors_to_dict(
        read_with(options_from(device), [&](const LoadOptions& options) { return load_npz(path, options); }));
  });
}

}  // namespace

void bind_files(py::module_& m) {
  bind_torch_files(m);
  bind_safetensors(m);
  bind_numpy_files(m);
}

}  // namespace tern::python
