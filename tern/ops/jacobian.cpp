// Derivatives row by row.
#include "tern/ops/jacobian.h"

#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/shape.h"

namespace tern::autograd {
namespace {

/// The input as the function is given it: with a gradient, and with its history if the result is to have one.
Tensor differentiable(const char* op, const Tensor& x, bool create_graph) {
  TERN_CHECK(is_floating_point(x.dtype()), DTypeError,
             "{}: only floating-point tensors have derivatives, the input is {}", op, name(x.dtype()));
  return create_graph && x.requires_grad() ? view_as(x, x) : x.detach().requires_grad_();
}

std::vector<Tensor> differentiable(const char* op, const std::vector<Tensor>& inputs, bool create_graph) {
  std::vector<Tensor> list;
  for (const Tensor& x : inputs) list.push_back(differentiable(op, x, create_graph));
  return list;
}

/// The gradients of y, zeros for inputs that it does not depend on.
std::vector<Tensor> derivatives(const char* op, const Tensor& y, const std::vector<Tensor>& inputs,
                                const Tensor& v, const DerivativeOptions& options) {
  std::vector<Tensor> grads(inputs.size());
  if (y.requires_grad())
    grads = grad({y}, inputs, {v},
                 {.retain_graph = true, .create_graph = options.create_graph, .allow_unused = true});
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (grads[i].defined()) continue;
    TERN_CHECK(!options.strict, AutogradError, "{}: the result does not depend on input {}", op, i);
    grads[i] = zeros_like(inputs[i]);
  }
  return grads;
}

void check_like(const char* op, const Tensor& v, const Tensor& x, const char* what) {
  TERN_CHECK(v.shape() == x.shape(), ShapeError, "{}: v must have the shape {} of the {}, got {}", op,
             to_string(x.shape()), what, to_string(v.shape()));
}

Tensor one_number(const char* op, const Tensor& y) {
  TERN_CHECK(y.numel() == 1, ShapeError, "{}: the function must give one number, it gave shape {}", op,
             to_string(y.shape()));
  return y;
}

std::pair<Tensor, Tensor> finished(const Tensor& y, Tensor product, const DerivativeOptions& options) {
  return {options.create_graph ? y : y.detach(), std::move(product)};
}

FunctionOfTensors of_list(const FunctionOfTensor& function) {
  return [&function](const std::vector<Tensor>& x) { return function(x[0]); };
}

}  // namespace

std::vector<Tensor> jacobian(const FunctionOfTensors& function, const std::vector<Tensor>& inputs,
                             const DerivativeOptions& options) {
  const EnableGradGuard recording;
  const std::vector<Tensor> x = differentiable("jacobian", inputs, options.create_graph);
  const Tensor y = function(x);
  std::vector<std::vector<Tensor>> rows(x.size());
  for (int64_t i = 0; i < y.numel(); ++i) {
    const Tensor v = zeros({y.numel()}, {.dtype = y.dtype(), .device = y.device()});
    narrow(v, 0, i, 1).fill_(1);
    const std::vector<Tensor> grads = derivatives("jacobian", y, x, reshape(v, y.shape()), options);
    for (size_t k = 0; k < x.size(); ++k) rows[k].push_back(grads[k]);
  }
  std::vector<Tensor> matrices;
  for (size_t k = 0; k < x.size(); ++k) {
    Shape shape = y.shape();
    for (const int64_t size : x[k].shape()) shape.push_back(size);
    matrices.push_back(rows[k].empty() ? zeros(shape, {.dtype = x[k].dtype(), .device = x[k].device()})
                                       : reshape(stack(rows[k]), shape));
  }
  return matrices;
}

Tensor jacobian(const FunctionOfTensor& function, const Tensor& input, const DerivativeOptions& options) {
  return jacobian(of_list(function), {input}, options)[0];
}

std::vector<std::vector<Tensor>> hessian(const FunctionOfTensors& function, const std::vector<Tensor>& inputs,
                                         const DerivativeOptions& options) {
  std::vector<std::vector<Tensor>> rows;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto gradient = [&](const std::vector<Tensor>& x) {
      const Tensor y = one_number("hessian", function(x));
      return derivatives("hessian", y, {x[i]}, {}, {.create_graph = true, .strict = options.strict})[0];
    };
    rows.push_back(jacobian(gradient, inputs, options));
  }
  return rows;
}

Tensor hessian(const FunctionOfTensor& function, const Tensor& input, const DerivativeOptions& options) {
  return hessian(of_list(function), {input}, options)[0][0];
}

std::pair<Tensor, Tensor> vjp(const FunctionOfTensor& function, const Tensor& input, const Tensor& v,
                              const DerivativeOptions& options) {
  const EnableGradGuard recording;
  const Tensor x = differentiable("vjp", input, options.create_graph), y = function(x);
  if (v.defined())
    check_like("vjp", v, y, "function's result");
  else
    one_number("vjp: without v", y);
  return finished(y, derivatives("vjp", y, {x}, v, options)[0], options);
}

std::pair<Tensor, Tensor> jvp(const FunctionOfTensor& function, const Tensor& input, const Tensor& v,
                              const DerivativeOptions& options) {
  check_like("jvp", v, input, "input");
  const EnableGradGuard recording;
  const Tensor x = differentiable("jvp", input, options.create_graph), y = function(x);
  // J^T u is linear in u: its derivative by u is J^T, whose product with v from the left is J v.
  const Tensor u = zeros_like(y).requires_grad_();
  const Tensor product = derivatives("jvp", y, {x}, u, {.create_graph = true, .strict = options.strict})[0];
  return finished(y, derivatives("jvp", product, {u}, v, options)[0], options);
}

std::pair<Tensor, Tensor> hvp(const FunctionOfTensor& function, const Tensor& input, const Tensor& v,
                              const DerivativeOptions& options) {
  check_like("hvp", v, input, "input");
  const EnableGradGuard recording;
  const Tensor x = differentiable("hvp", input, options.create_graph), y = one_number("hvp", function(x));
  const Tensor gradient = derivatives("hvp", y, {x}, {}, {.create_graph = true, .strict = options.strict})[0];
  return finished(y, derivatives("hvp", gradient, {x}, v, options)[0], options);
}

}  // namespace tern::autograd
