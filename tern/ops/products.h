// Products of tensors along chosen dimensions. Matrix products and einsum are in ops/matmul.h.
#pragma once

#include <optional>

#include "tern/core/tensor.h"

namespace tern {

/// The sum of products over pairs of dimensions: the last `dims` of a with the first of b. The result has a's
/// other dimensions, then b's. Throws as matmul does, and ShapeError for sizes that differ.
Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims = 2);
/// The same over dims_a[i] of a and dims_b[i] of b; a size of 1 stands for any.
Tensor tensordot(const Tensor& a, const Tensor& b, IntArrayRef dims_a, IntArrayRef dims_b);
/// The sums of products over the last dimensions of both, which must have one size; of a number and a tensor,
/// their product.
Tensor inner(const Tensor& a, const Tensor& b);
/// Kronecker product: b times each element of a, in its place. Fewer dimensions count as leading ones of
/// size 1.
Tensor kron(const Tensor& a, const Tensor& b);
/// The vector product along a dimension of size 3, by default the first such one; a and b broadcast.
Tensor cross(const Tensor& a, const Tensor& b, std::optional<int64_t> dim = {});

}  // namespace tern
