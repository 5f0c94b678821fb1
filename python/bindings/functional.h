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

}  // namespace tern::python
