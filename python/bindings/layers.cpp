// The layers of torch.nn, each family in a file of its own. Losses are in losses.cpp, nn.Module in
// modules.cpp.
#include "layers.h"
#include "modules.h"

namespace tern::python {

namespace {

/// The same tensor wherever it stood in several places.
py::object deep_copy(const Tensor& tensor, const py::object& object, const py::dict& memo) {
  if (nn::is_lazy(tensor)) {
    const Tensor copy = tensor.detach().clone();
    nn::detail::defer({&copy});
    return py::cast(copy.requires_grad_(tensor.requires_grad()));
  }
  return imported("copy", "deepcopy")(object, memo);
}

/// What a copied layer shares with the first becomes its own: tensors, and the modules that Python added.
void separate(nn::Module& layer, const py::dict& memo) {
  copy_hooks(layer, memo);
  const std::shared_ptr<nn::detail::AddedFields> added = layer.added_fields();
  layer.set_added_fields(nullptr);
  const nn::Fields own = layer.fields();
  std::vector<std::pair<std::string, py::object>> copied;
  for (const auto& [name, parameter] : own.parameters) {
    copied.emplace_back(name, deep_copy(*parameter, parameter_object(*parameter), memo));
    static_cast<Tensor&>(*parameter) = copied.back().second.cast<Tensor>();
  }
  for (const auto& [name, buffer] : own.buffers)
    static_cast<Tensor&>(*buffer) =
        deep_copy(*buffer, py::cast(static_cast<const Tensor&>(*buffer)), memo).cast<Tensor>();
  for (const auto& [name, module] : own.modules) separate(*module, memo);
  layer.set_added_fields(added);
  for (const auto& [name, copy] : copied) kept_parameter(layer, name, copy.cast<Tensor>());
  if (!added) return;
  PythonFields& fields = *python_fields(layer);
  const py::object deepcopy = imported("copy", "deepcopy");
  for (const auto& [name, kind] : fields.tensor_fields()) {
    const py::object copy = deepcopy(*fields.find(name), memo);
    if (kind == std::string_view("parameter"))
      fields.set_parameter(name, copy);
    else
      fields.set_buffer(name, copy.cast<Tensor>(), fields.is_saved(name));
  }
  for (const auto& [name, module] : fields.modules_below()) fields.set_module(name, deepcopy(module, memo));
}

}  // namespace

py::object finished_copy(const py::object& self, py::object copy, const std::optional<py::dict>& memo) {
  py::object attributes = self.attr("__dict__");
  if (memo) {
    (*memo)[py::int_(reinterpret_cast<uintptr_t>(self.ptr()))] = copy;
    separate(copy.cast<nn::Module&>(), *memo);
    attributes = imported("copy", "deepcopy")(attributes, *memo);
  }
  copy.attr("__dict__").attr("update")(attributes);
  return copy;
}

void check_parameter(nn::Module& layer, const char* name, py::handle value) {
  PythonFields* fields = python_fields(layer);
  if (is_parameter(value)) {
    if (fields) fields->show(name);
  } else if (!value.is_none() && !(fields && fields->is_hidden(name) && py::isinstance<TensorImpl>(value))) {
    throw TypeError("cannot assign '" + std::string(Py_TYPE(value.ptr())->tp_name) + "' as parameter '" +
                    name + "' (nn.Parameter or None expected)");
  }
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
