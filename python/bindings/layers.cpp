// The layers of torch.nn, each family in a file of its own. Losses are in losses.cpp, nn.Module in
// modules.cpp.
#include "layers.h"

namespace tern::python {

namespace {

/// The same tensor wherever it stood in several places.
Tensor deep_copy(const Tensor& tensor, const py::object& object, const py::dict& memo) {
  if (nn::is_lazy(tensor)) {
    const Tensor copy = tensor.detach().clone();
    nn::detail::defer({&copy});
    return copy.requires_grad_(tensor.requires_grad());
  }
  return imported("copy", "deepcopy")(object, memo).cast<Tensor>();
}

}  // namespace

py::object finished_copy(const py::object& self, py::object copy, const std::optional<py::dict>& memo) {
  py::object attributes = self.attr("__dict__");
  if (memo) {
    attributes = imported("copy", "deepcopy")(attributes, *memo);
    for (nn::Module* module : copy.cast<nn::Module&>().modules()) {
      const nn::Fields fields = module->fields();
      for (const auto& [name, parameter] : fields.parameters)
        static_cast<Tensor&>(*parameter) = deep_copy(*parameter, py::cast(*parameter), *memo);
      for (const auto& [name, buffer] : fields.buffers)
        static_cast<Tensor&>(*buffer) = deep_copy(*buffer, py::cast(*buffer), *memo);
    }
  }
  copy.attr("__dict__").attr("update")(attributes);
  return copy;
}

void check_parameter(const char* name, py::handle value) {
  if (!value.is_none() && !is_parameter(value))
    throw TypeError("cannot assign '" + std::string(Py_TYPE(value.ptr())->tp_name) + "' as parameter '" +
                    name + "' (nn.Parameter or None expected)");
}

void bind_layers(py::module_& m) {
  bind_linear_layers(m);
  bind_conv_layers(m);
  bind_pool_layers(m);
  bind_norm_layers(m);
  bind_activation_layers(m);
  bind_shape_layers(m);
  bind_recurrent_layers(m);
  bind_attention_layers(m);
  bind_layer_utils(m);
}

}  // namespace tern::python
