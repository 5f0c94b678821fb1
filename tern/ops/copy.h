// Operators that copy or convert: to, contiguous, clone, copy_, item.
#pragma once

#include "tern/core/tensor.h"

namespace tern {

/// x with another dtype; x itself when it has it (unless options.copy). Differentiable.
Tensor to(const Tensor& x, DType dtype, ToOptions options = {});
/// x on another device; x itself when it is there (unless options.copy). Differentiable.
Tensor to(const Tensor& x, Device device, ToOptions options = {});
/// See Tensor::pin_memory.
Tensor pin_memory(const Tensor& x);
namespace detail {
/// The numbers of x, on the CPU or a GPU, in memory that GPUs copy from and to without staging; no history. A
/// copy from a GPU may still be under way.
Tensor pinned_copy(const Tensor& x);
}  // namespace detail
/// Row-major x; x itself when it is.
Tensor contiguous(const Tensor& x);
/// A copy with storage of its own, row-major. Differentiable.
Tensor clone(const Tensor& x);
/// Writes source, broadcast and converted, into self; across devices too.
Tensor& copy_(Tensor& self, const Tensor& source);
/// The only element. Blocks the host. Throws ValueError unless numel() is 1.
Scalar item(const Tensor& x);

}  // namespace tern
