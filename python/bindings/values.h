// Python objects to and from trees of values (io/value.h): what save() writes and load() gives, and the
// states of modules, optimizers and schedules.
#pragma once

#include <string>

#include "casters.h"

namespace tern::python {

/// How deep containers may lie in each other, both ways.
constexpr size_t kMaxDepth = 1000;

/// What a file keeps of a Python object. Containers that are shared or contain themselves stay so. Takes
/// numbers, texts, containers, tensors, parameters, sizes, dtypes, devices, modules of PyTorch's classes,
/// what NumPy made, and inert objects. Throws TypeError, naming the place, for anything else, ValueError for
/// what is nested deeper than kMaxDepth.
Value value_from_python(py::handle object);

/// The Python object of a value, with new containers. Models of PyTorch's classes become modules; objects of
/// classes that Tern has not are tern.serialization.Inert, with a warning where they are modules.
py::object value_to_python(const Value& value);

/// In the tree of a whole model, what stands for the module at `path` ("layers.0") below it.
Value module_in_tree(const Value& tree, const std::string& path);

/// A layer of C++ in bytes, as pickle gets it: its settings and the shapes of its tensors, without their
/// numbers and without what Python added.
py::bytes layer_to_bytes(nn::Module& layer);
/// A layer of the class with these settings, and any numbers.
py::object layer_from_bytes(const py::buffer& bytes, const py::object& layer_class);

/// An OrderedDict with the versions as its `_metadata`. `prefix` is put before the names.
py::object state_dict_to_python(const StateDict& dict, const std::string& prefix = "");
/// Of any mapping of names to tensors.
StateDict state_dict_from_python(py::handle mapping);

/// A state of an optimizer or a schedule as a dict.
template <tern::detail::Convertible State>
py::object state_to_python(const State& state) {
  return value_to_python(Value(state));
}
template <tern::detail::Convertible State>
State state_from_python(py::handle dict) {
  return ValueConverter<State>::from_value(value_from_python(dict));
}

}  // namespace tern::python
