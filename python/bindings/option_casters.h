// How the fields of option structs become Python's values and back: words of enumerations, sizes of windows,
// paddings. What PyTorch takes in more forms than the field has is a struct here, which the field is made
// from (option_as in rows.h).
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "casters.h"

namespace tern::python {

/// One size of a sequence: an int, or a tuple of one.
struct Size1 {
  int64_t w = 0;
  Size1() = default;
  Size1(int64_t w_) : w(w_) {}
  operator int64_t() const { return w; }
};
/// As SizeOf<N>, which of a sequence is an int only.
template <int N>
using GivenSize = std::conditional_t<N == 1, Size1, SizeOf<N>>;
template <int N>
using OptionalSize = std::optional<GivenSize<N>>;

/// The padding of a convolution in N dimensions: sizes, "same" or "valid".
template <int N>
struct GivenPadding {
  ConvPaddingOf<N> padding = 0;
  GivenPadding() = default;
  GivenPadding(ConvPaddingOf<N> padding_) : padding(padding_) {}
  operator ConvPaddingOf<N>() const { return padding; }
};

/// The size of an adaptive pooling; None, for all or one of the dimensions, keeps the input's.
template <int N>
struct OutputSize {
  std::array<int64_t, N> sizes{};
  bool is_one = false;
  OutputSize() = default;
  OutputSize(SizeOf<N> size) : sizes(sizes_of(size)), is_one(!is_tuple(size)) {}
  operator SizeOf<N>() const { return is_one ? SizeOf<N>(sizes[0]) : size_from(sizes); }
};

/// An int, a sequence of them, or None for no int.
struct Ints {
  std::vector<int64_t> values;
  Ints() = default;
  explicit Ints(std::vector<int64_t> values_) : values(std::move(values_)) {}
  operator std::vector<int64_t>() const { return values; }
  Shape shape() const { return IntArrayRef(values).to_shape(); }
};
/// A number, a sequence of them, or None for no number.
struct Numbers {
  std::vector<double> values;
  Numbers() = default;
  explicit Numbers(std::vector<double> values_) : values(std::move(values_)) {}
  operator std::vector<double>() const { return values; }
};

/// A bool, of which None is False.
struct Flag {
  bool value = false;
  Flag() = default;
  explicit Flag(bool value_) : value(value_) {}
  explicit operator bool() const { return value; }
};

/// The name of an activation: a word, a function or a module of that name.
struct ActivationName {
  std::string word;
  ActivationName() = default;
  explicit ActivationName(std::string word_) : word(std::move(word_)) {}
  operator std::string() const { return word; }
};

/// Of an int for all, or of one for each of N sizes; with `none_is_kept` None is -1.
template <size_t N>
bool load_sizes(py::handle source, std::array<int64_t, N>& sizes, bool none_is_kept = false) {
  py::object given = py::reinterpret_borrow<py::object>(source);
  if (none_is_kept) {
    const auto kept = [](py::handle size) {
      return size.is_none() ? py::object(py::int_(-1)) : py::reinterpret_borrow<py::object>(size);
    };
    if (py::isinstance<py::tuple>(source) || py::isinstance<py::list>(source)) {
      py::list list;
      for (py::handle size : source) list.append(kept(size));
      given = list;
    } else {
      given = kept(source);
    }
  }
  Shape ints;
  if (!load_ints(given, ints) || (ints.size() != 1 && ints.size() != N)) return false;
  for (size_t i = 0; i < N; ++i) sizes[i] = ints[ints.size() == 1 ? 0 : i];
  return true;
}

/// Sizes as a tuple, also of one.
template <class Size>
py::tuple size_tuple(const Size& size) {
  const auto sizes = sizes_of(size);
  py::tuple tuple(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) tuple[i] = sizes[i];
  return tuple;
}

/// A field as an attribute: sizes are a number or a tuple, as they were given.
template <class T>
py::object attribute_value(const T& value) {
  if constexpr (requires { value.has_value(); })
    return value ? attribute_value(*value) : py::none();
  else if constexpr (std::is_same_v<T, Size2> || std::is_same_v<T, Size3>)
    return is_tuple(value) ? py::object(size_tuple(value)) : py::int_(sizes_of(value)[0]);
  else
    return py::cast(value);
}

}  // namespace tern::python

namespace pybind11::detail {

template <>
struct type_caster<tern::Reduction> {
  PYBIND11_TYPE_CASTER(tern::Reduction, const_name("str"));
  bool load(handle source, bool) {
    if (!isinstance<str>(source)) return false;
    value = tern::parse_reduction(source.cast<std::string>());
    return true;
  }
  static handle cast(tern::Reduction reduction, return_value_policy, handle) {
    constexpr const char* kWords[] = {"none", "mean", "sum", "batchmean"};
    return str(kWords[static_cast<size_t>(reduction)]).release();
  }
};

template <>
struct type_caster<tern::BagMode> {
  PYBIND11_TYPE_CASTER(tern::BagMode, const_name("str"));
  bool load(handle source, bool) {
    if (!isinstance<str>(source)) return false;
    value = tern::parse_bag_mode(source.cast<std::string>());
    return true;
  }
  static handle cast(tern::BagMode mode, return_value_policy, handle) {
    return str(tern::bag_mode_word(mode)).release();
  }
};

template <>
struct type_caster<tern::python::Size1> {
  PYBIND11_TYPE_CASTER(tern::python::Size1, const_name("Size"));
  bool load(handle source, bool) {
    std::array<int64_t, 1> size{};
    if (!tern::python::load_sizes(source, size)) return false;
    value = size[0];
    return true;
  }
  static handle cast(tern::python::Size1 size, return_value_policy, handle) { return int_(size.w).release(); }
};

template <int N>
struct type_caster<tern::python::GivenPadding<N>> {
  using Padding = tern::python::GivenPadding<N>;
  PYBIND11_TYPE_CASTER(Padding, const_name("Union[Size, str]"));
  bool load(handle source, bool) {
    if (isinstance<str>(source)) {
      value = Padding(tern::ConvPaddingOf<N>(source.cast<std::string>()));
      return true;
    }
    std::array<int64_t, N> sizes{};
    if (!tern::python::load_sizes(source, sizes)) return false;
    value = Padding(tern::ConvPaddingOf<N>(tern::size_from(sizes)));
    return true;
  }
  static handle cast(const Padding& given, return_value_policy, handle) {
    if (!given.padding.word().empty()) return str(std::string(given.padding.word())).release();
    return tern::python::attribute_value(given.padding.size).release();
  }
};

template <int N>
struct type_caster<tern::python::OutputSize<N>> {
  PYBIND11_TYPE_CASTER(tern::python::OutputSize<N>, const_name("Size"));
  bool load(handle source, bool) {
    value.is_one = !isinstance<tuple>(source) && !isinstance<list>(source);
    return tern::python::load_sizes(source, value.sizes, /*none_is_kept=*/true);
  }
  static handle cast(const tern::python::OutputSize<N>& size, return_value_policy, handle) {
    const auto one = [](int64_t given) { return given == -1 ? none() : object(int_(given)); };
    tuple all(N);
    for (size_t i = 0; i < N; ++i) all[i] = one(size.sizes[i]);
    return (size.is_one ? one(size.sizes[0]) : object(std::move(all))).release();
  }
};

/// None, one value or a sequence, as a struct with a vector `values`.
template <class Values, class T>
struct values_caster {
  PYBIND11_TYPE_CASTER(Values, const_name("Sequence"));
  bool load(handle source, bool) {
    value.values.clear();
    make_caster<T> one;
    if (source.is_none()) return true;
    // A tensor or an array of one dimension.
    if (hasattr(source, "tolist") && getattr(source, "ndim", int_(0)).equal(int_(1)))
      return load(source.attr("tolist")(), true);
    if (isinstance<tuple>(source) || isinstance<list>(source)) {
      for (handle item : source) {
        if (!one.load(item, true)) return false;
        value.values.push_back(cast_op<T>(one));
      }
      return true;
    }
    if (isinstance<tern::TensorImpl>(source) || !one.load(source, true)) return false;
    value.values.push_back(cast_op<T>(one));
    return true;
  }
  static handle cast(const Values& given, return_value_policy, handle) {
    if (given.values.empty()) return none().release();
    if (given.values.size() == 1) return pybind11::cast(given.values[0]).release();
    return tuple(pybind11::cast(given.values)).release();
  }
};
template <>
struct type_caster<tern::python::Ints> : values_caster<tern::python::Ints, int64_t> {};
template <>
struct type_caster<tern::python::Numbers> : values_caster<tern::python::Numbers, double> {};

template <>
struct type_caster<tern::python::Flag> {
  PYBIND11_TYPE_CASTER(tern::python::Flag, const_name("Optional[bool]"));
  bool load(handle source, bool) {
    if (!source.is_none() && !isinstance<bool_>(source)) return false;
    value.value = source.ptr() == Py_True;
    return true;
  }
  static handle cast(tern::python::Flag flag, return_value_policy, handle) {
    return bool_(flag.value).release();
  }
};

template <>
struct type_caster<tern::python::ActivationName> {
  PYBIND11_TYPE_CASTER(tern::python::ActivationName, const_name("Union[str, Callable]"));
  bool load(handle source, bool) {
    if (isinstance<str>(source)) {
      value.word = source.cast<std::string>();
      return true;
    }
    if (isinstance<tern::nn::ReLU>(source))
      value.word = "relu";
    else if (isinstance<tern::nn::GELU>(source))
      value.word = "gelu";
    else if (hasattr(source, "__name__"))
      value.word = source.attr("__name__").cast<std::string>();
    else
      return false;
    return true;
  }
  static handle cast(const tern::python::ActivationName& activation, return_value_policy, handle) {
    return str(activation.word).release();
  }
};

/// As many numbers as the struct has, made from one for all or from each.
template <class Sides, size_t N>
struct sides_caster {
  static constexpr auto name = const_name("Size");
  template <class>
  using cast_op_type = Sides;
  bool load(handle source, bool) { return tern::python::load_sizes(source, sides_); }
  operator Sides() {
    return std::apply([](auto... each) { return Sides(each...); }, sides_);
  }

 private:
  std::array<int64_t, N> sides_{};
};
template <>
struct type_caster<tern::nn::Sides1d> : sides_caster<tern::nn::Sides1d, 2> {};
template <>
struct type_caster<tern::nn::Sides2d> : sides_caster<tern::nn::Sides2d, 4> {};
template <>
struct type_caster<tern::nn::Sides3d> : sides_caster<tern::nn::Sides3d, 6> {};

/// A tuple of h and c, or None for zeros.
template <>
struct type_caster<tern::LSTMState> {
  PYBIND11_TYPE_CASTER(tern::LSTMState, const_name("Tuple[Tensor, Tensor]"));
  bool load(handle source, bool) {
    value = {};
    if (source.is_none()) return true;
    if ((!isinstance<tuple>(source) && !isinstance<list>(source)) || len(source) != 2) return false;
    make_caster<tern::Tensor> h, c;
    if (!h.load(source[int_(0)], false) || !c.load(source[int_(1)], false)) return false;
    value = {cast_op<tern::Tensor&>(h), cast_op<tern::Tensor&>(c)};
    return true;
  }
  static handle cast(const tern::LSTMState& state, return_value_policy, handle) {
    if (!state.h.defined()) return none().release();
    return make_tuple(state.h, state.c).release();
  }
};

}  // namespace pybind11::detail
