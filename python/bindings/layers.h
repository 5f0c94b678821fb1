// What the files of layers share. Each bind_..._layers() is defined in the file of its name, layers_conv.cpp
// and so on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "bindings.h"
#include "option_casters.h"
#include "rows.h"
#include "tern/nn/whole_shapes.h"

namespace tern::python {

void bind_linear_layers(py::module_& m);  ///< Linear, Bilinear, Embedding, distances
void bind_conv_layers(py::module_& m);
void bind_pool_layers(py::module_& m);
void bind_norm_layers(py::module_& m);
void bind_activation_layers(py::module_& m);  ///< and dropout
void bind_shape_layers(py::module_& m);       ///< padding, other sizes and shapes
void bind_recurrent_layers(py::module_& m);   ///< and packed sequences
void bind_attention_layers(py::module_& m);   ///< and transformers
void bind_layer_utils(py::module_& m);        ///< norms of weights, folded batch norms: layers_utils.cpp

/// "Conv" and 2 give "Conv2d".
template <int N>
std::string in_dims(const char* name) {
  return name + std::to_string(N) + "d";
}

/// A base of layers that is not made itself.
template <class Layer, class Base = nn::Module>
LayerClass<Layer, Base> abstract_layer(py::module_& m, const char* name) {
  return LayerClass<Layer, Base>(m, name, py::dynamic_attr());
}

// ---- options as attributes

/// What an accessor of a layer shows, to be changed: a layer that Python holds is no constant.
template <class T>
T& changeable(const T& shown) {
  return const_cast<T&>(shown);
}

/// The fields that rows of options name, in the struct that `get` of the layer gives (a member or a
/// function). They can be changed, for the next call, which checks them.
template <class Class, class Get, class... Rows>
void attributes(Class& c, Get get, const std::tuple<Rows...>& options) {
  using Layer = typename Class::type;
  static_assert(std::is_reference_v<std::invoke_result_t<Get, const Layer&>>);
  const auto add = [&]<class Row>(const Row& row) {
    if constexpr (requires { row.field; })
      c.def_property(
          row.name,
          [get, field = row.field](const Layer& self) {
            return attribute_value(std::invoke(get, self).*field);
          },
          [get, row](Layer& self, typename Row::Type value) {
            row.set(changeable(std::invoke(get, self)), std::move(value));
          });
  };
  std::apply([&](const auto&... row) { (add(row), ...); }, options);
}

/// What follows from the layer's tensors: it may be assigned, as programs do that have put in others, and
/// stays what it is.
template <class Class, class Get>
void following(Class& c, const char* name, Get get) {
  using Layer = typename Class::type;
  c.def_property(
      name,
      [get](const Layer& self) {
        const nn::detail::WholeShapes shapes(self);
        return std::invoke(get, self);
      },
      [](Layer&, const py::object&) {});
}

// ---- layers whose arguments are their fields

/// A field of the layer that its constructor takes, with a default or without.
template <class Row, class Field>
struct Setting {
  Row row;
  Field field;
};
template <class Layer, class T>
auto setting(const char* name, T Layer::*field) {
  return Setting<Argument<T>, T Layer::*>{argument<T>(name), field};
}
template <class Layer, class T>
auto setting(const char* name, T Layer::*field, std::type_identity_t<T> by_default) {
  return Setting<ArgumentWithDefault<T>, T Layer::*>{argument<T>(name, std::move(by_default)), field};
}

/// A layer made of its settings, in this order, which are attributes.
template <class Layer, class... Settings>
LayerClass<Layer> layer_of_settings(py::module_& m, const char* name, const Settings&... settings) {
  LayerClass<Layer> c = layer<Layer>(m, name, rows(settings.row...));
  (c.def_readwrite(settings.row.name, settings.field), ...);
  return c;
}
/// One that is called with one tensor.
template <class Layer, class... Settings>
LayerClass<Layer> simple_layer(py::module_& m, const char* name, const Settings&... settings) {
  LayerClass<Layer> c = layer_of_settings<Layer>(m, name, settings...);
  calls(c);
  return c;
}

// ---- modules inside of layers

/// Before a layer of C++ takes a copy of a module: throws TypeError where the module's class has a forward()
/// written in Python, which the layer would not call. In modules.cpp.
void check_forward(const char* what, const nn::Module& module);

/// What stands in the place of a layer's own module: Python's module or None, null where there is none. In
/// modules.cpp.
py::object replacement_of(const nn::Module& layer, const char* name);

/// Puts a module of any class, or None, into the place of one that the layer's forward() calls; throws
/// TypeError unless the layer's class has a forward() of its own. In modules.cpp.
void replace_module(nn::Module& layer, const char* name, py::object value);

/// Takes that away again.
void restore_module(nn::Module& layer, const char* name);

/// A module that is a field of the layer: as an attribute it keeps the layer alive; one that is assigned
/// shares its tensors with what was given.
template <class Class, class Owner, class Module>
void module_field(Class& c, const char* name, Module Owner::*field) {
  using Layer = typename Class::type;
  c.def_property(
      name,
      [field, name](const std::shared_ptr<Layer>& self) -> py::object {
        if (py::object other = replacement_of(*self, name)) return other;
        return py::cast(std::shared_ptr<Module>(self, &((*self).*field)));
      },
      [field, name](Layer& self, py::object value) {
        if (!py::isinstance<Module>(value)) return replace_module(self, name, std::move(value));
        const auto& module = value.cast<const Module&>();
        check_forward(name, module);
        restore_module(self, name);
        self.*field = module;
      });
}

}  // namespace tern::python
