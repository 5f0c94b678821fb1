// Collective copies: one tensor or many to several devices, and sums of what several devices have
// (torch.nn.parallel.comm). Splitting and joining is in parallel/scatter_gather.h.
#pragma once

#include <vector>

#include "tern/core/tensor.h"

namespace tern::parallel {

/// x on every one of the devices; x itself where it is already. The gradient is the sum of all copies'
/// gradients, where x is, added in the order of the devices.
std::vector<Tensor> broadcast(const Tensor& x, const std::vector<Device>& devices);

/// Many tensors of one device on every one of the devices: result[d][i] is tensor i on devices[d]. They are
/// packed, so that each device gets one copy for 32 MiB of each dtype; the results on a device share a
/// storage. On the device of the tensors the results are the tensors themselves. Gradients come back packed
/// too, and are added in the order of the devices. Throws DeviceError when the tensors are not all on one
/// device.
std::vector<std::vector<Tensor>> broadcast_coalesced(const std::vector<Tensor>& tensors,
                                                     const std::vector<Device>& devices);

/// The sum of tensors of one shape and dtype, on `destination`, added in their order. Differentiable. Throws
/// ValueError, ShapeError, DTypeError.
Tensor reduce_add(const std::vector<Tensor>& inputs, Device destination);

/// For lists of tensors, one of each device: result[i] is the sum of inputs[d][i] over d, on `destination`.
/// Each device sends one copy for 32 MiB of each dtype. Not recorded. Throws as reduce_add.
std::vector<Tensor> reduce_add_coalesced(const std::vector<std::vector<Tensor>>& inputs, Device destination);

}  // namespace tern::parallel
