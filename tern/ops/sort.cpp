// Sorting, topk and median with their gradients: what was chosen gets its gradient back at its place.
#include "tern/ops/sort.h"

#include <limits>

#include "tern/autograd/arithmetic.h"
#include "tern/kernels/sort.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/index_plan.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce_geometry.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// What to take of the sorted order along a dimension.
struct Part {
  int64_t count;
  bool only_last = false;
  bool descending = false;
};

std::pair<Tensor, Tensor> run_sort(const Tensor& x, int64_t dim, const Part& part) {
  const DimSplit split = split_at(x.shape(), dim);
  Shape shape = x.shape();
  const int64_t length = part.only_last ? 1 : part.count;
  if (!shape.empty()) shape[static_cast<size_t>(dim)] = length;
  const int64_t numel = split.outer * length * split.inner;
  Tensor dense = compact(x);
  Tensor values = empty_contiguous(shape, numel, x.dtype(), x.device());
  Tensor indices = empty_contiguous(shape, numel, DType::Int64, x.device());
  launch(current_stream(x.device()), kernels::sort,
         {.descending = part.descending,
          .only_last = part.only_last,
          .dtype = x.dtype(),
          .values = values.data_ptr(),
          .indices = static_cast<int64_t*>(indices.data_ptr()),
          .in = dense.data_ptr(),
          .outer = split.outer,
          .size = split.size,
          .inner = split.inner,
          .count = part.count});
  return {values, indices};
}

void record_choice(const char* op, const Tensor& values, const Tensor& indices, const Tensor& x,
                   int64_t dim) {
  if (tracks_grad(x))
    record(op, values, {x},
           [shape = x.shape(), index_ = save(indices), dim](GradContext& c, const Tensor& g) {
             return put_into_zeros(shape, dim, c[index_], g);
           });
}

}  // namespace

std::pair<Tensor, Tensor> sort(const Tensor& x, int64_t dim, bool descending) {
  check_computable("sort", x);
  const int64_t d = wrap_dim(dim, x.dim(), "sort");
  auto [values, indices] = run_sort(x, d, {.count = split_at(x.shape(), d).size, .descending = descending});
  record_choice("sort", values, indices, x, d);
  return {values, indices};
}

Tensor argsort(const Tensor& x, int64_t dim, bool descending) {
  check_computable("argsort", x);
  const int64_t d = wrap_dim(dim, x.dim(), "argsort");
  return run_sort(x, d, {.count = split_at(x.shape(), d).size, .descending = descending}).second;
}

std::pair<Tensor, Tensor> topk(const Tensor& x, int64_t k, int64_t dim, bool largest,
                               [[maybe_unused]] bool sorted) {
  check_computable("topk", x);
  TERN_CHECK(x.dtype() != DType::Bool, DTypeError,
             "topk: does not support bool: convert the tensor with to(uint8)");
  const int64_t d = wrap_dim(dim, x.dim(), "topk");
  const int64_t size = split_at(x.shape(), d).size;
  TERN_CHECK(k >= 0 && k <= size, ValueError,
             "topk: selected index k out of range: k is {}, the size of dimension {} is {} (shape {})", k, d,
             size, to_string(x.shape()));
  // A 0-d tensor has one element, whatever k is.
  auto [values, indices] = run_sort(x, d, {.count = x.dim() == 0 ? 1 : k, .descending = largest});
  record_choice("topk", values, indices, x, d);
  return {values, indices};
}

Tensor median(const Tensor& x) {
  check_computable("median", x);
  TERN_CHECK(x.dtype() != DType::Bool, DTypeError,
             "median: not implemented for bool: convert the tensor with to(uint8)");
  if (x.numel() == 0) {
    Tensor y = empty_contiguous(Shape(), 1, x.dtype(), x.device());
    const bool is_long = x.dtype() == DType::Int64, is_int = x.dtype() == DType::Int32;
    fill_elements(y, is_floating_point(x.dtype()) ? std::numeric_limits<double>::quiet_NaN()
                     : is_long                    ? -0x1p63
                     : is_int                     ? -0x1p31
                                                  : 0);
    return y;
  }
  Tensor flat = reshape(x.detach(), {x.numel()});
  Tensor y = reshape(run_sort(flat, /*dim=*/0, {.count = (x.numel() + 1) / 2, .only_last = true}).first, {});
  if (tracks_grad(x))
    record("median", y, {x}, [x_ = save(x), y_ = save_output(y)](GradContext& c, const Tensor& g) {
      const Tensor v = c[x_];
      Tensor chosen = cast(logical_or(eq(v, c[y_]), logical_and(isnan(v), isnan(c[y_]))), v.dtype());
      return mul(chosen, div(g, run_reduce(ReduceOp::Sum, chosen, all_dims(v.dim()), /*keepdim=*/false)));
    });
  return y;
}

std::pair<Tensor, Tensor> median(const Tensor& x, int64_t dim, bool keepdim) {
  check_computable("median", x);
  TERN_CHECK(x.dtype() != DType::Bool, DTypeError,
             "median: not implemented for bool: convert the tensor with to(uint8)");
  const int64_t d = wrap_dim(dim, x.dim(), "median");
  const int64_t size = split_at(x.shape(), d).size;
  TERN_CHECK(size != 0, IndexError,
             "median: Expected reduction dim {} to have non-zero size, but the shape is {}", d,
             to_string(x.shape()));
  auto [values, indices] = run_sort(x, d, {.count = (size + 1) / 2, .only_last = true});
  record_choice("median", values, indices, x, d);
  if (keepdim || x.dim() == 0) return {values, indices};
  return {squeeze(values, d), squeeze(indices, d)};
}

}  // namespace tern
