// Maximum and minimum, their positions, and their gradients.
#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/reduce_geometry.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// An extreme of no elements does not exist. `whole`: no dimension was named.
void check_not_empty(const char* op, const Tensor& x, DimMask mask, bool whole) {
  if (x.numel() != 0) return;
  TERN_CHECK(!whole, ValueError,
             "{}: Expected reduction dim to be specified for input.numel() == 0 (the shape is {}). Specify "
             "the reduction "
             "dim with the 'dim' argument.",
             op, to_string(x.shape()));
  for (size_t d = 0; d < x.shape().size(); ++d)
    TERN_CHECK((mask >> d & 1) == 0 || x.shape()[d] != 0, IndexError,
               "{}: Expected reduction dim {} to have non-zero size, but the shape is {}: there is nothing "
               "to choose from",
               op, d, to_string(x.shape()));
}

/// The gradient shared evenly by the elements of x equal to the extreme y.
Tensor share_evenly(const Tensor& g, const Tensor& x, const Tensor& y, DimMask mask, bool nan_is_equal) {
  const Tensor extreme = restore_dims(y, x.shape(), mask);
  Tensor chosen = eq(x, extreme);
  if (nan_is_equal) chosen = logical_or(chosen, logical_and(isnan(x), isnan(extreme)));
  chosen = cast(chosen, x.dtype());
  Tensor count = run_reduce(ReduceOp::Sum, chosen, mask, /*keepdim=*/true);
  return mul(chosen, div(restore_dims(g, x.shape(), mask), count));
}

Tensor extreme(ReduceOp op, const char* op_name, const Tensor& x, DimMask mask, bool keepdim, bool whole,
               bool nan_is_equal) {
  check_computable(op_name, x);
  check_not_empty(op_name, x, mask, whole);
  Tensor y = run_reduce(op, x, mask, keepdim);
  if (tracks_grad(x))
    record(op_name, y, {x},
           [x_ = save(x), y_ = save_output(y), mask, nan_is_equal](GradContext& c, const Tensor& g) {
             return share_evenly(g, c[x_], c[y_], mask, nan_is_equal);
           });
  return y;
}

/// Values (unless not wanted) and positions.
std::pair<Tensor, Tensor> run_index(bool largest, const Tensor& x, DimMask mask, bool keepdim,
                                    bool with_values) {
  ReduceIndexArgs args;
  make_geometry(x, mask, WalkOrder::Logical, args.kept, args.reduced);
  const Shape shape = reduced_shape(x.shape(), mask, keepdim);
  Tensor values = with_values ? empty_contiguous(shape, args.kept.numel, x.dtype(), x.device()) : Tensor();
  Tensor indices = empty_contiguous(shape, args.kept.numel, DType::Int64, x.device());
  args.largest = largest;
  args.dtype = x.dtype();
  args.values = with_values ? values.data_ptr() : nullptr;
  args.indices = static_cast<int64_t*>(indices.data_ptr());
  args.in = x.data_ptr();
  launch(current_stream(x.device()), kernels::reduce_index, args);
  return {values, indices};
}

std::pair<Tensor, Tensor> extreme_with_index(bool largest, const char* op, const Tensor& x, int64_t dim,
                                             bool keepdim) {
  check_computable(op, x);
  const DimMask mask = dims_of(op, IntArrayRef(&dim, 1), x.dim());
  check_not_empty(op, x, mask, /*whole=*/false);
  auto [values, indices] = run_index(largest, x, mask, keepdim, /*with_values=*/true);
  if (tracks_grad(x))
    record(op, values, {x},
           [shape = x.shape(), mask, index_ = save(indices), d = wrap_dim(dim, x.dim(), op)](
               GradContext& c, const Tensor& g) {
             Tensor zeros = filled(shape, g.dtype(), g.device(), 0);
             return scatter_add(zeros, d, restore_dims(c[index_], shape, mask), restore_dims(g, shape, mask));
           });
  return {values, indices};
}

Tensor position(bool largest, const char* op, const Tensor& x, DimMask mask, bool keepdim, bool whole) {
  check_computable(op, x);
  TERN_CHECK(x.dtype() != DType::Bool, DTypeError,
             "{}: does not support bool input: convert the tensor with to(uint8)", op);
  TERN_CHECK(x.numel() != 0 || !whole, IndexError,
             "{}: Expected reduction dim to be specified for input.numel() == 0 (the shape is {})", op,
             to_string(x.shape()));
  check_not_empty(op, x, mask, whole);
  return run_index(largest, x, mask, keepdim, /*with_values=*/false).second;
}

}  // namespace

Tensor max(const Tensor& x) {
  return extreme(ReduceOp::Max, "max", x, all_dims(x.dim()), /*keepdim=*/false, /*whole=*/true,
                 /*nan_is_equal=*/true);
}
Tensor min(const Tensor& x) {
  return extreme(ReduceOp::Min, "min", x, all_dims(x.dim()), /*keepdim=*/false, /*whole=*/true,
                 /*nan_is_equal=*/true);
}
std::pair<Tensor, Tensor> max(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_with_index(/*largest=*/true, "max", x, dim, keepdim);
}
std::pair<Tensor, Tensor> min(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_with_index(/*largest=*/false, "min", x, dim, keepdim);
}

Tensor amax(const Tensor& x, IntArrayRef dims, bool keepdim) {
  return extreme(ReduceOp::Max, "amax", x, dims_of("amax", dims, x.dim()), keepdim, dims.empty(),
                 /*nan_is_equal=*/false);
}
Tensor amin(const Tensor& x, IntArrayRef dims, bool keepdim) {
  return extreme(ReduceOp::Min, "amin", x, dims_of("amin", dims, x.dim()), keepdim, dims.empty(),
                 /*nan_is_equal=*/false);
}

std::pair<Tensor, Tensor> aminmax(const Tensor& x) {
  TERN_CHECK(x.numel() != 0, ValueError,
             "aminmax: cannot compute aminmax over an empty dimension as the operation has no identity (the "
             "shape is {})",
             to_string(x.shape()));
  return {amin(x), amax(x)};
}
std::pair<Tensor, Tensor> aminmax(const Tensor& x, int64_t dim, bool keepdim) {
  check_not_empty("aminmax", x, dims_of("aminmax", IntArrayRef(&dim, 1), x.dim()), /*whole=*/false);
  return {amin(x, dim, keepdim), amax(x, dim, keepdim)};
}

Tensor argmax(const Tensor& x) {
  return position(/*largest=*/true, "argmax", x, all_dims(x.dim()), /*keepdim=*/false, /*whole=*/true);
}
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim) {
  return position(/*largest=*/true, "argmax", x, dims_of("argmax", IntArrayRef(&dim, 1), x.dim()), keepdim,
                  /*whole=*/false);
}
Tensor argmin(const Tensor& x) {
  return position(/*largest=*/false, "argmin", x, all_dims(x.dim()), /*keepdim=*/false, /*whole=*/true);
}
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim) {
  return position(/*largest=*/false, "argmin", x, dims_of("argmin", IntArrayRef(&dim, 1), x.dim()), keepdim,
                  /*whole=*/false);
}

}  // namespace tern
