// Operators that rearrange: views (which share the storage of their base; gradients flow through them),
// joins, and repetitions. Indexing with tensors is in ops/index.h, copies and conversions in ops/copy.h.
#pragma once

#include <optional>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

namespace detail {
std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t dim);
std::vector<Tensor> equal_parts(const char* op, const Tensor& x, int64_t sections, int64_t least_dims);
}  // namespace detail

// ---- another shape over the same elements
// --------------------------------------------------------------------------

/// The same elements in row-major order under another shape; one size may be -1. Throws ShapeError when the
/// sizes do not fit, or when the strides of x allow no such view.
Tensor view(const Tensor& x, IntArrayRef shape);
/// A view where there is one, else a copy.
Tensor reshape(const Tensor& x, IntArrayRef shape);
Tensor view_as(const Tensor& x, const Tensor& other);
Tensor reshape_as(const Tensor& x, const Tensor& other);
/// Joins the dimensions start_dim..end_dim into one; a copy only where no view is possible. 0-d becomes [1].
Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1);
/// All elements as one dimension.
Tensor ravel(const Tensor& x);
/// Splits one dimension into `sizes`, of which one may be -1.
Tensor unflatten(const Tensor& x, int64_t dim, IntArrayRef sizes);
/// Without the dimensions of size 1, or without `dim` if its size is 1.
Tensor squeeze(const Tensor& x);
Tensor squeeze(const Tensor& x, IntArrayRef dims);
Tensor squeeze(const Tensor& x, Dimension auto dim) { return x.squeeze(dim); }
/// With a dimension of size 1 before `dim`.
Tensor unsqueeze(const Tensor& x, int64_t dim);
/// With dimensions of size 1 up to one, two or three in all: [n] becomes [1, n] and [1, n, 1], [m, n] becomes
/// [m, n, 1].
Tensor atleast_1d(const Tensor& x);
Tensor atleast_2d(const Tensor& x);
Tensor atleast_3d(const Tensor& x);
std::vector<Tensor> atleast_1d(const std::vector<Tensor>& tensors);
std::vector<Tensor> atleast_2d(const std::vector<Tensor>& tensors);
std::vector<Tensor> atleast_3d(const std::vector<Tensor>& tensors);

// ---- dimensions in another order
// -----------------------------------------------------------------------------------

Tensor permute(const Tensor& x, IntArrayRef dims);
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1);
/// Transposes a matrix; 0-d and 1-D tensors stay. Throws ShapeError for more dimensions.
Tensor t(const Tensor& x);
/// The last two dimensions swapped.
Tensor mT(const Tensor& x);
Tensor movedim(const Tensor& x, IntArrayRef source, IntArrayRef destination);
Tensor movedim(const Tensor& x, int64_t source, int64_t destination);

// ---- broadcasting
// --------------------------------------------------------------------------------------------------

/// Repeats dimensions of size 1 without copying (stride 0); -1 keeps a size.
Tensor expand(const Tensor& x, IntArrayRef shape);
Tensor expand_as(const Tensor& x, const Tensor& other);
Tensor broadcast_to(const Tensor& x, IntArrayRef shape);
/// All expanded to their common shape.
std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors);
/// Coordinate grids of 1-D (or 0-d) tensors of one dtype. indexing: "ij" or "xy".
std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, const char* indexing = "ij");

// ---- parts
// ---------------------------------------------------------------------------------------------------------

/// The `length` elements from `start` (negative: from the end) along `dim`.
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
/// Python's x[start:end:step] along `dim`: out-of-range ends are cut off. Throws ValueError unless step > 0.
Tensor slice(const Tensor& x, int64_t dim, std::optional<int64_t> start = {}, std::optional<int64_t> end = {},
             int64_t step = 1);
/// One element of a dimension, which goes away.
Tensor select(const Tensor& x, int64_t dim, int64_t index);
// Lists of parts have at most 2^24; unbind, chunk, split and tensor_split throw ValueError for more.

/// All elements of a dimension, as views.
std::vector<Tensor> unbind(const Tensor& x, int64_t dim = 0);
/// At most `chunks` views of ceil(size / chunks) elements each (the last may be smaller).
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);
/// Views of `split_size` elements each (the last may be smaller).
std::vector<Tensor> split(const Tensor& x, Dimension auto split_size, int64_t dim = 0) {
  return x.split(split_size, dim);
}
/// Views of these sizes, which must add up to the size of `dim`.
std::vector<Tensor> split(const Tensor& x, IntArrayRef split_sizes, int64_t dim = 0);
/// Exactly `sections` views along `dim`, the first size % sections of which are larger by one.
std::vector<Tensor> tensor_split(const Tensor& x, Dimension auto sections, int64_t dim = 0) {
  return detail::tensor_split(x, static_cast<int64_t>(sections), dim);
}
/// Views of what lies between these indices, as Python's slices x[:i], x[i:j], ...
std::vector<Tensor> tensor_split(const Tensor& x, IntArrayRef indices, int64_t dim = 0);
/// tensor_split along dimension 1 (0 of a 1-D tensor), 0 and 2. Throw ShapeError for a tensor without that
/// dimension, ValueError unless the sections are equal.
std::vector<Tensor> hsplit(const Tensor& x, Dimension auto sections) {
  return detail::equal_parts("hsplit", x, static_cast<int64_t>(sections), /*least_dims=*/1);
}
std::vector<Tensor> vsplit(const Tensor& x, Dimension auto sections) {
  return detail::equal_parts("vsplit", x, static_cast<int64_t>(sections), /*least_dims=*/2);
}
std::vector<Tensor> dsplit(const Tensor& x, Dimension auto sections) {
  return detail::equal_parts("dsplit", x, static_cast<int64_t>(sections), /*least_dims=*/3);
}
std::vector<Tensor> hsplit(const Tensor& x, IntArrayRef indices);
std::vector<Tensor> vsplit(const Tensor& x, IntArrayRef indices);
std::vector<Tensor> dsplit(const Tensor& x, IntArrayRef indices);
/// The elements whose indices in dim1 and dim2 differ by `offset`, as a new last dimension.
Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
/// Windows of `size` elements every `step` along `dimension`, as a new last dimension (Tensor.unfold).
Tensor unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step);
/// Any layout over the storage of x; the offset is x's own unless given. Throws ShapeError when it reaches
/// outside the storage.
Tensor as_strided(const Tensor& x, IntArrayRef shape, IntArrayRef strides,
                  std::optional<int64_t> storage_offset = {});

// ---- parts replaced
// ---------------------------------------------------------------------------------------------------------
// Copies of x with src, converted to x's dtype, in the place of a part. Throw as the part's own function
// does, and ShapeError unless src has the shape of the part.

Tensor select_scatter(const Tensor& x, const Tensor& src, int64_t dim, int64_t index);
Tensor slice_scatter(const Tensor& x, const Tensor& src, int64_t dim = 0, std::optional<int64_t> start = {},
                     std::optional<int64_t> end = {}, int64_t step = 1);
Tensor diagonal_scatter(const Tensor& x, const Tensor& src, int64_t offset = 0, int64_t dim1 = 0,
                        int64_t dim2 = 1);

// ---- joining
// -------------------------------------------------------------------------------------------------------

/// One after the other along `dim`; other sizes must be equal. Dtypes are promoted. Tensors of shape [0] are
/// skipped.
Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0);
/// Along a new dimension; shapes must be equal.
Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0);
/// cat along dimension 1 (0 for 1-D tensors); 0-d tensors count as [1].
Tensor hstack(const std::vector<Tensor>& tensors);
/// cat along dimension 0 of tensors of at least two dimensions ([n] counts as [1, n]).
Tensor vstack(const std::vector<Tensor>& tensors);
/// cat along dimension 2 of tensors of at least three dimensions ([n] counts as [1, n, 1], [m, n] as
/// [m, n, 1]).
Tensor dstack(const std::vector<Tensor>& tensors);
/// hstack where vectors count as columns.
Tensor column_stack(const std::vector<Tensor>& tensors);
/// [n, number of tensors]: all combinations of one element of each of 1-D tensors of one dtype, in
/// lexicographic order of their places; of one tensor, itself.
Tensor cartesian_prod(const std::vector<Tensor>& tensors);
/// [n, r]: all combinations of r elements of a 1-D tensor in the order of their places, of which each may
/// come once, or `with_replacement` several times.
Tensor combinations(const Tensor& x, int64_t r = 2, bool with_replacement = false);

// ---- repetition and order
// ------------------------------------------------------------------------------------------

/// Copies of x, `repeats[d]` times along each dimension; more repeats than dimensions add leading ones.
Tensor repeat(const Tensor& x, IntArrayRef repeats);
/// As repeat, but fewer repeats than dimensions stand for the last ones.
Tensor tile(const Tensor& x, IntArrayRef repeats);
/// Each element `repeats` times, one after the other, along `dim` (without dim: of the flattened tensor).
Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim = {});
/// Elements moved by `shifts` along `dims`, what leaves at one end coming in at the other; without dims, of
/// the flattened tensor.
Tensor roll(const Tensor& x, IntArrayRef shifts, IntArrayRef dims = {});
/// The order of elements reversed along `dims`; a copy.
Tensor flip(const Tensor& x, IntArrayRef dims);
/// flip along the first, or the second, dimension.
Tensor flipud(const Tensor& x);
Tensor fliplr(const Tensor& x);
/// Turned by k right angles from dimension dims[0] to dims[1]; a copy.
Tensor rot90(const Tensor& x, int64_t k = 1, IntArrayRef dims = {0, 1});

}  // namespace tern
