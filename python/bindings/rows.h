// Functions and layers that take a struct of options, as Python functions with keyword arguments; a row for
// each:
//
//     layer<nn::Linear>(m, "Linear", rows(argument<int64_t>("in_features"),
//     argument<int64_t>("out_features")),
//                       rows(option("bias", &nn::LinearOptions::bias), ...));
//     function(m, "pad", &pad_as_said, rows(argument<Tensor>("input"), argument<Tensor>("bias", {})),
//     rows(option(...)));
//
// Arguments keep the order of the row, which is PyTorch's; fields have the defaults of their struct.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "casters.h"

namespace tern::python {

/// An argument that must be given; never None.
template <class T>
struct Argument {
  using Type = T;
  const char* name;
  py::arg declared() const {
    py::arg arg(name);
    arg.none(false);
    return arg;
  }
};
template <class T>
Argument<T> argument(const char* name) {
  return {name};
}

/// One with a default.
template <class T>
struct ArgumentWithDefault {
  using Type = T;
  const char* name;
  T by_default;
  py::arg_v declared() const { return py::arg_v(name, by_default); }
};
template <class T>
ArgumentWithDefault<T> argument(const char* name, T by_default) {
  return {name, std::move(by_default)};
}

/// A field of the struct `Options`, given as an `As`, which becomes the field's `T`.
template <class Options, class T, class As = T>
struct Option {
  using Owner = Options;
  using Type = As;
  const char* name;
  T Options::*field;
  py::arg_v declared() const {
    const Options defaults{};
    return py::arg_v(name, As(defaults.*field));
  }
  void set(Options& options, As value) const { options.*field = T(std::move(value)); }
};
template <class Options, class T>
Option<Options, T> option(const char* name, T Options::*field) {
  return {name, field};
}
template <class As, class Options, class T>
Option<Options, T, As> option_as(const char* name, T Options::*field) {
  return {name, field};
}

/// An argument of PyTorch's that must have its default, since nothing else is there yet.
template <class T>
struct Lacking : ArgumentWithDefault<T> {
  using Owner = void;
  template <class Options>
  void set(Options&, const T& value) const {
    if (!(value == this->by_default))
      throw NotImplementedError(std::string(this->name) +
                                ": only its default is supported, which is to leave it out");
  }
};
template <class T>
Lacking<T> lacks(const char* name, T only) {
  return {{name, std::move(only)}};
}

/// One that says how to compute what is the same either way.
template <class T>
struct Ignored : ArgumentWithDefault<T> {
  using Owner = void;
  template <class Options>
  void set(Options&, const T&) const {}
};
template <class T>
Ignored<T> ignores(const char* name, T by_default) {
  return {{name, std::move(by_default)}};
}

template <class... Rows>
std::tuple<Rows...> rows(Rows... each) {
  return {std::move(each)...};
}

namespace detail {

struct NoOptions {};

/// The struct whose fields the rows name.
template <class... Rows>
struct OwnerOf {
  using Type = NoOptions;
};
template <class First, class... Rest>
struct OwnerOf<First, Rest...> {
  using Type = std::conditional_t<std::is_void_v<typename First::Owner>, typename OwnerOf<Rest...>::Type,
                                  typename First::Owner>;
};

/// A function of the values of both lists of rows: `body(self..., arguments..., options)`.
template <class... Self, class Body, class... Arguments, class... Options>
auto with_options(Body body, const std::tuple<Arguments...>&, const std::tuple<Options...>& options) {
  return
      [body, options](Self... self, typename Arguments::Type... arguments, typename Options::Type... values) {
        typename OwnerOf<Options...>::Type given{};
        std::apply([&](const auto&... row) { (row.set(given, std::move(values)), ...); }, options);
        if constexpr (std::is_same_v<decltype(given), NoOptions>)
          return body(self..., std::move(arguments)...);
        else
          return body(self..., std::move(arguments)..., std::move(given));
      };
}

/// Calls `define(declared...)` with the declarations of all rows.
template <class Arguments, class Options, class Define>
void declare(const Arguments& arguments, const Options& options, Define&& define) {
  std::apply([&](const auto&... row) { define(row.declared()...); }, std::tuple_cat(arguments, options));
}

}  // namespace detail

/// `body(arguments..., options)` as a function of the module.
template <class Body, class Arguments, class Options = std::tuple<>>
void function(py::module_& m, const char* name, Body body, const Arguments& arguments,
              const Options& options = {}) {
  detail::declare(arguments, options, [&](auto... declared) {
    m.def(name, detail::with_options(body, arguments, options), declared..., ReleaseGil());
  });
}

/// `body(self, arguments..., options)` as a method of a class.
template <class Class, class Body, class Arguments, class Options = std::tuple<>>
void method(Class& c, const char* name, Body body, const Arguments& arguments, const Options& options = {}) {
  detail::declare(arguments, options, [&](auto... declared) {
    c.def(name, detail::with_options<typename Class::type&>(body, arguments, options), declared...,
          ReleaseGil());
  });
}

/// Gives `copy`, a layer that shares the tensors of `self`, the attributes of `self`; with the memo of
/// copy.deepcopy also tensors and modules of its own. In layers.cpp.
py::object finished_copy(const py::object& self, py::object copy, const std::optional<py::dict>& memo);

/// copy.copy() and copy.deepcopy(), of classes that Python derives too.
template <class Class>
void copies(Class& c) {
  using Layer = typename Class::type;
  const auto copy_as = [](const py::object& self, const py::object& type) {
    py::object object = type.attr("__new__")(type);
    auto* instance = reinterpret_cast<py::detail::instance*>(object.ptr());
    auto place = instance->get_value_and_holder(py::detail::get_type_info(typeid(Layer)));
    auto copy = std::make_shared<Layer>(self.cast<const Layer&>());
    place.value_ptr() = copy.get();
    place.type->init_instance(instance, &copy);
    return object;
  };
  const auto copy_of = [copy_as](const py::object& self) { return copy_as(self, py::type::of(self)); };
  // An object of a derived class that is this layer, for files.
  c.def("_as", copy_as);
  c.def("__copy__", [copy_of](py::object self) { return finished_copy(self, copy_of(self), {}); });
  c.def(
      "__deepcopy__",
      [copy_of](py::object self, py::dict memo) { return finished_copy(self, copy_of(self), memo); },
      py::arg("memo"));
}

template <class Layer, class Base = nn::Module>
using LayerClass = py::class_<Layer, Base, std::shared_ptr<Layer>>;

/// A layer made by `make(arguments..., options)`, which gives a shared pointer.
template <class Layer, class Base = nn::Module, class Make, class Arguments, class Options = std::tuple<>>
LayerClass<Layer, Base> layer_by(py::module_& m, const char* name, Make make, const Arguments& arguments,
                                 const Options& options = {}) {
  LayerClass<Layer, Base> result(m, name, py::dynamic_attr());
  detail::declare(arguments, options, [&](auto... declared) {
    result.def(py::init(detail::with_options(make, arguments, options)), declared...);
  });
  copies(result);
  return result;
}

/// A layer made by `Layer(arguments..., options)`. What it is called with is said by calls(), unless that is
/// inherited.
template <class Layer, class Base = nn::Module, class Arguments, class Options = std::tuple<>>
LayerClass<Layer, Base> layer(py::module_& m, const char* name, const Arguments& arguments,
                              const Options& options = {}) {
  auto make = [](auto&&... values) {
    return std::make_shared<Layer>(std::forward<decltype(values)>(values)...);
  };
  return layer_by<Layer, Base>(m, name, make, arguments, options);
}

/// What the layer is called with: `calls(c, rows(argument<Tensor>("input"), argument<Tensor>("target")))`.
/// The call runs hooks and puts the layer's name before the text of errors, `forward` does neither.
template <class Class, class Arguments = std::tuple<Argument<Tensor>>, class Options = std::tuple<>>
void calls(Class& c, const Arguments& arguments = rows(argument<Tensor>("input")),
           const Options& options = {}) {
  using Layer = typename Class::type;
  method(
      c, "__call__", [](Layer& self, const auto&... values) { return nn::detail::call(self, values...); },
      arguments, options);
  method(
      c, "forward", [](Layer& self, const auto&... values) { return self.forward(values...); }, arguments,
      options);
}

/// Before a layer's own field takes a value: throws TypeError unless that is a parameter or None, as PyTorch
/// does; of a field that was deleted, any tensor.
void check_parameter(nn::Module& layer, const char* name, py::handle value);

/// The Python object of a layer's own parameter; the layer keeps it, with what is assigned to its attributes.
/// In modules.cpp.
py::object kept_parameter(nn::Module& layer, const std::string& name, const Tensor& parameter);

/// A parameter or buffer of the layer as an attribute; assigned, it is that parameter or tensor, or None.
template <class Class, class Owner, class Field>
void tensor_field(Class& c, const char* name, Field Owner::*field) {
  using Layer = typename Class::type;
  if constexpr (std::is_same_v<Field, nn::Parameter>)
    c.def_property(
        name, [field, name](Layer& self) { return kept_parameter(self, name, self.*field); },
        [field, name](Layer& self, py::object value) {
          check_parameter(self, name, value);
          static_cast<Tensor&>(self.*field) = value.cast<Tensor>();
        });
  else
    c.def_property(
        name, [field](Layer& self) { return self.*field; },
        [field](Layer& self, py::object value) { static_cast<Tensor&>(self.*field) = value.cast<Tensor>(); });
}

/// A layer of one tensor that has a weight and a bias.
template <class Class>
void weight_and_bias(Class& c) {
  tensor_field(c, "weight", &Class::type::weight);
  tensor_field(c, "bias", &Class::type::bias);
}

}  // namespace tern::python
