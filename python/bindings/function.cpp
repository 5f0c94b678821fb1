// Functions of Python with gradients of their own (autograd.Function), and functions that are computed again
// in backward (utils.checkpoint). What arguments there are besides tensors is known to
// python/tern/autograd/function.py alone.
#include "bindings.h"
#include "errors.h"

namespace tern::python {

namespace {

/// What a call keeps: its way back, and a function that gives the object which both ways share.
struct Call {
  Callback backward, context;
};

struct PythonFunction : autograd::Function<PythonFunction> {
  std::shared_ptr<const Call> call;

  std::vector<Tensor> forward(autograd::FunctionContext& own, const std::vector<Tensor>&,
                              const std::shared_ptr<const Call>& given, const Callback& forward_of_python) {
    call = given;
    const py::gil_scoped_acquire gil;
    auto results = forward_of_python().cast<std::vector<Tensor>>();
    const py::object context = call->context();
    own.save_for_backward(context.attr("_to_save").cast<std::vector<Tensor>>());
    own.mark_non_differentiable(context.attr("_not_differentiable").cast<std::vector<Tensor>>());
    own.set_materialize_grads(context.attr("_materialize").cast<bool>());
    context.attr("_to_save") =
        py::list();  // the graph keeps them: the context must not, or nothing would end
    context.attr("_not_differentiable") = py::list();
    return results;
  }

  std::vector<Tensor> backward(const autograd::FunctionContext& own, const std::vector<Tensor>& grads) {
    const py::gil_scoped_acquire gil;
    const py::object context = call->context();
    context.attr("saved_tensors") = py::tuple(py::cast(own.saved_tensors()));
    auto result = call->backward(grads).cast<std::vector<Tensor>>();
    context.attr("saved_tensors") = py::tuple();
    return result;
  }
};

}  // namespace

void bind_functions(py::module_& m) {
  m.def("_apply_function", [](const std::vector<Tensor>& tensors, py::function forward, py::function backward,
                              py::function context) {
    const auto call =
        std::make_shared<const Call>(Call{Callback(std::move(backward)), Callback(std::move(context))});
    const Callback once(std::move(forward));
    const py::gil_scoped_release no_gil;
    return PythonFunction::apply(tensors, call, once);
  });
  m.def("_checkpoint", [](py::function function, const std::vector<Tensor>& tensors) {
    if (!is_grad_enabled()) return function(tensors);
    const Callback held(function);
    const auto again = std::make_shared<nn::utils::detail::Recomputation>(
        [held](const std::vector<Tensor>& inputs) {
          const py::gil_scoped_acquire gil;
          try {
            held(inputs);
          } catch (const py::error_already_set& error) {
            rethrow_enough(error);
            throw;
          }
        },
        tensors);
    const autograd::SavedTensorsHooks hooks(again->pack());
    return function(tensors);
  });
}

}  // namespace tern::python
