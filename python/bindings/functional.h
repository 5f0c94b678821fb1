// The parts of bind_functional(), each in the file of its name.
#pragma once

#include "bindings.h"
#include "option_casters.h"
#include "rows.h"

namespace tern::python {

void bind_functional_conv(py::module_& m);
void bind_functional_pool(py::module_& m);
void bind_functional_in_place(py::module_& m);  ///< activations and dropout with `inplace`
void bind_functional_jacobian(py::module_& m);

/// f(x), or x with the numbers of f(x). `keeps_input`: whether f keeps x for its gradient, which must not
/// change then.
template <class F>
Tensor maybe_in_place(Tensor x, bool in_place, F f, bool keeps_input = true) {
  if (!in_place) return f(x);
  const bool copies = keeps_input && is_grad_enabled() && x.requires_grad();
  return x.copy_(f(copies ? x.clone() : x));
}

}  // namespace tern::python
