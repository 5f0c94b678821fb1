// Tensors and arrays over the same memory: Python's buffers, with which NumPy's arrays are read and made, and
// DLPack. NumPy itself is imported only where an array is asked for.
#include "numpy.h"

#include <string_view>

#include "bindings.h"
#include "dlpack.h"
#include "tern/base/check.h"

namespace tern::python {

namespace {

/// The letters by which the module struct, and buffers, name what one element is.
struct Format {
  DType dtype;
  std::string_view letters;
};
static_assert(sizeof(long) == 8);
constexpr Format kFormats[] = {
    {DType::Bool, "?"},    {DType::UInt8, "B"},   {DType::Int8, "b"},       {DType::Int16, "h"},
    {DType::UInt16, "H"},  {DType::Int32, "i"},   {DType::UInt32, "I"},     {DType::Int64, "l"},
    {DType::UInt64, "L"},  {DType::Int64, "q"},   {DType::UInt64, "Q"},     {DType::Float16, "e"},
    {DType::Float32, "f"}, {DType::Float64, "d"}, {DType::Complex64, "Zf"}, {DType::Complex128, "Zd"}};

/// A buffer of a Python object, given back when this goes, on any thread.
class HeldBuffer {
 public:
  explicit HeldBuffer(py::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_RECORDS_RO) != 0) throw py::error_already_set();
  }
  HeldBuffer(const HeldBuffer&) = delete;
  HeldBuffer& operator=(const HeldBuffer&) = delete;
  ~HeldBuffer() {
    if (!Py_IsInitialized()) return;  // at the end of the program its memory goes anyway
    const py::gil_scoped_acquire gil;
    PyBuffer_Release(&view_);
  }
  const Py_buffer& view() const noexcept { return view_; }

  DType dtype() const {
    std::string_view letters = view_.format ? view_.format : "B";
    const bool big_endian = letters.starts_with('>') || letters.starts_with('!');
    if (!letters.empty() && std::string_view("@=<>!^").find(letters[0]) != std::string_view::npos)
      letters.remove_prefix(1);
    for (const Format& format : kFormats) {
      if (format.letters != letters || itemsize(format.dtype) != static_cast<size_t>(view_.itemsize))
        continue;
      TERN_CHECK(
          !big_endian || view_.itemsize == 1, ValueError,
          "given numpy array has byte order different from the native byte order. Conversion between byte "
          "orders is currently not supported.");
      return format.dtype;
    }
    TERN_THROW(
        TypeError,
        "can't convert an array of elements '{}'. The only supported types are: float64, float32, float16, "
        "complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
        view_.format ? view_.format : "B");
  }

  Shape shape() const {
    TERN_CHECK(view_.ndim <= static_cast<int>(kMaxRank), ShapeError,
               "an array has {} dimensions; at most {} are possible", view_.ndim, kMaxRank);
    return IntArrayRef(view_.shape, static_cast<size_t>(view_.ndim)).to_shape();
  }

  /// In elements. Where there is one element or none, a stride has no meaning and may be any number.
  Strides strides() const {
    Strides strides;
    for (int d = 0; d < view_.ndim; ++d) {
      const int64_t stride = view_.shape[d] > 1 ? view_.strides[d] : view_.itemsize;
      TERN_CHECK(
          stride >= 0, ValueError,
          "At least one stride in the given numpy array is negative, and tensors with negative strides are "
          "not currently supported. (You can probably work around this by making a copy of your array  with "
          "array.copy().) ");
      TERN_CHECK(stride % view_.itemsize == 0, ValueError,
                 "given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                 "reallocate the memory.");
      strides.push_back(stride / view_.itemsize);
    }
    return strides;
  }

 private:
  Py_buffer view_{};
};

Tensor copy_of(const HeldBuffer& buffer) {
  const Tensor tensor = empty(buffer.shape(), {.dtype = buffer.dtype(), .device = kCPU});
  if (tensor.numel() == 0) return tensor;
  if (PyBuffer_ToContiguous(tensor.data_ptr(), &buffer.view(), buffer.view().len, 'C') != 0)
    throw py::error_already_set();
  if (tensor.dtype() == DType::Bool) {  // NumPy lets any byte stand for True
    auto* bytes = static_cast<uint8_t*>(tensor.data_ptr());
    for (int64_t i = 0; i < tensor.numel(); ++i) bytes[i] = bytes[i] != 0;
  }
  return tensor;
}

void warn_of_writes(const char* what) {
  const std::string text = fmt::format(
      "The given {} is not writable, and tensors can be written to: that would change what it promises to "
      "keep. Copy it, "
      "or make it writable, to be safe.",
      what);
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) != 0) throw py::error_already_set();
}

bool is_array(py::handle object) {
  const py::dict modules = py::module_::import("sys").attr("modules");
  return modules.contains("numpy") && py::isinstance(object, modules["numpy"].attr("ndarray"));
}

// ---- tensors as arrays

/// What an array is made of: memory with a buffer. The array keeps it, and it the tensor.
struct TensorMemory {
  Tensor tensor;

  py::buffer_info buffer() const {
    std::string letters;
    for (const Format& format : kFormats)
      if (letters.empty() && format.dtype == tensor.dtype()) letters = format.letters;
    const auto width = static_cast<py::ssize_t>(tensor.element_size());
    std::vector<py::ssize_t> shape(tensor.shape().begin(), tensor.shape().end()), strides;
    for (const int64_t stride : tensor.strides()) strides.push_back(stride * width);
    return {tensor.data_ptr(), width, letters, tensor.dim(), std::move(shape), std::move(strides)};
  }
};

bool numpy_has(DType dtype) {
  return std::any_of(std::begin(kFormats), std::end(kFormats),
                     [&](const Format& f) { return f.dtype == dtype; });
}

py::object array_over(Tensor tensor, bool force) {
  if (force) {
    tensor = tensor.detach().cpu();
  } else {
    TERN_CHECK(!tensor.requires_grad(), AutogradError,
               "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    TERN_CHECK(tensor.device().is_cpu(), TypeError,
               "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
               "memory first.",
               tensor.device().str());
  }
  TERN_CHECK(numpy_has(tensor.dtype()), TypeError,
             "NumPy has no {}: convert the tensor before, with float() for example", name(tensor.dtype()));
  return py::module_::import("numpy").attr("asarray")(TensorMemory{tensor});
}

// ---- DLPack

struct DlpackType {
  DType dtype;
  dlpack::DataType type;
};
constexpr DlpackType kDlpackTypes[] = {{DType::Bool, {dlpack::kBool, 8, 1}},
                                       {DType::UInt8, {dlpack::kUInt, 8, 1}},
                                       {DType::Int8, {dlpack::kInt, 8, 1}},
                                       {DType::Int16, {dlpack::kInt, 16, 1}},
                                       {DType::Int32, {dlpack::kInt, 32, 1}},
                                       {DType::Int64, {dlpack::kInt, 64, 1}},
                                       {DType::UInt16, {dlpack::kUInt, 16, 1}},
                                       {DType::UInt32, {dlpack::kUInt, 32, 1}},
                                       {DType::UInt64, {dlpack::kUInt, 64, 1}},
                                       {DType::Float16, {dlpack::kFloat, 16, 1}},
                                       {DType::BFloat16, {dlpack::kBFloat, 16, 1}},
                                       {DType::Float32, {dlpack::kFloat, 32, 1}},
                                       {DType::Float64, {dlpack::kFloat, 64, 1}},
                                       {DType::Complex64, {dlpack::kComplex, 64, 1}},
                                       {DType::Complex128, {dlpack::kComplex, 128, 1}}};

constexpr const char* kCapsule = "dltensor";
constexpr const char* kUsedCapsule = "used_dltensor";

/// A tensor given away: its owner calls `managed.deleter`.
struct Exported {
  dlpack::ManagedTensor managed{};
  Tensor tensor;
};

py::capsule to_dlpack(const Tensor& tensor) {
  TERN_CHECK(!tensor.requires_grad(), AutogradError,
             "Can't export tensors that require gradient, use tensor.detach()");
  TERN_CHECK(
      tensor.device().is_cpu(), DeviceError,
      "__dlpack__: the tensor is on {}: other libraries share memory of the CPU alone, use tensor.cpu()",
      tensor.device().str());
  const auto* found = std::find_if(std::begin(kDlpackTypes), std::end(kDlpackTypes),
                                   [&](const DlpackType& t) { return t.dtype == tensor.dtype(); });
  TERN_CHECK(found != std::end(kDlpackTypes), TypeError, "__dlpack__: DLPack has no {}",
             name(tensor.dtype()));
  auto exported = std::make_unique<Exported>();
  exported->tensor = tensor;
  TensorImpl& impl = tensor.impl();
  exported->managed.tensor = {.data = tensor.data_ptr(),
                              .device = {dlpack::kCPU, 0},
                              .ndim = static_cast<int32_t>(tensor.dim()),
                              .dtype = found->type,
                              .shape = impl.shape.data(),
                              .strides = impl.strides.data(),
                              .byte_offset = 0};
  exported->managed.context = exported.get();
  exported->managed.deleter = [](dlpack::ManagedTensor* self) {
    delete static_cast<Exported*>(self->context);
  };
  PyObject* capsule = PyCapsule_New(&exported->managed, kCapsule, [](PyObject* given) {
    if (!PyCapsule_IsValid(given, kCapsule)) return;  // somebody took it
    auto* managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(given, kCapsule));
    managed->deleter(managed);
  });
  if (!capsule) throw py::error_already_set();
  exported.release();
  return py::reinterpret_steal<py::capsule>(capsule);
}

Tensor from_dlpack(const py::object& object) {
  const py::object capsule =
      py::hasattr(object, "__dlpack__") ? py::object(object.attr("__dlpack__")()) : object;
  TERN_CHECK(PyCapsule_IsValid(capsule.ptr(), kCapsule), TypeError,
             "from_dlpack: expected an object with __dlpack__, or a capsule that nobody has used, got {}",
             std::string(py::repr(object)));
  auto* managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kCapsule));
  const dlpack::Tensor& given = managed->tensor;
  TERN_CHECK(given.device.type == dlpack::kCPU || given.device.type == dlpack::kPinned, DeviceError,
             "from_dlpack: the memory is not the CPU's (kind {} of device): copy it to the CPU first",
             static_cast<int>(given.device.type));
  const auto* found = std::find_if(std::begin(kDlpackTypes), std::end(kDlpackTypes),
                                   [&](const DlpackType& t) { return t.type == given.dtype; });
  TERN_CHECK(found != std::end(kDlpackTypes), TypeError,
             "from_dlpack: no dtype is of kind {} with {} bits and {} lanes", given.dtype.code,
             given.dtype.bits, given.dtype.lanes);
  const IntArrayRef shape(given.shape, static_cast<size_t>(given.ndim));
  // From here on the tensor is ours to give back, also when it cannot be used.
  const auto owner = std::shared_ptr<dlpack::ManagedTensor>(managed, [](dlpack::ManagedTensor* last) {
    if (!last->deleter || !Py_IsInitialized()) return;
    const py::gil_scoped_acquire gil;
    last->deleter(last);
  });
  PyCapsule_SetName(capsule.ptr(), kUsedCapsule);
  void* data = static_cast<char*>(given.data) + given.byte_offset;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return empty(shape, {.dtype = found->dtype, .device = kCPU});
  if (!given.strides) return from_blob(data, shape, found->dtype, [owner] {});
  return from_blob(data, shape, IntArrayRef(given.strides, shape.size()), found->dtype, [owner] {});
}

}  // namespace

std::optional<Tensor> tensor_from_array(py::handle object) {
  if (PyObject_CheckBuffer(object.ptr())) return copy_of(HeldBuffer(object));
  if (PyType_Check(object.ptr()) || !py::hasattr(object, "__array__")) return std::nullopt;
  return copy_of(HeldBuffer(object.attr("__array__")()));
}

Tensor tensor_over_array(py::handle array) {
  TERN_CHECK(is_array(array), TypeError, "expected np.ndarray (got {})", Py_TYPE(array.ptr())->tp_name);
  const auto buffer = std::make_shared<HeldBuffer>(array);
  const Shape shape = buffer->shape();
  const DType dtype = buffer->dtype();
  const Strides strides = buffer->strides();
  if (buffer->view().readonly) warn_of_writes("NumPy array");
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return empty(shape, {.dtype = dtype, .device = kCPU});
  return from_blob(buffer->view().buf, shape, strides, dtype, [buffer] {});
}

std::optional<py::object> numpy_array(const Tensor& tensor) {
  try {
    return array_over(tensor, /*force=*/true);
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    return std::nullopt;
  }
}

namespace {

Tensor from_buffer(py::handle object, DType dtype, int64_t count, int64_t offset, bool requires_grad) {
  const auto buffer = std::make_shared<HeldBuffer>(object);
  const auto width = static_cast<int64_t>(itemsize(dtype));
  const int64_t nbytes = buffer->view().len - offset;
  TERN_CHECK(PyBuffer_IsContiguous(&buffer->view(), 'C'), ValueError,
             "frombuffer: the buffer is not contiguous");
  TERN_CHECK(offset >= 0 && nbytes >= 0, ValueError,
             "frombuffer: offset {} is not inside the {} bytes of the buffer", offset, buffer->view().len);
  if (count < 0) {
    TERN_CHECK(nbytes % width == 0, ValueError,
               "frombuffer: {} bytes after the offset are not a whole number of {}, which has {}", nbytes,
               name(dtype), width);
    count = nbytes / width;
  }
  TERN_CHECK(count <= nbytes / width, ValueError,
             "frombuffer: {} of {} are more than the {} bytes after the offset", count, name(dtype), nbytes);
  if (buffer->view().readonly) warn_of_writes("buffer");
  const Tensor tensor =
      from_blob(static_cast<char*>(buffer->view().buf) + offset, {count}, dtype, [buffer] {});
  return requires_grad ? tensor.requires_grad_() : tensor;
}

}  // namespace

void bind_numpy(py::module_& m, TensorClass& tensor) {
  py::class_<TensorMemory>(m, "_TensorMemory", py::buffer_protocol()).def_buffer(&TensorMemory::buffer);
  m.def("from_numpy", &tensor_over_array, py::arg("ndarray"), "A tensor over the memory of an array.");
  m.def("frombuffer", &from_buffer, py::arg("buffer"), py::kw_only(), py::arg("dtype"), py::arg("count") = -1,
        py::arg("offset") = 0, py::arg("requires_grad") = false,
        "One dimension over the memory of a buffer.");
  m.def("from_dlpack", &from_dlpack, py::arg("ext_tensor"),
        "A tensor over the memory of another library's, on the CPU.");
  tensor.def("numpy", &array_over, py::kw_only(), py::arg("force") = false,
             "An array over the tensor's memory. With `force` a copy where there cannot be one.");
  tensor.def(
      "__array__",
      [](const Tensor& self, const py::object& dtype, const py::object& copy) {
        const py::object array = array_over(self, /*force=*/false);
        if (dtype.is_none() && copy.is_none()) return array;
        const bool copies = !copy.is_none() && copy.cast<bool>();
        return py::object(
            array.attr("astype")(dtype.is_none() ? array.attr("dtype") : dtype, py::arg("copy") = copies));
      },
      py::arg("dtype") = py::none(), py::arg("copy") = py::none());
  tensor.def(
      "__dlpack__",
      [](const Tensor& self, const py::object&, const py::object&, const py::object&,
         const py::object& copy) {
        return to_dlpack(!copy.is_none() && copy.cast<bool>() ? self.clone() : self);
      },
      py::kw_only(), py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
      py::arg("dl_device") = py::none(), py::arg("copy") = py::none());
  tensor.def("__dlpack_device__", [](const Tensor& self) {
    const bool is_cpu = self.device().is_cpu();
    return py::make_tuple(static_cast<int>(is_cpu ? dlpack::kCPU : dlpack::kCUDA),
                          is_cpu ? 0 : self.device().index);
  });
}

}  // namespace tern::python
