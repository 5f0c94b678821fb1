// x[...] and x[...] = y by Python's and NumPy's rules: integers, slices, None and Ellipsis are views, tensors
// and lists gather (ops/index.h).
#include "bindings.h"

namespace tern::python {

namespace {

/// The view that the items which are no tensors name, and the tensors that address its dimensions (undefined:
/// all of one).
struct Place {
  Tensor view;
  std::vector<Tensor> indices;
  bool gathers = false;

  Tensor get() const { return gathers ? index(view, indices) : view; }
};

std::optional<int64_t> slice_bound(py::handle bound) {
  if (bound.is_none()) return std::nullopt;
  const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(bound.ptr()));
  if (!number) throw py::error_already_set();
  const Py_ssize_t value = PyNumber_AsSsize_t(number.ptr(), nullptr);  // cut to what fits, as for lists
  return static_cast<int64_t>(value);
}

int64_t integer(py::handle number) {
  const long long value = PyLong_AsLongLong(number.ptr());
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    throw IndexError("the index " + std::string(py::str(number)) + " is out of range");
  }
  return value;
}

bool is_tensor(py::handle item) { return py::isinstance<TensorImpl>(item); }

/// A list of integers or of bools, or an array, as a tensor of indices.
Tensor index_tensor(py::handle item) { return imported("tern._C", "tensor")(item).cast<Tensor>(); }

/// How many dimensions of the tensor an item takes.
int64_t dimensions_of(py::handle item) {
  if (item.is_none() || item.ptr() == Py_Ellipsis || PyBool_Check(item.ptr())) return 0;
  if (!is_tensor(item)) return 1;
  const Tensor tensor = item.cast<Tensor>();
  const bool is_mask = tensor.dtype() == DType::Bool || tensor.dtype() == DType::UInt8;
  return is_mask ? tensor.dim() : 1;
}

/// A tuple is several items; a list in its place, an array or a range a tensor.
std::vector<py::object> items_of(py::handle key) {
  std::vector<py::object> items;
  auto add = [&](py::handle item) {
    const auto same = py::reinterpret_borrow<py::object>(item);
    if (is_tensor(item) || PyLong_Check(item.ptr()) || PySlice_Check(item.ptr()) || item.is_none())
      items.push_back(same);
    else if (py::hasattr(item, "__array__"))
      items.push_back(py::getattr(item, "ndim", py::int_(1)).equal(py::int_(0))
                          ? item.attr("item")()
                          : py::cast(index_tensor(item)));
    else if (PySequence_Check(item.ptr()) && !PyUnicode_Check(item.ptr()) && !PyBytes_Check(item.ptr()))
      items.push_back(py::cast(index_tensor(py::list(same))));
    else
      items.push_back(same);
  };
  if (py::isinstance<py::tuple>(key))
    for (py::handle item : key) add(item);
  else
    add(key);
  return items;
}

Place place_of(const Tensor& x, py::handle key) {
  const std::vector<py::object> items = items_of(key);
  int64_t taken = 0;
  size_t ellipses = 0;
  for (const py::object& item : items) {
    taken += dimensions_of(item);
    ellipses += item.ptr() == Py_Ellipsis;
  }
  if (ellipses > 1) throw IndexError("an index can only have a single ellipsis ('...')");
  if (taken > x.dim())
    throw IndexError("too many indices for tensor of dimension " + std::to_string(x.dim()) + ": got " +
                     std::to_string(taken));

  Place place{x, {}};
  int64_t dim = 0;
  int64_t covered = 0;  // dimensions of the view that the tensors so far stand for
  auto add_index = [&](const Tensor& tensor, int64_t addressed) {
    for (; covered < dim; ++covered) place.indices.push_back(Tensor());
    place.indices.push_back(tensor);
    covered = dim += addressed;
    place.gathers = true;
  };
  for (const py::object& item : items) {
    if (item.is_none()) {
      place.view = place.view.unsqueeze(dim++);
    } else if (item.ptr() == Py_Ellipsis) {
      dim += x.dim() - taken;
    } else if (PyBool_Check(item.ptr())) {  // a mask of no dimensions
      add_index(full({}, item.ptr() == Py_True, {.device = x.device()}), /*addressed=*/0);
    } else if (is_tensor(item)) {
      add_index(item.cast<Tensor>(), dimensions_of(item));
    } else if (PySlice_Check(item.ptr())) {
      const auto slice = py::reinterpret_borrow<py::slice>(item);
      const std::optional<int64_t> step = slice_bound(slice.attr("step"));
      place.view = place.view.slice(dim, slice_bound(slice.attr("start")), slice_bound(slice.attr("stop")),
                                    step.value_or(1));
      ++dim;
    } else if (PyIndex_Check(item.ptr())) {
      const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(item.ptr()));
      if (!number) throw py::error_already_set();
      place.view = place.view.select(dim, integer(number));
    } else {
      throw TypeError(
          "only integers, slices (`:`), ellipsis (`...`), None and tensors are valid indices (got " +
          std::string(Py_TYPE(item.ptr())->tp_name) + ")");
    }
  }
  return place;
}

Tensor value_as_tensor(py::handle value, const Tensor& like) {
  if (is_tensor(value)) return value.cast<Tensor>();
  std::optional<Scalar> number;
  if (load_scalar(value, /*convert=*/true, number))
    return full({}, *number, {.dtype = like.dtype(), .device = kCPU});
  return index_tensor(value).to(like.device(), like.dtype());
}

/// Without the leading sizes of 1 beyond `dims` dimensions, which broadcast anyway.
Tensor fitted(Tensor source, int64_t dims) {
  while (source.dim() > dims && source.size(0) == 1) source = source.squeeze(0);
  return source;
}

}  // namespace

void bind_indexing(TensorClass& tensor) {
  tensor.def("__getitem__", [](const Tensor& self, py::object key) {
    if (PyLong_CheckExact(key.ptr()) && self.dim() > 0) return self.select(0, integer(key));
    const Place place = place_of(self, key);
    const py::gil_scoped_release no_gil;
    return place.gathers || !place.view.is_same(self) ? place.get() : self.slice(0);
  });
  tensor.def("__setitem__", [](const Tensor& self, py::object key, py::object value) {
    const Place place = place_of(self, key);
    Tensor target = place.view;
    const Tensor source = value_as_tensor(value, self);
    const py::gil_scoped_release no_gil;
    if (place.gathers)
      target.index_put_(place.indices, fitted(source, 0).to(target.dtype()));
    else
      target.copy_(fitted(source, target.dim()));
  });
}

}  // namespace tern::python
