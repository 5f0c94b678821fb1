// Values that are no tensors: dtypes, devices, sizes, numbers, generators.
#include <array>
#include <complex>
#include <random>

#include "bindings.h"
#include "tern/ops/memory_format.h"

namespace tern::python {

namespace {

/// A dtype as an object of its own class, so that `x.dtype is tern.float32`.
struct DTypeObject {
  DType dtype;
};

std::array<PyObject*, kNumDTypes> dtype_objects{};
PyObject* size_class = nullptr;
PyObject* parameter_class = nullptr;

py::object owned(PyObject* object) { return py::reinterpret_borrow<py::object>(object); }

bool is_int(py::handle source) { return PyLong_Check(source.ptr()) && !PyBool_Check(source.ptr()); }

/// Integers of Python, and what has __index__, as NumPy's and tensors of one integer.
bool load_int(py::handle source, int64_t& value) {
  if (PyBool_Check(source.ptr()) || PyFloat_Check(source.ptr()) || !PyIndex_Check(source.ptr())) return false;
  const py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(source.ptr()));
  if (!index) {
    PyErr_Clear();
    return false;
  }
  value = PyLong_AsLongLong(index.ptr());
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return true;
}

}  // namespace

py::object dtype_object(DType dtype) { return owned(dtype_objects[static_cast<size_t>(dtype)]); }

bool load_dtype(py::handle source, DType& dtype) {
  if (py::isinstance<DTypeObject>(source)) {
    dtype = source.cast<DTypeObject&>().dtype;
    return true;
  }
  const std::pair<PyTypeObject*, DType> known[] = {
      {&PyFloat_Type, DType::Float64}, {&PyLong_Type, DType::Int64}, {&PyBool_Type, DType::Bool}};
  for (const auto& [type, its] : known)
    if (source.ptr() == reinterpret_cast<PyObject*>(type)) {
      dtype = its;
      return true;
    }
  return false;
}

bool load_device(py::handle source, Device& device) {
  if (py::isinstance<py::str>(source)) {
    device = Device(source.cast<std::string>());
    return true;
  }
  if (!is_int(source)) return false;
  device = Device(source.cast<int>());
  return true;
}

py::object size_object(IntArrayRef sizes) {
  py::tuple items(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) items[i] = py::int_(sizes[i]);
  return owned(size_class)(items);
}

bool load_ints(py::handle source, Shape& ints, bool convert) {
  ints.clear();
  int64_t value = 0;
  if (py::isinstance<py::tuple>(source) || py::isinstance<py::list>(source)) {
    for (py::handle item : source) {
      if (!load_int(item, value)) return false;
      ints.push_back(value);
    }
    return true;
  }
  if ((!convert && py::isinstance<TensorImpl>(source)) || !load_int(source, value)) return false;
  ints.push_back(value);
  return true;
}

bool load_scalar(py::handle source, bool convert, std::optional<Scalar>& scalar) {
  PyObject* object = source.ptr();
  if (PyBool_Check(object)) {
    scalar = Scalar(object == Py_True);
    return true;
  }
  if (PyFloat_Check(object)) {
    scalar = Scalar(PyFloat_AS_DOUBLE(object));
    return true;
  }
  if (PyComplex_Check(object)) {
    scalar = Scalar(std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)));
    return true;
  }
  int64_t value = 0;
  if (PyLong_Check(object)) {
    if (!load_int(source, value))
      throw ValueError("a number is larger than int64 holds: " + std::string(py::str(source)));
    scalar = Scalar(value);
    return true;
  }
  if (!convert || py::isinstance<py::str>(source)) return false;
  if (py::isinstance<TensorImpl>(source)) {  // one number, which is no tensor for the caller
    const auto tensor = source.cast<Tensor>();
    if (tensor.dim() == 0) scalar = item(tensor);
    return tensor.dim() == 0;
  }
  if (load_int(source, value)) {
    scalar = Scalar(value);
    return true;
  }
  if (!PyNumber_Check(object)) return false;
  if (PyObject_HasAttrString(object, "__complex__") != 0 && PyObject_HasAttrString(object, "imag") != 0 &&
      py::bool_(source.attr("imag").attr("__ne__")(0))) {  // NumPy's complex64
    const py::object both = source.attr("__complex__")();
    return load_scalar(both, convert, scalar);
  }
  const double number = PyFloat_AsDouble(object);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  scalar = Scalar(number);
  return true;
}

py::object parameter_object(const Tensor& parameter) {
  const auto existing = py::reinterpret_steal<py::object>(py::detail::find_registered_python_instance(
      parameter.impl_ptr().get(), py::detail::get_type_info(typeid(TensorImpl))));
  if (existing) return existing;
  return new_parameter(py::cast(parameter));
}

py::object new_parameter(const py::object& tensor) { return owned(parameter_class).attr("_of")(tensor); }

bool is_parameter(py::handle object) { return py::isinstance(object, parameter_class); }

py::object imported(const char* module, const char* name) { return py::module_::import(module).attr(name); }

std::shared_ptr<py::object> held(py::object object) {
  return {new py::object(std::move(object)), [](py::object* kept) {
            const py::gil_scoped_acquire gil;
            delete kept;
          }};
}

void bind_types(py::module_& m) {
  py::class_<DTypeObject>(m, "dtype", "What one element of a tensor is.")
      .def("__repr__", [](const DTypeObject& self) { return "torch." + std::string(name(self.dtype)); })
      .def("__hash__", [](const DTypeObject& self) { return static_cast<int>(self.dtype); })
      .def("__eq__",
           [](const DTypeObject& self, py::object other) {
             return py::isinstance<DTypeObject>(other) && other.cast<DTypeObject&>().dtype == self.dtype;
           })
      .def("__reduce__", [](const DTypeObject& self) { return std::string(name(self.dtype)); })
      .def_property_readonly("itemsize", [](const DTypeObject& self) { return itemsize(self.dtype); })
      .def_property_readonly("is_floating_point",
                             [](const DTypeObject& self) { return is_floating_point(self.dtype); })
      .def_property_readonly("is_complex", [](const DTypeObject& self) { return is_complex(self.dtype); });
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    py::object object = py::cast(DTypeObject{dtype});
    m.attr(std::string(name(dtype)).c_str()) = object;
    dtype_objects[static_cast<size_t>(i)] = object.release().ptr();
  }

  py::class_<Device>(m, "device",
                     "Where a tensor lives: `device('cpu')`, `device('cuda:1')`, `device('cuda', 1)`.")
      .def(py::init([](const std::string& type, std::optional<int> index) {
             if (!index) return Device(type);
             if (type != "cuda" && type != "cpu")
               throw DeviceError("device: expected 'cpu' or 'cuda' before an index, got '" + type + "'");
             return type == "cpu" ? Device(kCPU) : Device(DeviceType::CUDA, *index);
           }),
           py::arg("type"), py::arg("index") = py::none())
      .def(py::init([](int index) { return Device(index); }), py::arg("index"))
      .def(py::init([](Device device) { return device; }), py::arg("device"))
      .def_property_readonly("type", [](Device self) { return self.is_cpu() ? "cpu" : "cuda"; })
      .def_property_readonly("index",
                             [](Device self) -> std::optional<int> {
                               if (self.is_cpu() || self.index < 0) return std::nullopt;
                               return self.index;
                             })
      .def("__str__", &Device::str)
      .def("__repr__",
           [](Device self) {
             const std::string type = self.is_cpu() ? "cpu" : "cuda";
             const std::string index =
                 self.is_cpu() || self.index < 0 ? "" : ", index=" + std::to_string(self.index);
             return "device(type='" + type + "'" + index + ")";
           })
      .def("__hash__", [](Device self) { return static_cast<int>(self.type) * 65536 + self.index; })
      .def("__eq__",
           [](Device self, py::object other) {
             return py::isinstance<Device>(other) && other.cast<Device>() == self;
           })
      .def("__reduce__",
           [](Device self) { return py::make_tuple(py::type::of<Device>(), py::make_tuple(self.str())); });

  py::class_<Generator>(m, "Generator", "The state of random numbers.")
      .def(py::init([](Device) {  // of the engine that the default one has, with PyTorch's seed where that is
                                  // PyTorch's
             const RandomEngine engine = default_generator().engine();
             return Generator(engine == RandomEngine::MersenneTwister ? 67280421310721 : 0, engine);
           }),
           py::arg("device") = kCPU)
      .def_property_readonly(
          "device", [](const Generator&) { return kCPU; },
          "Where its state is; tensors of all devices draw from it.")
      .def(
          "seed",
          [](Generator& self) {
            std::random_device entropy;
            const uint64_t drawn = uint64_t{entropy()} << 32 | entropy();
            self.manual_seed(drawn);
            return drawn;
          },
          "Seeds it with a number that is not foreseen, and returns that.")
      .def(
          "manual_seed",
          [](py::object self, uint64_t seed) {
            self.cast<Generator&>().manual_seed(seed);
            return self;
          },
          py::arg("seed"));

  py::enum_<MemoryFormat> formats(m, "memory_format", "How the elements of pictures lie in memory.");
  for (const auto& [name, format] : {std::pair{"contiguous_format", MemoryFormat::Contiguous},
                                     {"preserve_format", MemoryFormat::Preserve},
                                     {"channels_last", MemoryFormat::ChannelsLast},
                                     {"channels_last_3d", MemoryFormat::ChannelsLast3d}})
    formats.value(name, format);
  formats.export_values();
  const py::cpp_function text(
      [](py::handle self) { return "torch." + self.attr("name").cast<std::string>(); },
      py::is_method(formats));
  for (const char* method : {"__repr__", "__str__"}) formats.attr(method) = text;

  // Classes that are written in Python tell the extension of themselves.
  m.def("_set_classes", [](py::object size, py::object parameter) {
    size_class = size.release().ptr();
    parameter_class = parameter.release().ptr();
  });
}

}  // namespace tern::python
