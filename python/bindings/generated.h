// What the generated bindings need, and what they define.
#pragma once

#include "bindings.h"

namespace tern::python {

/// Integers, of which None is none.
struct OptionalInts {
  Shape ints;
  operator IntArrayRef() const { return ints; }
};

// Results that PyTorch gives as named tuples, or as tuples.
struct ValuesAndIndices {
  std::pair<Tensor, Tensor> pair;
};
struct MinAndMax {
  std::pair<Tensor, Tensor> pair;
};
struct TensorTuple {
  std::vector<Tensor> tensors;
};
/// Of any number; a pair or tuple of C++ with names.
struct NamedResults {
  std::vector<const char*> names;
  std::vector<Tensor> tensors;
  template <class Results>
  NamedResults(std::vector<const char*> their_names, const Results& results) : names(std::move(their_names)) {
    std::apply([this](const auto&... each) { (tensors.push_back(each), ...); }, results);
  }
};

/// Of integers, or of one list of them. Throws TypeError.
Shape ints_of(const py::args& sizes);
/// Rounded to so many decimal digits; to tens, hundreds and so on where that is negative.
Tensor round_to(const Tensor& x, int64_t decimals);
py::object named_pair(const char* first, const char* second, const std::pair<Tensor, Tensor>& pair);
py::object named_tuple(const NamedResults& results);

/// The function of the module as a method of the class.
void make_method(py::module_& m, TensorClass& c, const char* name);
/// The function also takes `out`, NumPy's `axis` for `dim` and `keepdims` for `keepdim`, and how a new tensor
/// lies in memory: `pin_memory`, `memory_format`, `layout`.
void take_other_keywords(py::module_& m, const char* name);
/// x in that order; as it is for MemoryFormat::Preserve.
Tensor in_format(const Tensor& x, MemoryFormat format);

/// The same function, method and method in place under a second name, where there are any.
void make_second_name(py::module_& m, TensorClass& c, const char* second, const char* first);

void bind_operators_0(py::module_& m);
void bind_operators_1(py::module_& m);
void bind_operators_2(py::module_& m);
void bind_operators_3(py::module_& m);
void bind_operators_4(py::module_& m);
void bind_operators_5(py::module_& m);
void bind_generated_methods(py::module_& m, TensorClass& c);

}  // namespace tern::python

namespace pybind11::detail {

template <>
struct type_caster<tern::python::OptionalInts> {
  PYBIND11_TYPE_CASTER(tern::python::OptionalInts, const_name("Optional[Size]"));
  bool load(handle source, bool convert) {
    value.ints.clear();
    return source.is_none() || tern::python::load_ints(source, value.ints, convert);
  }
};

template <>
struct type_caster<tern::python::ValuesAndIndices> {
  static constexpr auto name = const_name("Tuple[Tensor, Tensor]");
  static handle cast(const tern::python::ValuesAndIndices& result, return_value_policy, handle) {
    return tern::python::named_pair("values", "indices", result.pair).release();
  }
};

template <>
struct type_caster<tern::python::MinAndMax> {
  static constexpr auto name = const_name("Tuple[Tensor, Tensor]");
  static handle cast(const tern::python::MinAndMax& result, return_value_policy, handle) {
    return tern::python::named_pair("min", "max", result.pair).release();
  }
};

template <>
struct type_caster<tern::python::NamedResults> {
  static constexpr auto name = const_name("Tuple[Tensor, ...]");
  static handle cast(const tern::python::NamedResults& results, return_value_policy, handle) {
    return tern::python::named_tuple(results).release();
  }
};

template <>
struct type_caster<tern::python::TensorTuple> {
  static constexpr auto name = const_name("Tuple[Tensor, ...]");
  static handle cast(const tern::python::TensorTuple& result, return_value_policy, handle) {
    return tuple(pybind11::cast(result.tensors)).release();
  }
};

}  // namespace pybind11::detail
