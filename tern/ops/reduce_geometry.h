// Which dimensions a reduction takes, how its kernels walk them, and the way back of a gradient. For the
// operators of ops/reduce*.cpp, softmax, scan and sort; not for users.
#pragma once

#include <optional>

#include "tern/core/tensor.h"
#include "tern/kernels/reduce.h"

namespace tern {

/// A set of dimensions: bit d stands for dimension d.
using DimMask = uint64_t;

/// All dimensions of a tensor.
DimMask all_dims(int64_t rank);
/// The dimensions of a list; all of them for an empty one. Throws IndexError for one that is not there,
/// ValueError for one named twice.
DimMask dims_of(const char* op, IntArrayRef dims, int64_t rank);

/// `shape` with the dimensions of `mask` gone, or of size 1.
Shape reduced_shape(const Shape& shape, DimMask mask, bool keepdim);
/// The number of elements that one result is made of.
int64_t reduced_numel(const Shape& shape, DimMask mask);

/// In which order the reduced dimensions are walked.
enum class WalkOrder : uint8_t {
  Memory,   ///< as they lie in memory
  Logical,  ///< as they stand in the shape
};
/// Strides of x over the dimensions outside and inside of `mask`.
void make_geometry(const Tensor& x, DimMask mask, WalkOrder order, Geometry<1>& kept, Geometry<1>& reduced);

/// A result without its reduced dimensions, as a view with size 1 in their place; itself when it has them.
Tensor restore_dims(const Tensor& result, const Shape& shape, DimMask mask);
/// The result spread over the elements it was made of, as a view.
Tensor spread(const Tensor& result, const Shape& shape, DimMask mask);

/// Throws DTypeError for a dtype that no operator computes on.
void check_computable(const char* op, const Tensor& x);
/// The elements as the dtype that is asked for, recorded. Throws DTypeError for one that no operator computes
/// on.
Tensor converted(const char* op, const Tensor& x, std::optional<DType> dtype);

/// op over the dimensions of `mask`, of reduce_result_dtype. No gradient.
Tensor run_reduce(ReduceOp op, const Tensor& x, DimMask mask, bool keepdim, double param = 1);

/// The sizes before, of and after a dimension; a 0-d tensor has one element.
struct DimSplit {
  int64_t outer;
  int64_t size;
  int64_t inner;
};
DimSplit split_at(const Shape& shape, int64_t dim);

}  // namespace tern
