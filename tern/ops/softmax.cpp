// Softmax, log_softmax and logsumexp: dtype rules, layout, gradients. Backward is one fused kernel, or a
// formula of operators where second derivatives are asked for.
#include "tern/ops/softmax.h"

#include "tern/autograd/arithmetic.h"
#include "tern/kernels/softmax.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/reduce_geometry.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

Tensor checked_input(const char* op, const Tensor& x, std::optional<DType> dtype) {
  TERN_CHECK(
      is_floating_point(dtype.value_or(x.dtype())), DTypeError,
      "{}: not implemented for {}: convert the tensor with to(float32), or give a floating point dtype", op,
      name(dtype.value_or(x.dtype())));
  check_computable(op, x);
  return dtype && *dtype != x.dtype() ? to(x, *dtype) : x;
}

SoftmaxShape softmax_shape(const Shape& shape, int64_t dim) {
  const DimSplit split = split_at(shape, dim);
  return {split.outer, split.size, split.inner};
}

void run_softmax(SoftmaxOp op, const Tensor& dense, const Tensor& out, const SoftmaxShape& shape) {
  launch(current_stream(dense.device()), kernels::softmax,
         {.op = op, .dtype = dense.dtype(), .out = out.data_ptr(), .in = dense.data_ptr(), .shape = shape});
}

Tensor run_backward(SoftmaxOp op, const Tensor& g, const Tensor& y, int64_t dim) {
  Tensor dense_g = compact(g), dense_y = compact(y);
  Tensor grad = empty_contiguous(y.shape(), y.numel(), y.dtype(), y.device());
  launch(current_stream(y.device()), kernels::softmax_backward,
         {.op = op,
          .dtype = y.dtype(),
          .grad_in = grad.data_ptr(),
          .grad_out = dense_g.data_ptr(),
          .out = dense_y.data_ptr(),
          .shape = softmax_shape(y.shape(), dim)});
  return grad;
}

Tensor softmax_along(SoftmaxOp op, const char* op_name, const Tensor& input, int64_t dim,
                     std::optional<DType> dtype) {
  const int64_t d = wrap_dim(dim, input.dim(), op_name);
  Tensor x = checked_input(op_name, input, dtype);
  Tensor y = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
  run_softmax(op, compact(x), y, softmax_shape(x.shape(), d));
  if (!tracks_grad(x)) return y;
  if (op == SoftmaxOp::Softmax)
    record(op_name, y, {x}, [y_ = save_output(y), d](GradContext& c, const Tensor& g) {
      const Tensor v = c[y_];
      if (!tracks_grad(g, v)) return run_backward(SoftmaxOp::Softmax, g, v, d);
      return mul(sub(g, sum(mul(g, v), d, /*keepdim=*/true)), v);
    });
  else
    record(op_name, y, {x}, [y_ = save_output(y), d](GradContext& c, const Tensor& g) {
      const Tensor v = c[y_];
      if (!tracks_grad(g, v)) return run_backward(SoftmaxOp::LogSoftmax, g, v, d);
      return sub(g, mul(exp(v), sum(g, d, /*keepdim=*/true)));
    });
  return y;
}

/// The dimensions outside of `mask`, then those inside.
Shape reduced_last(int64_t rank, DimMask mask) {
  Shape order;
  for (const bool inside : {false, true})
    for (int64_t d = 0; d < rank; ++d)
      if ((mask >> d & 1) == static_cast<DimMask>(inside)) order.push_back(d);
  return order;
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return softmax_along(SoftmaxOp::Softmax, "softmax", x, dim, autocast_result(x, dtype));
}

Tensor softmin(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return softmax_along(SoftmaxOp::Softmax, "softmin", neg(x), dim, autocast_result(x, dtype));
}

Tensor log_softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return softmax_along(SoftmaxOp::LogSoftmax, "log_softmax", x, dim, autocast_result(x, dtype));
}

Tensor logsumexp(const Tensor& input, IntArrayRef dims, bool keepdim) {
  if (autocasts_on_gpu(input)) [[unlikely]]
    return autocast_float32([&](const Tensor& x) { return logsumexp(x, dims, keepdim); }, input);
  check_computable("logsumexp", input);
  const DimMask mask = dims_of("logsumexp", dims, input.dim());
  Tensor x = is_floating_point(input.dtype()) ? input : cast(input, get_default_dtype());
  const Shape shape = reduced_shape(x.shape(), mask, keepdim);
  const int64_t size = reduced_numel(x.shape(), mask);
  int64_t numel = 1;
  for (int64_t n : shape) numel *= n;
  Tensor y = empty_contiguous(shape, numel, x.dtype(), x.device());
  if (dims.size() == 1) {
    run_softmax(SoftmaxOp::LogSumExp, compact(x), y,
                softmax_shape(x.shape(), wrap_dim(dims[0], x.dim(), "logsumexp")));
  } else {
    Tensor rows = compact(permute(x.detach(), reduced_last(x.dim(), mask)));
    run_softmax(SoftmaxOp::LogSumExp, rows, y, {numel, size, 1});
  }
  if (tracks_grad(x))
    record("logsumexp", y, {x},
           [x_ = save(x), y_ = save_output(y), mask, axes = Shape(dims.begin(), dims.end())](
               GradContext& c, const Tensor& g) {
             Tensor v = c[x_], total = c[y_];
             const DType dtype = v.dtype();
             if (itemsize(dtype) == 2) {  // the 16-bit result is too coarse for exp(x - y)
               v = to(v, DType::Float32);
               total = logsumexp(v, axes);
             }
             Tensor share = exp(sub(v, restore_dims(total, v.shape(), mask)));
             return to(mul(restore_dims(to(g, v.dtype()), v.shape(), mask), share), dtype);
           });
  return y;
}

}  // namespace tern
