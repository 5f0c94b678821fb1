// Gradients: modes, grad() and backward(), Jacobians of Python's functions. The methods of Tensor are in
// tensor.cpp.
#include "bindings.h"

namespace tern::python {

namespace {

/// One tensor, or an iterable of them; None is none.
std::vector<Tensor> tensors_of(py::handle source) {
  if (source.is_none()) return {};
  if (py::isinstance<TensorImpl>(source)) return {source.cast<Tensor>()};
  std::vector<Tensor> tensors;
  for (py::handle item : py::reinterpret_borrow<py::iterable>(source)) tensors.push_back(item.cast<Tensor>());
  return tensors;
}

}  // namespace

void bind_autograd(py::module_& m) {
  m.def("is_grad_enabled", &is_grad_enabled);
  m.def("_set_grad_enabled", [](bool enabled) { return std::exchange(tern::detail::grad_enabled, enabled); });
  m.def(
      "backward",
      [](py::object tensors, py::object gradients, bool retain_graph, bool create_graph) {
        const std::vector<Tensor> outputs = tensors_of(tensors), given = tensors_of(gradients);
        const py::gil_scoped_release no_gil;
        backward(outputs, given, retain_graph, create_graph);
      },
      py::arg("tensors"), py::arg("grad_tensors") = py::none(), py::arg("retain_graph") = false,
      py::arg("create_graph") = false);
  m.def(
      "grad",
      [](py::object outputs, py::object inputs, py::object grad_outputs, bool retain_graph, bool create_graph,
         bool, bool allow_unused) {
        const std::vector<Tensor> of = tensors_of(outputs), to = tensors_of(inputs),
                                  given = tensors_of(grad_outputs);
        std::vector<Tensor> gradients;
        {
          const py::gil_scoped_release no_gil;
          gradients = grad(
              of, to, given,
              {.retain_graph = retain_graph, .create_graph = create_graph, .allow_unused = allow_unused});
        }
        return py::tuple(py::cast(gradients));
      },
      py::arg("outputs"), py::arg("inputs"), py::arg("grad_outputs") = py::none(),
      py::arg("retain_graph") = false, py::arg("create_graph") = false, py::arg("only_inputs") = true,
      py::arg("allow_unused") = false);

  py::class_<autograd::DetectAnomalyGuard, std::unique_ptr<autograd::DetectAnomalyGuard>>(m, "_AnomalyGuard")
      .def(py::init<>());
  py::class_<AutocastGuard, std::unique_ptr<AutocastGuard>>(m, "_AutocastGuard")
      .def(py::init([](Device device, std::optional<DType> dtype, bool enabled) {
        AutocastOptions options;
        options.device_type = device.type;
        if (dtype) options.dtype = *dtype;
        options.enabled = enabled;
        return std::make_unique<AutocastGuard>(options);
      }));
}

}  // namespace tern::python
