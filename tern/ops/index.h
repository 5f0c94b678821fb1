// Operators that read and write elements named by index tensors or masks. Index
// tensors are int64 or int32; an index out of range throws IndexError ("index 5
// is out of bounds for dimension 0 with size 3"). Where the same element is
// written more than once, the last one in row-major order wins, and sums are
// taken in that order whatever the number of threads. Ranges and single
// positions are views (ops/shape.h); embedding is in ops/embedding.h.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

// ---- along one dimension, an index for every element
// -----------------------------------------------------------------

/// result[i][j][k] = x[i][index[i][j][k]][k] for dim 1. `index` has x's rank,
/// and no larger sizes apart from `dim`; without elements, here and in scatter, any shape.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);
/// A copy of x with result[i][index[i][j][k]][k] = src[i][j][k] for dim 1.
/// `index` has x's rank and is no larger than src, nor than x apart from `dim`.
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value);
/// The same, adding src to x.
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
Tensor& scatter_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Tensor& scatter_(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);
Tensor& scatter_add_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
/// The same joining src to x by `reduce`: "sum", "prod", "mean", "amax" or "amin"; NaN wins. Without
/// `include_self` the elements of x that are written do not count. Integer means are rounded down. The
/// gradient of extremes is shared by those that are equal; that of products has no derivative for src where
/// several of an element's are 0. Throws ValueError for another word.
Tensor scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce, bool include_self = true);
Tensor& scatter_reduce_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce, bool include_self = true);
/// gather with broadcasting of the dimensions other than `dim`; negative
/// indices count from the end. Without `dim`, of the flattened tensor.
Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim = {});
/// Elements of the flattened tensor, in the shape of `index`; negative indices
/// count from the end.
Tensor take(const Tensor& x, const Tensor& index);
/// A copy of x with `source` in the places of its flattened elements that `index` names, or added to them; as
/// many elements as `index`, of x's dtype.
Tensor put(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate = false);
Tensor& put_(Tensor& self, const Tensor& index, const Tensor& source, bool accumulate = false);

// ---- along one dimension, a vector of indices
// ------------------------------------------------------------------------

/// The slices index[0], index[1], ... of `dim`, in this order. `index` is 1-D
/// or 0-d.
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
/// A copy of x with alpha * source's slice i added to slice index[i] of `dim`.
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha = 1);
/// A copy of x with source's slice i in the place of slice index[i].
Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
/// A copy of x whose slices index[i] hold `value`; negative indices count from
/// the end.
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value);
Tensor& index_add_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                   const Scalar& alpha = 1);
Tensor& index_copy_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
Tensor& index_fill_(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);

// ---- Python's x[a, b, ...] with tensors
// --------------------------------------------------------------------------------

/// x[indices[0], indices[1], ...] by NumPy's rules: integer tensors broadcast
/// together and replace the dimensions that they address (the result's
/// dimensions come first if an undefined tensor, which stands for ":", lies
/// between them); negative indices count from the end; a bool tensor stands for
/// the coordinates of its true elements, and makes the host wait for their
/// number; one of no dimensions stands for a new dimension of size 1 or 0. Indices on the CPU may address x
/// on any device.
Tensor index(const Tensor& x, const std::vector<Tensor>& indices);
/// A copy of x with index(x, indices) replaced by `values` (broadcast), or with
/// `values` added to it. `values` lies on x's device, or on the CPU if it has no dimensions.
Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                 bool accumulate = false);
Tensor& index_put_(Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
                   bool accumulate = false);

// ---- masks
// -----------------------------------------------------------------------------------------------------------

/// Elements of a where `condition` (bool) is true, of b elsewhere; all three
/// broadcast, a and b are promoted.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, const Scalar& b);
Tensor where(const Tensor& condition, const Scalar& a, const Tensor& b);
Tensor where(const Tensor& condition, const Scalar& a, const Scalar& b);
/// The coordinates of the true elements, one tensor for each dimension. Blocks
/// the host.
std::vector<Tensor> where(const Tensor& condition);
/// x with `value` where `mask` (bool) is true; both broadcast, the dtype is
/// x's. The in-place form is a method of Tensor.
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Scalar& value);
/// The same with the value of a 0-d tensor.
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);
/// The elements of x where `mask` is true, in row-major order as one dimension;
/// both broadcast. Blocks the host.
Tensor masked_select(const Tensor& x, const Tensor& mask);
/// x with its elements where `mask` is true replaced by the first elements of
/// `source`. Blocks the host.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);
/// Coordinates [n, rank] of the elements that are not zero, in row-major order,
/// int64. Blocks the host.
Tensor nonzero(const Tensor& x);
Tensor argwhere(const Tensor& x);

// ---- sorted sequences
// ------------------------------------------------------------------------------------------------

/// The positions at which `values` would go into the rows of `sorted`: before
/// equal elements, or after when `right`. `sorted` is 1-D, or has the sizes of
/// `values` but in the last dimension. int64.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false);
/// The number of the interval between 1-D `boundaries` that each element of x
/// lies in.
Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right = false);

}  // namespace tern
