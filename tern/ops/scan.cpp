// Running sums and products with their gradients.
#include "tern/ops/scan.h"

#include "tern/autograd/arithmetic.h"
#include "tern/kernels/scan.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
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

Tensor converted(const char* op, const Tensor& x, std::optional<DType> dtype) {
  check_computable(op, x);
  if (!dtype || *dtype == x.dtype()) return x;
  TERN_CHECK(is_computable(*dtype), DTypeError, "{}: dtype {} is not supported: ask for another one", op,
             name(*dtype));
  return to(x, *dtype);
}

}  // namespace

Tensor cumsum(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
  dtype = autocast_result(input, dtype);
  const int64_t d = wrap_dim(dim, input.dim(), "cumsum");
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

}  // namespace tern
