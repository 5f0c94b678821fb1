// Derivatives of whole functions, as torch.autograd.functional: of one tensor or, for jacobian and hessian,
// of several.
#include "functional.h"

namespace tern::python {

namespace {

using autograd::DerivativeOptions;

Tensor tensor_of_result(const py::object& result) {
  if (!py::isinstance<TensorImpl>(result))
    throw TypeError("the function must return one tensor, got " +
                    std::string(Py_TYPE(result.ptr())->tp_name));
  return result.cast<Tensor>();
}

autograd::FunctionOfTensor of_tensor(py::function function) {
  return [function = Callback(std::move(function))](const Tensor& x) {
    const py::gil_scoped_acquire gil;
    return tensor_of_result(function(x));
  };
}
autograd::FunctionOfTensors of_tensors(py::function function) {
  return [function = Callback(std::move(function))](const std::vector<Tensor>& inputs) {
    const py::gil_scoped_acquire gil;
    return tensor_of_result(function(*py::tuple(py::cast(inputs))));
  };
}

py::tuple tuple_of(const std::vector<Tensor>& tensors) { return py::cast(tensors); }
py::tuple tuple_of(const std::vector<std::vector<Tensor>>& rows_of_tensors) {
  py::list list;
  for (const std::vector<Tensor>& row : rows_of_tensors) list.append(tuple_of(row));
  return py::tuple(list);
}

/// `derivative(function, input, options)` of a tensor or of a tuple of them.
template <class Derivative>
void bind_matrix(py::module_& m, const char* name, Derivative derivative) {
  m.def(
      name,
      [derivative](py::function function, py::object inputs, bool create_graph, bool strict, bool,
                   const std::string&) {
        const DerivativeOptions options{.create_graph = create_graph, .strict = strict};
        const auto released = [&](const auto& f, const auto& given) {
          const py::gil_scoped_release no_gil;
          return derivative(f, given, options);
        };
        if (py::isinstance<TensorImpl>(inputs))
          return py::cast(released(of_tensor(std::move(function)), inputs.cast<Tensor>()));
        return py::object(
            tuple_of(released(of_tensors(std::move(function)), inputs.cast<TensorIterable>().tensors)));
      },
      py::arg("func"), py::arg("inputs").none(false), py::arg("create_graph") = false,
      py::arg("strict") = false, py::arg("vectorize") = false, py::arg("strategy") = "reverse-mode");
}

/// `product(function, input, v, options)`.
template <class Product>
void bind_product(py::module_& m, const char* name, Product product) {
  m.def(
      name,
      [product](py::function function, const Tensor& input, const Tensor& v, bool create_graph, bool strict) {
        const DerivativeOptions options{.create_graph = create_graph, .strict = strict};
        const autograd::FunctionOfTensor f = of_tensor(std::move(function));
        const py::gil_scoped_release no_gil;
        return product(f, input, v, options);
      },
      py::arg("func"), py::arg("inputs").none(false), py::arg("v") = py::none(),
      py::arg("create_graph") = false, py::arg("strict") = false);
}

}  // namespace

void bind_functional_jacobian(py::module_& m) {
  bind_matrix(m, "jacobian", [](const auto&... given) { return autograd::jacobian(given...); });
  bind_matrix(m, "hessian", [](const auto&... given) { return autograd::hessian(given...); });
  bind_product(m, "vjp", [](const auto&... given) { return autograd::vjp(given...); });
  bind_product(m, "jvp", [](const auto&... given) { return autograd::jvp(given...); });
  bind_product(m, "hvp", [](const auto&... given) { return autograd::hvp(given...); });
}

}  // namespace tern::python
