// How Tern's types become Python's and back. Every file of the bindings includes this one, so that a type has
// one way everywhere.
//
// A Python tensor holds the shared body (TensorImpl), not a handle: two handles to one body are one Python
// object, as in PyTorch.
#pragma once

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tern/tern.h"

PYBIND11_DECLARE_HOLDER_TYPE(T, tern::IntrusivePtr<T>, true)

namespace py = pybind11;

namespace tern::python {

using TensorHolder = IntrusivePtr<TensorImpl>;
using Tensors = std::vector<Tensor>;
using ReleaseGil = py::call_guard<py::gil_scoped_release>;

/// The objects `tern.float32` and so on; one for each dtype.
py::object dtype_object(DType dtype);
/// Of such an object, or of Python's float, int and bool. False for anything else.
bool load_dtype(py::handle source, DType& dtype);
/// Of a device, a text or the number of a GPU. False for anything else.
bool load_device(py::handle source, Device& device);
/// A `tern.Size`.
py::object size_object(IntArrayRef sizes);
/// Of an integer, or a list or tuple of integers; with `convert` also of a tensor of one integer. False for
/// anything else.
bool load_ints(py::handle source, Shape& ints, bool convert = true);
/// A number; with `convert` also a 0-d tensor, and what has __index__ or __float__, as NumPy's numbers.
bool load_scalar(py::handle source, bool convert, std::optional<Scalar>& scalar);
/// The Python object of a tensor that is a parameter: the one that there is, else a new nn.Parameter.
py::object parameter_object(const Tensor& parameter);
/// A new nn.Parameter that is the tensor.
py::object new_parameter(const py::object& tensor);
/// Whether an object is an nn.Parameter.
bool is_parameter(py::handle object);
/// A name of a module of Python.
py::object imported(const char* module, const char* name);

/// An object that C++ keeps and lets go on any thread.
std::shared_ptr<py::object> held(py::object object);

/// A Python function that C++ keeps and lets go on any thread.
class Callback {
 public:
  explicit Callback(py::function function) : function_(held(std::move(function))) {}
  /// The GIL must be held.
  template <class... Args>
  py::object operator()(Args&&... args) const {
    return (*function_)(std::forward<Args>(args)...);
  }

 private:
  std::shared_ptr<py::object> function_;
};

/// Any iterable of tensors.
struct TensorIterable {
  std::vector<Tensor> tensors;
};

}  // namespace tern::python

namespace pybind11::detail {

/// What casters below share: `value` made from Python by a function of tern::python.
template <>
struct type_caster<tern::Tensor> {
  PYBIND11_TYPE_CASTER(tern::Tensor, const_name("Tensor"));
  /// None is an undefined tensor: arguments that need one are declared with none(false).
  bool load(handle source, bool) {
    if (source.is_none()) {
      value = tern::Tensor();
      return true;
    }
    copyable_holder_caster<tern::TensorImpl, tern::python::TensorHolder> holder;
    if (!holder.load(source, false)) return false;
    value = tern::Tensor(static_cast<tern::python::TensorHolder&>(holder));
    return true;
  }
  static handle cast(const tern::Tensor& tensor, return_value_policy, handle) {
    if (!tensor.defined()) return none().release();
    return type_caster_holder<tern::TensorImpl, tern::python::TensorHolder>::cast(
        tensor.impl_ptr(), return_value_policy::take_ownership, handle());
  }
};

template <>
struct type_caster<tern::nn::Parameter> {
  static constexpr auto name = const_name("Parameter");
  static handle cast(const tern::nn::Parameter& parameter, return_value_policy, handle) {
    if (!parameter.defined()) return none().release();
    return tern::python::parameter_object(parameter).release();
  }
};

template <>
struct type_caster<tern::nn::Buffer> {
  static constexpr auto name = const_name("Tensor");
  static handle cast(const tern::nn::Buffer& buffer, return_value_policy policy, handle parent) {
    return type_caster<tern::Tensor>::cast(buffer, policy, parent);
  }
};

template <>
struct type_caster<tern::Shape> {
  PYBIND11_TYPE_CASTER(tern::Shape, const_name("Size"));
  bool load(handle source, bool convert) { return tern::python::load_ints(source, value, convert); }
  static handle cast(const tern::Shape& shape, return_value_policy, handle) {
    return tern::python::size_object(shape).release();
  }
};

template <>
struct type_caster<tern::IntArrayRef> {
  static constexpr auto name = const_name("Size");
  template <class>
  using cast_op_type = tern::IntArrayRef;
  bool load(handle source, bool convert) { return tern::python::load_ints(source, ints_, convert); }
  operator tern::IntArrayRef() { return ints_; }
  static handle cast(tern::IntArrayRef ints, return_value_policy, handle) {
    return tern::python::size_object(ints).release();
  }

 private:
  tern::Shape ints_;
};

template <>
struct type_caster<tern::Scalar> {
  static constexpr auto name = const_name("Number");
  template <class>
  using cast_op_type = tern::Scalar;
  bool load(handle source, bool convert) { return tern::python::load_scalar(source, convert, value_); }
  operator tern::Scalar() { return *value_; }
  static handle cast(const tern::Scalar& scalar, return_value_policy, handle) {
    if (scalar.is_floating_point()) return float_(scalar.to_double()).release();
    if (scalar.is_complex()) return PyComplex_FromDoubles(scalar.real(), scalar.imag());
    if (scalar.kind() == tern::DType::Bool) return bool_(scalar.to_bool()).release();
    return int_(scalar.to_int()).release();
  }

 private:
  std::optional<tern::Scalar> value_;
};

template <>
struct type_caster<tern::DType> {
  PYBIND11_TYPE_CASTER(tern::DType, const_name("dtype"));
  bool load(handle source, bool) { return tern::python::load_dtype(source, value); }
  static handle cast(tern::DType dtype, return_value_policy, handle) {
    return tern::python::dtype_object(dtype).release();
  }
};

/// An int for all, or one for each dimension.
template <class Size, size_t N>
struct size_caster {
  static constexpr auto name = const_name("Size");
  template <class>
  using cast_op_type = Size;
  bool load(handle source, bool convert) {
    tern::Shape ints;
    if (!tern::python::load_ints(source, ints, convert) || (ints.size() != 1 && ints.size() != N))
      return false;
    is_one_ = ints.size() == 1;
    for (size_t i = 0; i < N; ++i) sizes_[i] = ints[is_one_ ? 0 : i];
    return true;
  }
  operator Size() { return is_one_ ? Size(sizes_[0]) : tern::size_from(sizes_); }
  static handle cast(const Size& size, return_value_policy, handle) {
    const auto sizes = tern::sizes_of(size);
    return (size.is_tuple ? object(pybind11::cast(sizes)) : int_(sizes[0])).release();
  }

 private:
  std::array<int64_t, N> sizes_{};
  bool is_one_ = false;
};
template <>
struct type_caster<tern::Size2> : size_caster<tern::Size2, 2> {};
template <>
struct type_caster<tern::Size3> : size_caster<tern::Size3, 3> {};

/// Besides devices, everything that a device can be made from.
template <>
struct type_caster<tern::Device> : type_caster_base<tern::Device> {
  bool load(handle source, bool) {
    if (type_caster_base<tern::Device>::load(source, false)) return true;
    if (!tern::python::load_device(source, device_)) return false;
    this->value = &device_;
    return true;
  }

 private:
  tern::Device device_;
};

template <>
struct type_caster<tern::python::TensorIterable> {
  PYBIND11_TYPE_CASTER(tern::python::TensorIterable, const_name("Iterable[Tensor]"));
  bool load(handle source, bool) {
    if (isinstance<tern::TensorImpl>(source)) return false;
    if (!isinstance<iterable>(source)) return false;
    for (handle item : reinterpret_borrow<iterable>(source)) {
      type_caster<tern::Tensor> tensor;
      if (item.is_none() || !tensor.load(item, false)) return false;
      value.tensors.push_back(static_cast<tern::Tensor&>(tensor));
    }
    return true;
  }
};

}  // namespace pybind11::detail
