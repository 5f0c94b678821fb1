// Sorting, topk, median and their kin with their gradients: what was chosen gets its gradient back at its
// place.
#include "tern/ops/sort.h"

#include <limits>

#include "tern/autograd/arithmetic.h"
#include "tern/kernels/sort.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/index_plan.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/reduce_geometry.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// What to take of the sorted order along a dimension.
struct Part {
  int64_t count;
  bool only_last = false;
  bool nan_wins = false;  ///< see SortArgs
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
          .nan_wins = part.nan_wins,
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

/// The gradient of a chosen element of all, shared by those that are equal to it.
void record_shared_choice(const char* op, const Tensor& y, const Tensor& x) {
  if (tracks_grad(x))
    record(op, y, {x}, [x_ = save(x), y_ = save_output(y)](GradContext& c, const Tensor& g) {
      const Tensor v = c[x_];
      Tensor chosen = cast(logical_or(eq(v, c[y_]), logical_and(isnan(v), isnan(c[y_]))), v.dtype());
      return mul(chosen, div(g, run_reduce(ReduceOp::Sum, chosen, all_dims(v.dim()), /*keepdim=*/false)));
    });
}

void check_not_bool(const char* op, const Tensor& x) {
  check_computable(op, x);
  TERN_CHECK(x.dtype() != DType::Bool, DTypeError,
             "{}: not implemented for bool: convert the tensor with to(uint8)", op);
}

/// The dimension, wrapped. Throws IndexError when there is nothing to choose from.
int64_t chosen_dim(const char* op, const Tensor& x, int64_t dim) {
  const int64_t d = wrap_dim(dim, x.dim(), op);
  TERN_CHECK(split_at(x.shape(), d).size != 0, IndexError,
             "{}: Expected reduction dim {} to have non-zero size, but the shape is {}", op, d,
             to_string(x.shape()));
  return d;
}

/// Of a choice that kept its dimension.
std::pair<Tensor, Tensor> without_dim(std::pair<Tensor, Tensor> chosen, int64_t dim, bool keepdim) {
  if (keepdim || chosen.first.dim() == 0) return chosen;
  return {squeeze(chosen.first, dim), squeeze(chosen.second, dim)};
}

std::pair<Tensor, Tensor> choose(const char* op, const Tensor& x, int64_t dim, bool keepdim,
                                 const Part& part) {
  auto [values, indices] = run_sort(x, dim, part);
  record_choice(op, values, indices, x, dim);
  return without_dim({values, indices}, dim, keepdim);
}

/// What median gives for no elements.
Tensor median_of_nothing(const Tensor& x) {
  Tensor y = empty_of({}, x);
  const bool is_long = x.dtype() == DType::Int64, is_int = x.dtype() == DType::Int32;
  fill_elements(y, is_floating_point(x.dtype()) ? std::numeric_limits<double>::quiet_NaN()
                   : is_long                    ? -0x1p63
                   : is_int                     ? -0x1p31
                                                : 0);
  return y;
}

/// The place of the lower median of what is not NaN, with the dimension kept; no history.
Tensor place_of_nanmedian(const Tensor& x, int64_t dim) {
  const Tensor values = x.detach(), order = argsort(values, dim);
  Tensor count = run_reduce(ReduceOp::CountNonzero, logical_not(isnan(values)),
                            x.dim() == 0 ? 0 : DimMask{1} << dim, /*keepdim=*/true);
  return gather(order, dim, div(sub(count, 1), 2, "trunc"));
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

std::pair<Tensor, Tensor> kthvalue(const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
  check_not_bool("kthvalue", x);
  const int64_t d = chosen_dim("kthvalue", x, dim), size = split_at(x.shape(), d).size;
  TERN_CHECK(k >= 1 && k <= size, ValueError,
             "kthvalue: selected number k out of range for dimension {}: k is {}, the size {} (shape {})", d,
             k, size, to_string(x.shape()));
  return choose("kthvalue", x, d, keepdim, {.count = k, .only_last = true});
}

Tensor median(const Tensor& x) {
  check_not_bool("median", x);
  if (x.numel() == 0) return median_of_nothing(x);
  Tensor flat = reshape(x.detach(), {x.numel()});
  const Part part{.count = (x.numel() + 1) / 2, .only_last = true, .nan_wins = true};
  Tensor y = reshape(run_sort(flat, /*dim=*/0, part).first, {});
  record_shared_choice("median", y, x);
  return y;
}

std::pair<Tensor, Tensor> median(const Tensor& x, int64_t dim, bool keepdim) {
  check_not_bool("median", x);
  const int64_t d = chosen_dim("median", x, dim), size = split_at(x.shape(), d).size;
  return choose("median", x, d, keepdim, {.count = (size + 1) / 2, .only_last = true, .nan_wins = true});
}

Tensor nanmedian(const Tensor& x) {
  check_not_bool("nanmedian", x);
  if (x.numel() == 0) return median_of_nothing(x);
  const Tensor flat = reshape(x.detach(), {x.numel()});
  Tensor y = reshape(gather(flat, 0, place_of_nanmedian(flat, 0)), {});
  record_shared_choice("nanmedian", y, x);
  return y;
}

std::pair<Tensor, Tensor> nanmedian(const Tensor& x, int64_t dim, bool keepdim) {
  check_not_bool("nanmedian", x);
  const int64_t d = chosen_dim("nanmedian", x, dim);
  const Tensor indices = place_of_nanmedian(x, d);
  return without_dim({gather(x, d, indices), indices}, d, keepdim);
}

std::pair<Tensor, Tensor> mode(const Tensor& x, int64_t dim, bool keepdim) {
  check_computable("mode", x);
  const int64_t d = chosen_dim("mode", x, dim), size = split_at(x.shape(), d).size;
  if (x.dim() == 0) return {clone(x), filled({}, DType::Int64, x.device(), 0)};
  const auto [sorted, order] = sort(x.detach(), d);
  // At the end of a run of equal elements stands its length; argmax takes the first of the longest.
  Shape column(x.shape().size(), 1);
  column[static_cast<size_t>(d)] = size;
  const Tensor places = reshape(arange(size, {.dtype = int64, .device = x.device()}), column);
  const Tensor begins = ne(narrow(sorted, d, 1, size - 1), narrow(sorted, d, 0, size - 1));
  const Tensor first = filled(narrow(sorted, d, 0, 1).shape(), DType::Int64, x.device(), 0);
  const Tensor starts = cummax(cat({first, where(begins, narrow(places, d, 1, size - 1), 0)}, d), d).first;
  const Tensor indices = gather(order, d, argmax(sub(places, starts), d, /*keepdim=*/true));
  return without_dim({gather(x, d, indices), indices}, d, keepdim);
}

}  // namespace tern
