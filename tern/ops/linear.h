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

}  // namespace tern
