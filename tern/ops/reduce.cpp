// Sums, means, products, truth and counts, with their gradients. Extremes are in reduce_extreme.cpp, moments
// and norms in reduce_moments.cpp.
#include "tern/ops/reduce.h"

#include "tern/autograd/arithmetic.h"
#include "tern/kernels/scan.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/complex_elementwise.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce_geometry.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// The int64 result of integers as the integer dtype that is asked for.
Tensor narrowed(Tensor y, std::optional<DType> dtype) { return dtype ? cast(y, *dtype) : y; }

Tensor sum_over(const Tensor& input, DimMask mask, bool keepdim, std::optional<DType> dtype) {
  Tensor x = converted("sum", input, dtype);
  Tensor y = narrowed(run_reduce(ReduceOp::Sum, x, mask, keepdim), dtype);
  if (tracks_grad(x))
    record("sum", y, {x},
           [shape = x.shape(), mask](GradContext&, const Tensor& g) { return spread(g, shape, mask); });
  return y;
}

Tensor mean_over(const Tensor& input, DimMask mask, bool keepdim, std::optional<DType> dtype) {
  TERN_CHECK(
      is_floating_point(dtype.value_or(input.dtype())) || is_complex(dtype.value_or(input.dtype())),
      DTypeError,
      "mean: could not infer output dtype. {} dtype must be a floating point dtype. Got: {}; convert with "
      "to(float32) or give dtype",
      dtype ? "Optional" : "Input", name(dtype.value_or(input.dtype())));
  Tensor x = converted("mean", input, dtype);
  const double count = static_cast<double>(reduced_numel(x.shape(), mask));
  Tensor y = run_reduce(ReduceOp::Sum, x, mask, keepdim, count);
  if (tracks_grad(x))
    record("mean", y, {x}, [shape = x.shape(), mask, count](GradContext&, const Tensor& g) {
      return spread(div(g, count), shape, mask);
    });
  return y;
}

/// The gradient of y = prod(x) along the one dimension of `split`; g and y have the reduced dimension with
/// size 1.
Tensor prod_gradient(const Tensor& g, const Tensor& x, const Tensor& y, const DimSplit& split) {
  if (tracks_grad(g, x)) {
    if (!item(any(eq(x, 0))).to_bool()) return div(mul(g, y), x);
    // For each element the product of the others, which is differentiable where elements are zero.
    Tensor rows = reshape(x, {split.outer, 1, split.size, split.inner});
    Tensor diagonal = reshape(eye(split.size, {.dtype = DType::Bool, .device = x.device()}),
                              {1, split.size, split.size, 1});
    Tensor others = reshape(prod(where(diagonal, 1, rows), /*dim=*/2), x.shape());
    return mul(g, others);
  }
  Tensor dense_x = compact(x), dense_g = compact(g);
  Tensor grad = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
  launch(current_stream(x.device()), kernels::prod_backward,
         {.cumulative = false,
          .dtype = x.dtype(),
          .grad_in = grad.data_ptr(),
          .grad_out = dense_g.data_ptr(),
          .in = dense_x.data_ptr(),
          .outer = split.outer,
          .size = split.size,
          .inner = split.inner});
  return grad;
}

Tensor prod_over(const Tensor& input, DimMask mask, const DimSplit& split, bool keepdim,
                 std::optional<DType> dtype) {
  if (is_complex(input.dtype())) throw_no_complex("prod", input.dtype());
  Tensor x = converted("prod", input, dtype);
  Tensor y = narrowed(run_reduce(ReduceOp::Prod, x, mask, keepdim), dtype);
  if (tracks_grad(x))
    record("prod", y, {x}, [x_ = save(x), y_ = save_output(y), mask, split](GradContext& c, const Tensor& g) {
      const Tensor v = c[x_];
      return prod_gradient(restore_dims(g, v.shape(), mask), v, restore_dims(c[y_], v.shape(), mask), split);
    });
  return y;
}

Tensor truth(ReduceOp op, const char* op_name, const Tensor& x, DimMask mask, bool keepdim) {
  if (is_complex_computable(x.dtype())) return truth(op, op_name, ne(x, 0), mask, keepdim);
  check_computable(op_name, x);
  Tensor y = run_reduce(op, x, mask, keepdim);
  return x.dtype() == DType::UInt8 ? cast(y, DType::UInt8) : y;
}

/// In `any` and `all` an empty list names no dimension.
DimMask dims_for_truth(const char* op, IntArrayRef dims, int64_t rank) {
  return dims.empty() ? DimMask{0} : dims_of(op, dims, rank);
}

}  // namespace

Tensor sum(const Tensor& x) { return sum(x, IntArrayRef()); }
Tensor sum(const Tensor& x, IntArrayRef dims, bool keepdim, std::optional<DType> dtype) {
  return sum_over(x, dims_of("sum", dims, x.dim()), keepdim, autocast_result(x, dtype));
}

Tensor mean(const Tensor& x) { return mean(x, IntArrayRef()); }
Tensor mean(const Tensor& x, IntArrayRef dims, bool keepdim, std::optional<DType> dtype) {
  return mean_over(x, dims_of("mean", dims, x.dim()), keepdim, dtype);
}

Tensor nansum(const Tensor& x, IntArrayRef dims, bool keepdim, std::optional<DType> dtype) {
  if (!is_floating_point(x.dtype())) return sum(x, dims, keepdim, dtype);
  const DimMask mask = dims_of("nansum", dims, x.dim());
  if (dtype && !is_floating_point(*dtype)) return sum_over(where(isnan(x), 0, x), mask, keepdim, dtype);
  const Tensor v = converted("nansum", x, dtype);
  Tensor y = run_reduce(ReduceOp::NanSum, v, mask, keepdim);
  if (tracks_grad(v))
    record("nansum", y, {v}, [v_ = save(v), mask](GradContext& c, const Tensor& g) {
      const Tensor saved = c[v_];
      return where(isnan(saved), 0, spread(g, saved.shape(), mask));
    });
  return y;
}

Tensor nanmean(const Tensor& x, IntArrayRef dims, bool keepdim, std::optional<DType> dtype) {
  TERN_CHECK(is_floating_point(x.dtype()), DTypeError,
             "nanmean: expected input to have a floating point dtype but got {}: convert it with to(float32)",
             name(x.dtype()));
  const Tensor count = sum(logical_not(isnan(x.detach())), dims, keepdim);
  return div(nansum(x, dims, keepdim, dtype), count);
}

Tensor prod(const Tensor& x, std::optional<DType> dtype) {
  if (autocasts(x)) [[unlikely]]
    return autocast_float32([&](const Tensor& y) { return prod(y, dtype); }, x);
  return prod_over(x, all_dims(x.dim()), {1, x.numel(), 1}, /*keepdim=*/false, dtype);
}
Tensor prod(const Tensor& x, int64_t dim, bool keepdim, std::optional<DType> dtype) {
  if (autocasts(x)) [[unlikely]]
    return autocast_float32([&](const Tensor& y) { return prod(y, dim, keepdim, dtype); }, x);
  const DimMask mask = dims_of("prod", IntArrayRef(&dim, 1), x.dim());
  return prod_over(x, mask, split_at(x.shape(), wrap_dim(dim, x.dim(), "prod")), keepdim, dtype);
}

Tensor any(const Tensor& x) { return truth(ReduceOp::Any, "any", x, all_dims(x.dim()), /*keepdim=*/false); }
Tensor any(const Tensor& x, IntArrayRef dims, bool keepdim) {
  return truth(ReduceOp::Any, "any", x, dims_for_truth("any", dims, x.dim()), keepdim);
}
Tensor all(const Tensor& x) { return truth(ReduceOp::All, "all", x, all_dims(x.dim()), /*keepdim=*/false); }
Tensor all(const Tensor& x, IntArrayRef dims, bool keepdim) {
  return truth(ReduceOp::All, "all", x, dims_for_truth("all", dims, x.dim()), keepdim);
}

Tensor count_nonzero(const Tensor& x, IntArrayRef dims) {
  if (is_complex_computable(x.dtype())) return count_nonzero(ne(x, 0), dims);
  check_computable("count_nonzero", x);
  return run_reduce(ReduceOp::CountNonzero, x, dims_of("count_nonzero", dims, x.dim()), /*keepdim=*/false);
}

}  // namespace tern
