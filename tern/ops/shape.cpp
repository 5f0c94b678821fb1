// Views with another shape, another order of dimensions, or broadcast. Parts of tensors are in
// shape_parts.cpp, joins and repetitions in shape_join.cpp.
#include "tern/ops/shape.h"

#include <algorithm>
#include <cstring>

#include "tern/ops/common.h"
#include "tern/ops/copy.h"

namespace tern {
namespace {

/// Another layout over x's storage; no history.
Tensor layout(const Tensor& x, Shape shape, Strides strides) {
  return Tensor::view_of(x.storage(), x.dtype(), std::move(shape), std::move(strides), x.storage_offset());
}

/// The shape with its -1 replaced, for `numel` elements in all.
Shape infer_shape(const char* op, IntArrayRef shape, int64_t numel) {
  int64_t known = 1;
  int unknown = -1;
  bool overflow = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == -1) {
      TERN_CHECK(unknown < 0, ShapeError,
                 "{}: only one dimension can be inferred, but shape '{}' has -1 twice", op, to_string(shape));
      unknown = static_cast<int>(d);
    } else {
      TERN_CHECK(shape[d] >= 0, ShapeError, "{}: invalid shape dimension {} at index {} of shape '{}'", op,
                 shape[d], d, to_string(shape));
      overflow |= __builtin_mul_overflow(known, shape[d], &known);
    }
  }
  TERN_CHECK(shape.size() <= kMaxRank, ShapeError, "{}: a tensor has at most {} dimensions, got {}", op,
             kMaxRank, shape.size());
  bool ambiguous = unknown >= 0 && known == 0;
  TERN_CHECK(!(ambiguous && numel == 0), ShapeError,
             "{}: cannot reshape tensor of 0 elements into shape {} because the unspecified dimension size "
             "-1 can be any value and "
             "is ambiguous",
             op, to_string(shape));
  bool fits = !overflow && !ambiguous && (unknown >= 0 ? numel % known == 0 : numel == known);
  TERN_CHECK(fits, ShapeError,
             "{}: shape '{}' is invalid for input of size {}: the sizes must multiply to it", op,
             to_string(shape), numel);
  Shape result = shape.to_shape();
  if (unknown >= 0) result[static_cast<size_t>(unknown)] = numel / known;
  return result;
}

/// A view of x as `shape` (its strides are valid for it), recorded under the name `op`.
Tensor reshaped_view(const char* op, const Tensor& x, Shape shape, Strides strides) {
  Tensor y = layout(x, std::move(shape), std::move(strides));
  record_view(op, y, x, [from = x.shape()](GradContext&, const Tensor& g) { return reshape(g, from); });
  return y;
}

Tensor reshape_as_op(const char* op, const Tensor& x, Shape shape) {
  Strides strides;
  if (view_strides(x.shape(), x.strides(), shape, strides))
    return reshaped_view(op, x, std::move(shape), std::move(strides));
  Tensor copy = clone(x);
  Strides dense = contiguous_strides(shape);
  return reshaped_view("_unsafe_view", copy, std::move(shape), std::move(dense));
}

/// Dimensions counted from the front, each at most once.
Shape wrapped_dims(const char* op, IntArrayRef dims, int64_t rank) {
  Shape result;
  uint64_t seen = 0;
  for (int64_t dim : dims) {
    int64_t d = wrap_dim(dim, rank, op);
    TERN_CHECK((seen >> d & 1) == 0, ShapeError, "{}: dim {} appears multiple times in the list of dims {}",
               op, d, to_string(dims));
    seen |= uint64_t{1} << d;
    result.push_back(d);
  }
  return result;
}

Tensor permuted(const char* op, const Tensor& x, const Shape& order) {
  Shape shape;
  Strides strides;
  for (int64_t d : order) {
    shape.push_back(x.shape()[static_cast<size_t>(d)]);
    strides.push_back(x.strides()[static_cast<size_t>(d)]);
  }
  Tensor y = layout(x, std::move(shape), std::move(strides));
  record_view(op, y, x, [order](GradContext&, const Tensor& g) {
    Shape inverse(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    return permute(g, inverse);
  });
  return y;
}

Tensor swapped(const char* op, const Tensor& x, int64_t dim0, int64_t dim1) {
  int64_t a = wrap_dim(dim0, x.dim(), op), b = wrap_dim(dim1, x.dim(), op);
  Shape shape = x.shape();
  Strides strides = x.strides();
  if (x.dim() != 0) {
    std::swap(shape[static_cast<size_t>(a)], shape[static_cast<size_t>(b)]);
    std::swap(strides[static_cast<size_t>(a)], strides[static_cast<size_t>(b)]);
  }
  Tensor y = layout(x, std::move(shape), std::move(strides));
  record_view(op, y, x, [a, b](GradContext&, const Tensor& g) { return transpose(g, a, b); });
  return y;
}

Tensor without_dims(const char* op, const Tensor& x, uint64_t dims) {
  Shape shape;
  Strides strides;
  for (size_t d = 0; d < x.shape().size(); ++d) {
    if (x.shape()[d] == 1 && (dims >> d & 1)) continue;
    shape.push_back(x.shape()[d]);
    strides.push_back(x.strides()[d]);
  }
  return reshaped_view(op, x, std::move(shape), std::move(strides));
}

}  // namespace

Tensor view(const Tensor& x, IntArrayRef shape) {
  Shape wanted = infer_shape("view", shape, x.numel());
  Strides strides;
  TERN_CHECK(view_strides(x.shape(), x.strides(), wanted, strides), ShapeError,
             "view: view size {} is not compatible with input tensor's size {} and stride {} (at least one "
             "dimension spans across two "
             "contiguous subspaces). Use .reshape(...) instead",
             to_string(wanted), to_string(x.shape()), to_string(x.strides()));
  return reshaped_view("view", x, std::move(wanted), std::move(strides));
}

Tensor reshape(const Tensor& x, IntArrayRef shape) {
  return reshape_as_op("view", x, infer_shape("reshape", shape, x.numel()));
}
Tensor view_as(const Tensor& x, const Tensor& other) { return view(x, other.shape()); }
Tensor reshape_as(const Tensor& x, const Tensor& other) { return reshape(x, other.shape()); }

Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  int64_t first = wrap_dim(start_dim, x.dim(), "flatten"), last = wrap_dim(end_dim, x.dim(), "flatten");
  TERN_CHECK(first <= last, ShapeError, "flatten: start_dim {} cannot come after end_dim {} (shape {})",
             start_dim, end_dim, to_string(x.shape()));
  if (x.dim() != 0 && first == last) return x;
  Shape shape(x.shape().begin(), x.shape().begin() + first);
  int64_t joined = 1;
  for (int64_t d = first; d <= last && d < x.dim(); ++d) joined *= x.size(d);
  shape.push_back(joined);
  for (int64_t d = last + 1; d < x.dim(); ++d) shape.push_back(x.size(d));
  return reshape_as_op("view", x, std::move(shape));
}

Tensor unflatten(const Tensor& x, int64_t dim, IntArrayRef sizes) {
  size_t d = static_cast<size_t>(wrap_dim(dim, x.dim(), "unflatten"));
  TERN_CHECK(x.dim() != 0 && !sizes.empty(), ShapeError,
             "unflatten: needs a dimension to split and sizes for it, got shape {} and sizes {}",
             to_string(x.shape()), to_string(sizes));
  Shape parts = with_context(fmt::format("unflatten: dim {} of shape {}", d, to_string(x.shape())),
                             [&] { return infer_shape("unflatten", sizes, x.shape()[d]); });
  Shape shape(x.shape().begin(), x.shape().begin() + d);
  for (int64_t size : parts) shape.push_back(size);
  for (size_t i = d + 1; i < x.shape().size(); ++i) shape.push_back(x.shape()[i]);
  // One dimension can always be cut.
  Strides strides;
  view_strides(x.shape(), x.strides(), shape, strides);
  return reshaped_view("view", x, std::move(shape), std::move(strides));
}

Tensor squeeze(const Tensor& x) { return without_dims("squeeze", x, ~uint64_t{0}); }

Tensor Tensor::squeeze_dim(int64_t dim) const {
  return without_dims("squeeze.dim", *this, uint64_t{1} << wrap_dim(dim, this->dim(), "squeeze"));
}

Tensor squeeze(const Tensor& x, IntArrayRef dims) {
  uint64_t mask = 0;
  for (int64_t d : wrapped_dims("squeeze", dims, x.dim())) mask |= uint64_t{1} << d;
  return without_dims("squeeze.dims", x, mask);
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  size_t d = static_cast<size_t>(wrap_dim(dim, x.dim() + 1, "unsqueeze"));
  TERN_CHECK(x.shape().size() < kMaxRank, ShapeError, "unsqueeze: a tensor has at most {} dimensions",
             kMaxRank);
  Shape shape = x.shape();
  Strides strides = x.strides();
  int64_t stride = d < shape.size() ? shape[d] * strides[d] : 1;
  shape.insert(d, 1);
  strides.insert(d, stride);
  return reshaped_view("unsqueeze", x, std::move(shape), std::move(strides));
}

Tensor permute(const Tensor& x, IntArrayRef dims) {
  TERN_CHECK(static_cast<int64_t>(dims.size()) == x.dim(), ShapeError,
             "permute: number of dimensions in the tensor input does not match the length of the desired "
             "ordering: input.dim() = {} "
             "is not equal to len(dims) = {}",
             x.dim(), dims.size());
  return permuted("permute", x, wrapped_dims("permute", dims, x.dim()));
}

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) { return swapped("transpose", x, dim0, dim1); }
Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1) {
  return swapped("swapaxes", x, axis0, axis1);
}

Tensor t(const Tensor& x) {
  TERN_CHECK(x.dim() <= 2, ShapeError,
             "t: expects a tensor with <= 2 dimensions, but self is {}D with shape {}: use transpose or mT",
             x.dim(), to_string(x.shape()));
  return swapped("t", x, 0, x.dim() == 2 ? 1 : 0);
}

Tensor mT(const Tensor& x) {
  TERN_CHECK(x.dim() >= 2, ShapeError,
             "mT: only supported on matrices or batches of matrices, got a tensor of shape {}",
             to_string(x.shape()));
  return swapped("transpose", x, -2, -1);
}

Tensor movedim(const Tensor& x, IntArrayRef source, IntArrayRef destination) {
  TERN_CHECK(source.size() == destination.size(), ShapeError,
             "movedim: source {} and destination {} must have one length", to_string(source),
             to_string(destination));
  Shape from = wrapped_dims("movedim", source, x.dim()), to = wrapped_dims("movedim", destination, x.dim());
  if (x.dim() == 0) return permuted("permute", x, {});
  Shape order(x.shape().size(), -1);
  for (size_t i = 0; i < from.size(); ++i) order[static_cast<size_t>(to[i])] = from[i];
  int64_t next = 0;  // the other dimensions keep their order
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    d = next++;
  }
  return permuted("permute", x, order);
}

Tensor movedim(const Tensor& x, int64_t source, int64_t destination) {
  return movedim(x, IntArrayRef{source}, IntArrayRef{destination});
}

Tensor expand(const Tensor& x, IntArrayRef shape) {
  TERN_CHECK(shape.size() >= x.shape().size(), ShapeError,
             "expand: the number of sizes provided ({}) must be greater or equal to the number of dimensions "
             "in the tensor ({}): target "
             "sizes {}, tensor sizes {}",
             shape.size(), x.dim(), to_string(shape), to_string(x.shape()));
  const size_t leading = shape.size() - x.shape().size();
  Shape wanted = shape.to_shape();
  Strides strides(shape.size());
  for (size_t d = 0; d < wanted.size(); ++d) {
    int64_t size = d < leading ? 1 : x.shape()[d - leading];
    if (wanted[d] == -1 && d >= leading) wanted[d] = size;
    TERN_CHECK(wanted[d] >= 0, ShapeError,
               "expand: the expanded size of the tensor ({}) isn't allowed{} dimension {}: target sizes {}, "
               "tensor sizes {}",
               wanted[d], d < leading && wanted[d] == -1 ? " in a leading, non-existing" : " at", d,
               to_string(shape), to_string(x.shape()));
    TERN_CHECK(size == 1 || size == wanted[d], ShapeError,
               "expand: The expanded size of the tensor ({}) must match the existing size ({}) at "
               "non-singleton dimension {}.  Target sizes: "
               "{}.  Tensor sizes: {}",
               wanted[d], size, d, to_string(shape), to_string(x.shape()));
    strides[d] = d < leading || size != wanted[d] ? 0 : x.strides()[d - leading];
  }
  with_context("expand", [&] { return checked_numel(wanted); });
  Tensor y = layout(x, std::move(wanted), std::move(strides));
  record_view("expand", y, x, [from = x.shape(), dtype = x.dtype()](GradContext&, const Tensor& g) {
    return reduce_to(g, from, dtype);
  });
  return y;
}

Tensor expand_as(const Tensor& x, const Tensor& other) { return expand(x, other.shape()); }
Tensor broadcast_to(const Tensor& x, IntArrayRef shape) { return expand(x, shape); }

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors) {
  Shape shape;
  for (const Tensor& x : tensors) shape = broadcast_shapes(shape, x.shape(), "broadcast_tensors");
  std::vector<Tensor> result;
  for (const Tensor& x : tensors) result.push_back(expand(x, shape));
  return result;
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, const char* indexing) {
  const bool xy = std::strcmp(indexing, "xy") == 0;
  TERN_CHECK(xy || std::strcmp(indexing, "ij") == 0, ValueError,
             "meshgrid: indexing must be \"xy\" or \"ij\", got \"{}\"", indexing);
  TERN_CHECK(!tensors.empty(), ValueError, "meshgrid: expects a non-empty list of Tensors");
  Shape shape;
  for (const Tensor& x : tensors) {
    TERN_CHECK(x.dim() <= 1, ShapeError,
               "meshgrid: expected 0D or 1D tensor in the tensor list but got shape {}",
               to_string(x.shape()));
    TERN_CHECK(
        x.dtype() == tensors[0].dtype(), DTypeError,
        "meshgrid: expects all tensors to have the same dtype, got {} and {}: convert one with to(dtype)",
        name(tensors[0].dtype()), name(x.dtype()));
    check_same_device("meshgrid", {{"tensors[0]", tensors[0]}, {"a later tensor", x}});
    shape.push_back(x.numel());
  }
  std::vector<Tensor> grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Shape column(shape.size(), 1);
    column[i] = shape[i];
    Tensor grid = expand(reshape(tensors[i], column), shape);
    // With "xy" the first two tensors run along each other's dimension.
    grids.push_back(xy && tensors.size() > 1 ? transpose(grid, 0, 1) : grid);
  }
  return grids;
}

}  // namespace tern
