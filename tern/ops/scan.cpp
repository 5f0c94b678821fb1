// Running sums, products and extremes with their gradients; differences and integrals.
#include "tern/ops/scan.h"

#include <algorithm>
#include <limits>

#include "tern/autograd/arithmetic.h"
#include "tern/kernels/scan.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/complex.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/reduce_geometry.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// The scan of x in its own dtype, int64 for integers and bool.
Tensor run_scan(ScanOp op, const Tensor& x, int64_t dim, bool reverse) {
  const DType dtype = is_floating_point(x.dtype()) ? x.dtype() : DType::Int64;
  Tensor dense = compact(x);
  Tensor y = empty_contiguous(x.shape(), x.numel(), dtype, x.device());
  const DimSplit split = split_at(x.shape(), dim);
  launch(current_stream(x.device()), kernels::scan,
         {.op = op,
          .reverse = reverse,
          .dtype = x.dtype(),
          .out = y.data_ptr(),
          .in = dense.data_ptr(),
          .outer = split.outer,
          .size = split.size,
          .inner = split.inner});
  return y;
}

/// A running sum from the front or, its gradient, from the back.
Tensor running_sum(const Tensor& x, int64_t dim, bool reverse) {
  Tensor y = run_scan(ScanOp::Sum, x, dim, reverse);
  if (tracks_grad(x))
    record("cumsum", y, {x},
           [dim, reverse](GradContext&, const Tensor& g) { return running_sum(g, dim, !reverse); });
  return y;
}

Tensor cumprod_gradient(const Tensor& g, const Tensor& x, int64_t dim) {
  const DimSplit split = split_at(x.shape(), dim);
  if (tracks_grad(g, x)) {
    // Row k of `products` is the running product with element k left out: the slope of every y[i], i >= k.
    const TensorOptions flags{.dtype = DType::Bool, .device = x.device()};
    const Shape square{1, split.size, split.size, 1};
    Tensor rows = reshape(x, {split.outer, 1, split.size, split.inner});
    Tensor grads = reshape(g, {split.outer, 1, split.size, split.inner});
    Tensor products = cumprod(where(reshape(eye(split.size, flags), square), 1, rows), /*dim=*/2);
    Tensor after = reshape(triu(ones({split.size, split.size}, flags)), square);
    return reshape(sum(where(after, mul(grads, products), 0), /*dim=*/2), x.shape());
  }
  Tensor dense_x = compact(x), dense_g = compact(g);
  Tensor grad = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
  launch(current_stream(x.device()), kernels::prod_backward,
         {.cumulative = true,
          .dtype = x.dtype(),
          .grad_in = grad.data_ptr(),
          .grad_out = dense_g.data_ptr(),
          .in = dense_x.data_ptr(),
          .outer = split.outer,
          .size = split.size,
          .inner = split.inner});
  return grad;
}

/// log(exp(x[0]) + ... + exp(x[i])), or from the back.
Tensor running_logsumexp(const Tensor& x, int64_t dim, bool reverse) {
  Tensor y = run_scan(ScanOp::LogSumExp, x, dim, reverse);
  if (tracks_grad(x))
    record("logcumsumexp", y, {x},
           [x_ = save(x), y_ = save_output(y), dim, reverse](GradContext& c, const Tensor& g) {
             // The sum over i of g[i] * exp(x - y[i]) in logarithms, positive and negative ones apart.
             const double least = g.dtype() == DType::Float16 ? -65504.0 : -0x1.fep127;  // also as bfloat16
             const auto sum_where = [&](const Tensor& chosen) {
               Tensor logs = where(chosen, log(abs(g)), least);
               return exp(add(running_logsumexp(sub(logs, c[y_]), dim, !reverse), c[x_]));
             };
             return sub(sum_where(gt(g, 0)), sum_where(lt(g, 0)));
           });
  return y;
}

std::pair<Tensor, Tensor> running_extreme(const char* op, bool largest, const Tensor& x, int64_t dim) {
  check_computable(op, x);
  const int64_t d = wrap_dim(dim, x.dim(), op);
  Tensor dense = compact(x);
  Tensor values = empty_of(x.shape(), x);
  Tensor indices = empty_contiguous(x.shape(), x.numel(), DType::Int64, x.device());
  const DimSplit split = split_at(x.shape(), d);
  launch(current_stream(x.device()), kernels::scan_extreme,
         {.largest = largest,
          .dtype = x.dtype(),
          .values = values.data_ptr(),
          .indices = static_cast<int64_t*>(indices.data_ptr()),
          .in = dense.data_ptr(),
          .outer = split.outer,
          .size = split.size,
          .inner = split.inner});
  if (tracks_grad(x))
    record(op, values, {x}, [shape = x.shape(), index_ = save(indices), d](GradContext& c, const Tensor& g) {
      return scatter_add(filled(shape, g.dtype(), g.device(), 0), d, c[index_], g);
    });
  return {values, indices};
}

}  // namespace

Tensor cumsum(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
  dtype = autocast_result(input, dtype);
  const int64_t d = wrap_dim(dim, input.dim(), "cumsum");
  if (is_complex_computable(input.dtype())) {
    const Tensor x = converted("cumsum", input, dtype);
    return x.dim() == 0 ? x : view_as_complex(cumsum(view_as_real(x), d));
  }
  Tensor x = converted("cumsum", input, dtype);
  Tensor y = running_sum(x, d, /*reverse=*/false);
  return dtype ? to(y, *dtype) : y;
}

Tensor cumprod(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
  dtype = autocast_result(input, dtype);
  const int64_t d = wrap_dim(dim, input.dim(), "cumprod");
  Tensor x = converted("cumprod", input, dtype);
  Tensor y = run_scan(ScanOp::Prod, x, d, /*reverse=*/false);
  if (tracks_grad(x))
    record("cumprod", y, {x},
           [x_ = save(x), d](GradContext& c, const Tensor& g) { return cumprod_gradient(g, c[x_], d); });
  return dtype ? to(y, *dtype) : y;
}

std::pair<Tensor, Tensor> cummax(const Tensor& x, int64_t dim) {
  return running_extreme("cummax", /*largest=*/true, x, dim);
}
std::pair<Tensor, Tensor> cummin(const Tensor& x, int64_t dim) {
  return running_extreme("cummin", /*largest=*/false, x, dim);
}

Tensor logcumsumexp(const Tensor& x, int64_t dim) {
  TERN_CHECK(is_floating_point(x.dtype()) && is_computable(x.dtype()), DTypeError,
             "logcumsumexp: needs a floating-point dtype, got {}: convert it with to(float32)",
             name(x.dtype()));
  return running_logsumexp(x, wrap_dim(dim, x.dim(), "logcumsumexp"), /*reverse=*/false);
}

Tensor diff(const Tensor& input, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  TERN_CHECK(input.dim() > 0, ShapeError, "diff: expects input to be at least one-dimensional");
  TERN_CHECK(n >= 0, ValueError, "diff: order must be non-negative but got {}", n);
  const int64_t d = wrap_dim(dim, input.dim(), "diff");
  std::vector<Tensor> parts;
  for (const Tensor& part : {prepend, input, append})
    if (part.defined()) parts.push_back(part);
  Tensor x = parts.size() == 1 ? input : with_context("diff", [&] { return cat(parts, d); });
  if (n == 0) return clone(x);
  for (n = std::min(n, x.size(d)); n > 0; --n) {
    const int64_t length = std::max<int64_t>(x.size(d) - 1, 0);
    const Tensor after = narrow(x, d, x.size(d) - length, length), before = narrow(x, d, 0, length);
    x = x.dtype() == DType::Bool ? logical_xor(after, before) : sub(after, before);
  }
  return x;
}

namespace {

/// The dimension of the samples of an integral.
int64_t sample_dim(const char* op, const Tensor& y, int64_t dim) {
  TERN_CHECK(y.dim() > 0, IndexError, "{}: Dimension specified as {} but tensor has no dimensions", op, dim);
  TERN_CHECK(y.dtype() != DType::Bool, DTypeError,
             "{}: received a bool input for `y`, but bool is not supported: convert it with to(float32)", op);
  return wrap_dim(dim, y.dim(), op);
}

/// y[i] + y[i + 1] along `d`.
Tensor neighbour_sums(const Tensor& y, int64_t d) {
  const int64_t count = std::max<int64_t>(y.size(d) - 1, 0);
  return add(narrow(y, d, 0, count), narrow(y, d, y.size(d) - count, count));
}

/// neighbour_sums(y) times the distances of the places x.
Tensor double_areas(const char* op, const Tensor& y, const Tensor& x, int64_t d) {
  TERN_CHECK(x.dtype() != DType::Bool, DTypeError,
             "{}: received a bool input for `x`, but bool is not supported: convert it with to(float32)", op);
  TERN_CHECK(x.dim() <= y.dim(), ShapeError, "{}: x has more dimensions than y: x is {}, y is {}", op,
             to_string(x.shape()), to_string(y.shape()));
  Shape shape(y.shape().size(), 1);
  if (x.dim() == 1) {
    TERN_CHECK(x.size(0) == y.size(d), ShapeError,
               "{}: There must be one `x` value for each sample point: x is {}, y is {}, dim is {}", op,
               to_string(x.shape()), to_string(y.shape()), d);
    shape[static_cast<size_t>(d)] = x.size(0);
  } else {
    std::copy(x.shape().begin(), x.shape().end(), shape.end() - x.dim());
  }
  return with_context(op, [&] { return mul(neighbour_sums(y, d), diff(reshape(x, shape), 1, d)); });
}

/// The integral of no samples.
Tensor no_area(const Tensor& y, int64_t d) {
  Shape shape = y.shape();
  shape.erase(static_cast<size_t>(d));
  return zeros(shape, {.dtype = y.dtype(), .device = y.device()});
}

}  // namespace

Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t d = sample_dim("trapezoid", y, dim);
  if (y.size(d) == 0) return no_area(y, d);
  return div(sum(double_areas("trapezoid", y, x, d), d), 2);
}

Tensor trapezoid(const Tensor& y, double dx, int64_t dim) {
  const int64_t d = sample_dim("trapezoid", y, dim);
  if (y.size(d) == 0) return no_area(y, d);
  return mul(sub(sum(y, d), mul(add(select(y, d, 0), select(y, d, -1)), 0.5)), dx);
}

Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t d = sample_dim("cumulative_trapezoid", y, dim);
  return div(cumsum(double_areas("cumulative_trapezoid", y, x, d), d), 2);
}

Tensor cumulative_trapezoid(const Tensor& y, double dx, int64_t dim) {
  const int64_t d = sample_dim("cumulative_trapezoid", y, dim);
  return cumsum(mul(neighbour_sums(y, d), dx / 2), d);
}

}  // namespace tern
