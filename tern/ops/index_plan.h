// The layer between index operators and the kernels index_get and index_put:
// where the elements are. No gradients here.
#pragma once

#include <vector>

#include "tern/core/tensor.h"
#include "tern/kernels/index.h"

namespace tern {

/// How index tensors address the elements of one tensor.
struct IndexPlan {
  explicit IndexPlan(const char* op_, bool wrap_) : op(op_), wrap(wrap_) {}

  const char* op;
  bool wrap;
  int count = 0;
  Shape shape;                     ///< of what is read or written
  Strides strides;                 ///< of the addressed tensor in that shape, 0 where indices
                                   ///< take their place
  uint64_t repeats = 0;            ///< bit d: along dimension d of `shape` the same
                                   ///< element may be met again
  Tensor index[kMaxIndexTensors];  ///< int64
  Strides index_strides[kMaxIndexTensors];
  int64_t dim[kMaxIndexTensors];
  int64_t size[kMaxIndexTensors];
  int64_t stride[kMaxIndexTensors];
};

/// An int64 or int32 index tensor as int64. Throws DTypeError, and DeviceError
/// unless it is where x is.
Tensor as_index(const char* op, const Tensor& x, const Tensor& index);

/// An index for every element, along `dim` (already wrapped) of x. Shapes were
/// checked.
IndexPlan plan_gather(const char* op, const Tensor& x, int64_t dim, const Tensor& index, bool wrap = false);
/// A vector of indices along `dim`. Throws ShapeError unless `index` is 1-D or
/// 0-d.
IndexPlan plan_select(const char* op, const Tensor& x, int64_t dim, const Tensor& index, bool wrap = false);
/// Integer tensors by NumPy's rules, undefined ones standing for ":". Masks
/// were replaced by coordinates.
IndexPlan plan_index(const char* op, const Tensor& x, const std::vector<Tensor>& indices);

/// The addressed elements of x, the tensor that the plan was made for.
Tensor get_elements(const IndexPlan& plan, const Tensor& x);
/// Writes (or adds) `source`, broadcast to the plan's shape, to the addressed
/// elements of `target`, which the plan was made for. An undefined `source`
/// stands for `value`.
void put_elements(const IndexPlan& plan, const Tensor& target, IndexPutMode mode, const Tensor& source,
                  Param value = {});

/// Zeros with src[i][j][k] in the places [i][index[i][j][k]][k], for `dim` (already wrapped) 1, which name no
/// element twice: the gradient of a choice along `dim`. The only one here that has a gradient.
Tensor put_into_zeros(const Shape& shape, int64_t dim, const Tensor& index, const Tensor& src);

/// The part of a scatter's source that has the index's sizes; its history goes on. Throws ShapeError.
Tensor scatter_source(const char* op, const Tensor& x, const Tensor& index, const Tensor& src);
/// A copy of x with such a part joined to the elements that scatter would write; no history. Checks as
/// scatter does.
Tensor join_along(const char* op, const Tensor& x, int64_t dim, const Tensor& index, IndexPutMode mode,
                  const Tensor& part);

/// A tensor, or a view of it with more dimensions of size 1, and the integer tensors that address it.
struct Indexed {
  Tensor x;
  std::vector<Tensor> indices;
  bool distinct = false;  ///< they name no element twice
};
/// Replaces bool (and uint8) tensors by the coordinates of their true elements; for one without dimensions x
/// gets a dimension, of which it takes all or nothing. Throws IndexError in PyTorch's words for too many
/// indices, masks that do not fit, and floating tensors.
Indexed expand_masks(const char* op, const Tensor& x, const std::vector<Tensor>& indices);
/// The coordinates of the non-zero elements of x, a row for each of them or, `by_column`, for each dimension;
/// with `flat`, the positions in row-major order as a single one. Blocks the host.
Tensor nonzero_table(const char* op, const Tensor& x, bool flat, bool by_column);
/// The coordinates of the non-zero elements, a contiguous tensor for each
/// dimension; with `flat`, the positions in row-major order as a single one.
/// Blocks the host.
std::vector<Tensor> nonzero_coordinates(const char* op, const Tensor& x, bool flat);

}  // namespace tern
