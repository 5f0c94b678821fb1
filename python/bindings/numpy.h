// Arrays as tensors: whatever has Python's buffer protocol, as NumPy's arrays have.
#pragma once

#include <optional>

#include "casters.h"

namespace tern::python {

/// A tensor with a copy of an array's numbers: of an object with a buffer or with __array__(). Nothing for
/// other objects. Throws TypeError for elements that are no numbers, ValueError for those of another byte
/// order.
std::optional<Tensor> tensor_from_array(py::handle object);

/// A tensor over the memory of an array, which is kept alive as long as a tensor uses it; a warning where the
/// array may not be written to. Throws ValueError where strides are negative or no multiples of the elements.
Tensor tensor_over_array(py::handle array);

/// The array over a tensor's memory, as Tensor.numpy(). Nothing where NumPy is not installed.
std::optional<py::object> numpy_array(const Tensor& tensor);

}  // namespace tern::python
