// Matrix products. One launch each, whatever the strides of the operands. The
// kernel is described in kernels/matmul.h; fully connected layers are in
// ops/linear.h.
#pragma once

#include <string_view>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

// All take tensors of one dtype (floats or integers; 16-bit floats accumulate
// in float32, integers wrap) and throw DTypeError for two dtypes or bool,
// ShapeError for sizes that do not fit, DeviceError for tensors on two devices.

/// The product by PyTorch's rules: vectors count as rows (left) or columns
/// (right) and vanish from the result, dimensions before the last two
/// broadcast.
Tensor matmul(const Tensor& a, const Tensor& b);
/// [m, k] x [k, n].
Tensor mm(const Tensor& a, const Tensor& b);
/// [b, m, k] x [b, k, n].
Tensor bmm(const Tensor& a, const Tensor& b);
/// [m, k] x [k].
Tensor mv(const Tensor& a, const Tensor& b);
/// [k] x [k], a 0-d tensor.
Tensor dot(const Tensor& a, const Tensor& b);
/// [n, m] of all products of elements of two vectors.
Tensor outer(const Tensor& a, const Tensor& b);
/// beta * input + alpha * mat1 x mat2; `input` broadcasts to [m, n]. As in BLAS, `input` is not read when
/// beta is 0, nor the matrices when alpha is 0: their NaN and infinities do not matter then.
Tensor addmm(const Tensor& input, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1,
             const Scalar& alpha = 1);
/// The same for batches: mat1 [b, m, k], mat2 [b, k, n].
Tensor baddbmm(const Tensor& input, const Tensor& batch1, const Tensor& batch2, const Scalar& beta = 1,
               const Scalar& alpha = 1);
/// beta * input + alpha * mat x vec, for mat [m, k] and vec [k]; `input` broadcasts to [m]. As addmm
/// otherwise.
Tensor addmv(const Tensor& input, const Tensor& mat, const Tensor& vec, const Scalar& beta = 1,
             const Scalar& alpha = 1);
/// beta * input + alpha * the outer product of two vectors; `input` broadcasts to [n, m] and is not read when
/// beta is 0. Dtypes are promoted. Throws DTypeError for bool, and for floats times integers.
Tensor addr(const Tensor& input, const Tensor& vec1, const Tensor& vec2, const Scalar& beta = 1,
            const Scalar& alpha = 1);
/// The product of matrices one after the other; of one, itself. Throws ValueError for none.
Tensor chain_matmul(const std::vector<Tensor>& matrices);
/// Sums of products in Einstein's notation: einsum("bij,bjk->bik", {a, b}).
/// Letters name dimensions, "..." the broadcast ones; without "->" the result
/// has the letters that occur once, in alphabetical order. Throws ValueError
/// for a broken equation.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);

}  // namespace tern
