// Fully connected layers: a product with its bias, and all gradients, as one launch each. The kernels are
// described in kernels/matmul.h and linear.h.
#pragma once

#include "tern/core/tensor.h"

namespace tern {

/// x W^T + bias: x [..., in], weight [out, in], bias [out] or undefined, all of one dtype; the result is
/// [..., out]. Throws DTypeError for two dtypes or bool, ShapeError for sizes that do not fit, DeviceError
/// for tensors on two devices.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// relu(linear(...)) as one launch, and its gradients as one.
Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// x1 W_o x2^T + b_o for each output o: x1 [..., I], x2 [..., J], weight [O, I, J], bias [O] or undefined;
/// [..., O]. Throws ShapeError, DTypeError.
Tensor bilinear(const Tensor& x1, const Tensor& x2, const Tensor& weight, const Tensor& bias = {});
/// linear(gelu(linear(x, weight1, bias1), "tanh"), weight2, bias2), as one launch for each layer, and as many
/// for the gradients. weight1 [hidden, in], weight2 [out, hidden]; biases may be undefined. Errors as
/// linear's.
Tensor linear_gelu_linear(const Tensor& x, const Tensor& weight1, const Tensor& bias1, const Tensor& weight2,
                          const Tensor& bias2);

}  // namespace tern
