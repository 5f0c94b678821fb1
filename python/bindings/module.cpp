// The extension module tern._C.
#include "errors.h"
#include "generated.h"
#include "modules.h"
#include "plain_classes.h"

PYBIND11_MODULE(_C, m) {
  using namespace tern::python;
  m.doc() = "Tern's tensors, operators, layers and files; the package `tern` gives them their places.";
  m.attr("__version__") = TERN_VERSION;
  m.attr("__module__") = "tern";  // in the names of classes
  const PlainClasses classes;
  bind_errors(m);
  bind_types(m);
  TensorClass tensor = bind_tensor(m);
  bind_indexing(tensor);
  bind_operators(m);
  bind_creation(m);
  bind_functional(m);
  bind_generated_methods(m, tensor);
  bind_numpy(m, tensor);
  bind_autograd(m);
  bind_checks(m);
  bind_functions(m);
  bind_devices(m);
  m.attr("__module__") = "tern.nn";
  bind_modules(m);
  bind_init(m);
  bind_layers(m);
  bind_losses(m);
  m.attr("__module__") = "tern.optim";
  bind_optimizers(m);
  bind_schedulers(m);
  m.attr("__module__") = "tern";
  bind_files(m);
  m.attr("__module__") = "tern.utils.data";
  bind_data(m);
  m.attr("__module__") = "tern.transforms";
  bind_transforms(m);
  m.attr("__module__") = "tern.datasets";
  bind_datasets(m);
  m.attr("__module__") = "tern.utils";
  bind_events(m);
  bind_parallel(m);
  bind_distributed(m);
  finish_module_classes(m);
  shorten_call_errors(m);
  classes.finish();
  py::delattr(m, "__module__");
}
