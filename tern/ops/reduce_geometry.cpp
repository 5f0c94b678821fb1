// Dimension sets and walks of reductions.
#include "tern/ops/reduce_geometry.h"

#include <algorithm>
#include <limits>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

constexpr DimMask bit(size_t d) { return DimMask{1} << d; }

}  // namespace

DimMask all_dims(int64_t rank) { return rank >= 64 ? ~DimMask{0} : bit(static_cast<size_t>(rank)) - 1; }

DimMask dims_of(const char* op, IntArrayRef dims, int64_t rank) {
  if (dims.empty()) return all_dims(rank);
  DimMask mask = 0;
  for (int64_t dim : dims) {
    const int64_t d = wrap_dim(dim, rank, op);
    TERN_CHECK((mask & bit(static_cast<size_t>(d))) == 0, ValueError,
               "{}: dim {} appears multiple times in the list of dims {}: name each dimension once", op, d,
               to_string(dims));
    mask |= bit(static_cast<size_t>(d));
  }
  return mask & all_dims(rank);
}

Shape reduced_shape(const Shape& shape, DimMask mask, bool keepdim) {
  Shape result;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!(mask & bit(d)))
      result.push_back(shape[d]);
    else if (keepdim)
      result.push_back(1);
  }
  return result;
}

int64_t reduced_numel(const Shape& shape, DimMask mask) {
  int64_t numel = 1;
  for (size_t d = 0; d < shape.size(); ++d)
    if (mask & bit(d)) numel *= shape[d];
  return numel;
}

void make_geometry(const Tensor& x, DimMask mask, WalkOrder order, Geometry<1>& kept, Geometry<1>& reduced) {
  const Shape& shape = x.shape();
  const Strides& strides = x.strides();
  if (mask == all_dims(x.dim()) && x.is_contiguous()) {
    set_flat(kept, 1);
    set_flat(reduced, x.numel());
    return;
  }
  Shape kept_shape, kept_strides, reduced_sizes, reduced_strides;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!(mask & bit(d))) {
      kept_shape.push_back(shape[d]);
      kept_strides.push_back(strides[d]);
      continue;
    }
    size_t at = reduced_sizes.size();
    if (order == WalkOrder::Memory) {
      // The smallest step goes inside; repeated elements (stride 0) outside.
      auto step = [](int64_t stride) { return stride == 0 ? std::numeric_limits<int64_t>::max() : stride; };
      if (shape[d] == 1) continue;
      while (at > 0 && step(reduced_strides[at - 1]) < step(strides[d])) --at;
    }
    reduced_sizes.insert(at, shape[d]);
    reduced_strides.insert(at, strides[d]);
  }
  const int64_t* const of_kept[] = {kept_strides.data()};
  const int64_t* const of_reduced[] = {reduced_strides.data()};
  collapse(kept, kept_shape, of_kept);
  collapse(reduced, reduced_sizes, of_reduced);
}

Tensor restore_dims(const Tensor& result, const Shape& shape, DimMask mask) {
  if (result.shape().size() == shape.size()) return result;
  return reshape(result, reduced_shape(shape, mask, /*keepdim=*/true));
}

Tensor spread(const Tensor& result, const Shape& shape, DimMask mask) {
  if (tracks_grad(result)) return expand(restore_dims(result, shape, mask), shape);
  const Strides& from = result.strides();
  const bool kept_dims = result.shape().size() == shape.size();
  Strides strides;
  size_t next = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool is_reduced = (mask & bit(d)) != 0;
    strides.push_back(is_reduced ? 0 : from[next]);
    next += !is_reduced || kept_dims;
  }
  return Tensor::view_of(result.storage(), result.dtype(), shape, std::move(strides),
                         result.storage_offset());
}

void check_computable(const char* op, const Tensor& x) {
  TERN_CHECK(is_computable(x.dtype()), DTypeError,
             "{}: dtype {} is not supported: convert the tensor with to(dtype)", op, name(x.dtype()));
}

Tensor converted(const char* op, const Tensor& x, std::optional<DType> dtype) {
  if (is_complex_computable(x.dtype()) && (!dtype || is_complex_computable(*dtype)))
    return dtype ? to(x, *dtype) : x;
  check_computable(op, x);
  if (!dtype || *dtype == x.dtype()) return x;
  TERN_CHECK(is_computable(*dtype), DTypeError, "{}: dtype {} is not supported: ask for another one", op,
             name(*dtype));
  return to(x, *dtype);
}

namespace {

/// Complex numbers whose sums are taken beside each other: two columns alone are summed slowly.
constexpr int64_t kWholeRow = 64;

/// The sum of a contiguous complex tensor.
Tensor sum_of_all(const Tensor& x, const Shape& shape, double param) {
  const int64_t rows = x.numel() / kWholeRow, rest = x.numel() % kWholeRow;
  const Tensor parts = real_view(x);
  const auto columns = [&](int64_t first, int64_t count, int64_t width) {
    const Tensor part = Tensor::view_of(parts.storage(), parts.dtype(), {count, 2 * width}, {2 * width, 1},
                                        parts.storage_offset() + 2 * first);
    return run_reduce(ReduceOp::Sum, part, bit(0), /*keepdim=*/false, param);
  };
  Tensor total = reshape(columns(0, rows, kWholeRow), {kWholeRow, 2});
  if (rest != 0) total = cat({total, reshape(columns(rows * kWholeRow, rest, 1), {1, 2})}, 0);
  return reshape(complex_view(run_reduce(ReduceOp::Sum, total, bit(0), /*keepdim=*/false)), shape);
}

}  // namespace

Tensor run_reduce(ReduceOp op, const Tensor& x, DimMask mask, bool keepdim, double param) {
  if (is_complex(x.dtype())) {
    TERN_CHECK(op == ReduceOp::Sum, DTypeError,
               "reduction: not implemented for {}: only sums and means are: take real(), imag() or abs()",
               name(x.dtype()));
    if (x.is_contiguous() && reduced_numel(x.shape(), mask) == x.numel() && x.numel() >= 2 * kWholeRow)
      return sum_of_all(x, reduced_shape(x.shape(), mask, keepdim), param);
    return complex_view(run_reduce(op, real_view(x), mask, keepdim, param));  // dimensions keep their numbers
  }
  Shape shape = reduced_shape(x.shape(), mask, keepdim);
  ReduceArgs args;
  make_geometry(x, mask, WalkOrder::Memory, args.kept, args.reduced);
  Tensor out =
      empty_contiguous(std::move(shape), args.kept.numel, reduce_result_dtype(op, x.dtype()), x.device());
  args.op = op;
  args.dtype = x.dtype();
  args.param = param;
  args.out = out.data_ptr();
  args.in = x.data_ptr();
  launch(current_stream(x.device()), kernels::reduce, args);
  return out;
}

DimSplit split_at(const Shape& shape, int64_t dim) {
  DimSplit split{1, 1, 1};
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
    (d < dim ? split.outer : d == dim ? split.size : split.inner) *= shape[static_cast<size_t>(d)];
  return split;
}

}  // namespace tern
