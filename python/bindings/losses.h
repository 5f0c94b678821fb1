// What the files of losses share: each row of options gives the layer's arguments and the function's.
#pragma once

#include "layers.h"

namespace tern::python {

void bind_margin_losses(py::module_& m);  ///< of rankings, embeddings and margins

/// Lets the function take `size_average` and `reduce`, which `reduction` has replaced, with PyTorch's
/// warning. In losses.cpp.
void take_old_reduction(py::module_& m, const char* name);

inline auto input_and_target() { return rows(argument<Tensor>("input"), argument<Tensor>("target")); }
inline auto two_inputs_and_target() {
  return rows(argument<Tensor>("input1"), argument<Tensor>("input2"), argument<Tensor>("target"));
}

/// A loss whose options are a struct: `f(arguments..., options)` as a function, and as a layer.
template <class Layer, class F, class Arguments, class Options>
LayerClass<Layer> loss(py::module_& m, const char* class_name, const char* name, F f,
                       const Arguments& arguments, const Options& options) {
  function(m, name, f, arguments, options);
  take_old_reduction(m, name);
  LayerClass<Layer> c = layer<Layer>(m, class_name, rows(), options);
  calls(c, arguments);
  return c;
}

/// One whose only option is the reduction.
template <class Layer>
void loss_with_reduction(py::module_& m, const char* class_name, const char* name,
                         Tensor (*f)(const Tensor&, const Tensor&, Reduction)) {
  function(m, name, f, std::tuple_cat(input_and_target(), rows(argument("reduction", Reduction::Mean))));
  take_old_reduction(m, name);
  LayerClass<Layer> c =
      layer_of_settings<Layer>(m, class_name, setting("reduction", &Layer::reduction, Reduction::Mean));
  calls(c, input_and_target());
}

}  // namespace tern::python
