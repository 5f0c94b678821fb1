// Diagonals: reading them, making matrices of them, and the places of triangles. The view of a diagonal is
// diagonal() in ops/shape.h, tril() and triu() are in ops/creation.h.
#pragma once

#include <vector>

#include "tern/core/tensor.h"

namespace tern {

/// Of a vector the matrix with it on the diagonal number `diagonal` (above the main one when positive) and
/// zeros elsewhere; of a matrix a copy of that diagonal. Throws ShapeError for other numbers of dimensions.
Tensor diag(const Tensor& x, int64_t diagonal = 0);
/// diag of the flattened x.
Tensor diagflat(const Tensor& x, int64_t offset = 0);
/// Zeros with the last dimension of x on the diagonals of two new dimensions, which get the numbers dim1 and
/// dim2 in the result. Throws ShapeError when both are one.
Tensor diag_embed(const Tensor& x, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
/// The sum of a matrix's main diagonal; integers and bool give int64. Throws ShapeError.
Tensor trace(const Tensor& x);
/// A matrix with these along its main diagonal and zeros elsewhere; vectors and 0-d tensors count as rows.
/// Dtypes are promoted.
Tensor block_diag(const std::vector<Tensor>& tensors);

/// int64 [2, n]: rows and columns of what tril() and triu() keep of a [row, col] matrix, in row-major order.
/// Computed on the host. Throws ValueError for negative sizes, DTypeError unless int64 or int32.
Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0, const TensorOptions& options = {});
Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0, const TensorOptions& options = {});

}  // namespace tern
