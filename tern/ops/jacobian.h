// Whole matrices of derivatives and products with them, as torch.autograd.functional.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::autograd {

/// A function of some tensors. None of the inputs need require gradients: what is given to it does.
using FunctionOfTensor = std::function<Tensor(const Tensor&)>;
using FunctionOfTensors = std::function<Tensor(const std::vector<Tensor>&)>;

struct DerivativeOptions {
  bool create_graph = false;  ///< the result can be differentiated again, also with respect to the inputs
  bool strict = false;  ///< AutogradError where the result does not depend on an input, instead of zeros
};

/// All derivatives of the elements of function(input) by those of `input`: a tensor [shape of the result,
/// shape of the input]. One backward pass for each element of the result. Throws DTypeError for an input that
/// is not floating point.
Tensor jacobian(const FunctionOfTensor& function, const Tensor& input, const DerivativeOptions& options = {});
/// The same by each of several inputs.
std::vector<Tensor> jacobian(const FunctionOfTensors& function, const std::vector<Tensor>& inputs,
                             const DerivativeOptions& options = {});

/// All second derivatives of a function with one number as its result: [shape of the input, shape of the
/// input]. Throws ShapeError for a result of more numbers.
Tensor hessian(const FunctionOfTensor& function, const Tensor& input, const DerivativeOptions& options = {});
/// By each pair of several inputs: `[i][j]` has the shape of input i, then of input j.
std::vector<std::vector<Tensor>> hessian(const FunctionOfTensors& function, const std::vector<Tensor>& inputs,
                                         const DerivativeOptions& options = {});

// Products with a vector, of as many numbers as a pass needs; the first of the pair is the function's result.

/// v^T J, with v of the result's shape: of the input's shape. `v` may be undefined for a result of one
/// number.
std::pair<Tensor, Tensor> vjp(const FunctionOfTensor& function, const Tensor& input, const Tensor& v = {},
                              const DerivativeOptions& options = {});
/// J v, with v of the input's shape: of the result's shape. By two backward passes, the second through the
/// first.
std::pair<Tensor, Tensor> jvp(const FunctionOfTensor& function, const Tensor& input, const Tensor& v,
                              const DerivativeOptions& options = {});
/// H v with v of the input's shape, for a function with one number as its result.
std::pair<Tensor, Tensor> hvp(const FunctionOfTensor& function, const Tensor& input, const Tensor& v,
                              const DerivativeOptions& options = {});

}  // namespace tern::autograd
