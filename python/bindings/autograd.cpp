// Gradients: modes, grad() and backward(), Jacobians of Python's functions. The methods of Tensor are in
// tensor.cpp.
#include <unordered_set>

#include "bindings.h"
#include "tern/autograd/node.h"

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

/// Whether the results have a history that leads to leaves other than these.
bool depends_on_others(const std::vector<Tensor>& results, const std::vector<Tensor>& leaves) {
  std::unordered_set<const TensorImpl*> own;
  for (const Tensor& leaf : leaves) own.insert(&leaf.impl());
  std::unordered_set<const Node*> seen;
  std::vector<IntrusivePtr<Node>> next;
  bool found = false;
  const auto follow = [&](const Edge& edge) {
    if (edge.leaf) found |= !own.contains(edge.leaf.get());
    if (edge.node && seen.insert(edge.node.get()).second) next.push_back(edge.node);
  };
  for (const Tensor& result : results) follow(gradient_edge(result));
  while (!found && !next.empty()) {
    const IntrusivePtr<Node> node = std::move(next.back());
    next.pop_back();
    for (const Edge& edge : node->inputs()) follow(edge);
  }
  return found;
}

}  // namespace

void bind_autograd(py::module_& m) {
  m.def("is_grad_enabled", &is_grad_enabled);
  m.def("_depends_on_others", &depends_on_others);
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
      .def(py::init(
          [](Device device, std::optional<DType> dtype, bool enabled, std::optional<bool> cache_enabled) {
            return std::make_unique<AutocastGuard>(
                AutocastOptions{.device_type = device.type,
                                .dtype = dtype,
                                .enabled = enabled,
                                .cache_enabled = cache_enabled.value_or(is_autocast_cache_enabled())});
          }));
  m.def(
      "is_autocast_enabled", [](Device device) { return is_autocast_enabled(device.type); },
      py::arg("device_type") = Device(DeviceType::CUDA, -1));
  m.def(
      "get_autocast_dtype", [](Device device) { return get_autocast_dtype(device.type); },
      py::arg("device_type"));
  m.def("is_autocast_cache_enabled", &is_autocast_cache_enabled);
  m.def("clear_autocast_cache", &clear_autocast_cache);
}

}  // namespace tern::python
