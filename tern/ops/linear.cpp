// Fully connected layers with their gradients, one launch each way.
#include "tern/ops/linear.h"

#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/matmul.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// A tensor as a matrix of its last dimension, without a view: its leading
/// dimensions must have one common stride.
struct Rows {
  int64_t count, row_stride, col_stride;
};
bool rows_of(const Tensor& x, Rows& rows) {
  const Shape& shape = x.shape();
  const Strides& strides = x.strides();
  const size_t last = shape.size() - 1;
  rows = {1, last == 0 ? 0 : strides[last - 1], strides[last]};
  if (x.numel() == 0) {
    for (size_t d = 0; d < last; ++d) rows.count *= shape[d];
    return true;
  }
  int64_t expected = rows.row_stride;
  for (size_t d = last; d-- > 0;) {
    if (shape[d] != 1 && rows.count != 1 && strides[d] != expected) return false;
    if (shape[d] != 1 && rows.count == 1) rows.row_stride = expected = strides[d];
    rows.count *= shape[d];
    expected *= shape[d];
  }
  return true;
}
Tensor with_rows(const Tensor& x, Rows& rows) {
  if (rows_of(x, rows)) return x;
  Tensor dense = contiguous(x);
  rows_of(dense, rows);
  return dense;
}

/// All gradients as one launch, nothing recorded. `y`: what relu gave, or undefined.
std::array<Tensor, 3> all_gradients(const GradContext& c, const Saved& x_, const Saved& weight_,
                                    const Shape& x_shape, const Tensor& y, const Tensor& grad) {
  std::array<Tensor, 3> results;
  Rows g_rows, x_rows;
  const Tensor g = with_rows(grad, g_rows);
  const Device device = g.device();
  LinearBackwardArgs args;
  args.dtype = g.dtype();
  args.rows = g_rows.count;
  args.in_features = x_shape.back();
  args.out_features = g.shape().back();
  args.grad_output = g.data_ptr();
  args.grad_row_stride = g_rows.row_stride;
  args.grad_col_stride = g_rows.col_stride;
  if (y.defined()) args.relu_output = y.data_ptr();
  Tensor x, weight;
  if (c.needs(0)) {
    weight = c[weight_];
    args.weight = weight.data_ptr();
    args.weight_row_stride = weight.strides()[0];
    args.weight_col_stride = weight.strides()[1];
    results[0] = empty_contiguous(x_shape, args.rows * args.in_features, args.dtype, device);
    args.grad_input = results[0].data_ptr();
  }
  if (c.needs(1)) {
    x = with_rows(c[x_], x_rows);
    args.input = x.data_ptr();
    args.input_row_stride = x_rows.row_stride;
    args.input_col_stride = x_rows.col_stride;
    results[1] = empty_contiguous({args.out_features, args.in_features}, args.out_features * args.in_features,
                                  args.dtype, device);
    args.grad_weight = results[1].data_ptr();
  }
  if (c.needs(2)) {
    results[2] = empty_contiguous({args.out_features}, args.out_features, args.dtype, device);
    args.grad_bias = results[2].data_ptr();
  }
  launch(current_stream(device), kernels::linear_backward, args);
  return results;
}

/// All dimensions but the last joined.
Tensor as_matrix(const Tensor& x) { return x.dim() == 1 ? unsqueeze(x, 0) : flatten(x, 0, -2); }

[[noreturn, gnu::cold, gnu::noinline]] void throw_linear(const Tensor& x, const Tensor& weight,
                                                         const Tensor& bias) {
  TERN_CHECK(x.dim() > 0, ShapeError, "linear: the input must have at least one dimension, got a 0-d tensor");
  TERN_CHECK(weight.dim() == 2, ShapeError, "linear: weight must be [out, in], got {}",
             to_string(weight.shape()));
  TERN_CHECK(x.size(-1) == weight.size(1), ShapeError,
             "linear: inner sizes differ: input is {}, weight is {} ({} vs {})", to_string(x.shape()),
             to_string(weight.shape()), x.size(-1), weight.size(1));
  check_same_device("linear", {{"input", x}, {"weight", weight}, {"bias", bias}});
  check_factors("linear", x, weight);
  TERN_CHECK(bias.dim() == 1 && bias.size(0) == weight.size(0), ShapeError,
             "linear: bias must be [{}] for a weight of shape {}, got {}", weight.size(0),
             to_string(weight.shape()), to_string(bias.shape()));
  TERN_THROW(DTypeError,
             "linear: expected weight and bias to have the same dtype, but "
             "got: {} and {}: convert one with to(dtype)",
             name(weight.dtype()), name(bias.dtype()));
}

Tensor layer(const Tensor& x_given, const Tensor& weight, const Tensor& bias, bool relu) {
  const DType dtype = weight.dtype();
  const Device device = weight.device();
  const bool has_bias = bias.defined();
  const bool fits = x_given.dim() > 0 && weight.dim() == 2 && x_given.shape().back() == weight.shape()[1] &&
                    x_given.dtype() == dtype && x_given.device() == device && is_computable(dtype) &&
                    dtype != DType::Bool &&
                    (!has_bias || (bias.dim() == 1 && bias.shape()[0] == weight.shape()[0] &&
                                   bias.dtype() == dtype && bias.device() == device));
  if (!fits) [[unlikely]]
    throw_linear(x_given, weight, bias);
  Rows rows;
  const Tensor x = with_rows(x_given, rows);
  const int64_t out_features = weight.shape()[0];
  Shape shape = x.shape();
  shape.back() = out_features;
  const int64_t numel = checked_numel(shape);
  Tensor y = empty_contiguous(std::move(shape), numel, dtype, device);
  MatmulArgs args = plain_product(
      dtype, {rows.count, out_features, weight.shape()[1]}, {x.data_ptr(), rows.row_stride, rows.col_stride},
      {weight.data_ptr(), weight.strides()[1], weight.strides()[0]}, y.data_ptr());
  args.relu = relu;
  if (has_bias) {
    args.addend = bias.data_ptr();
    args.addend_col_stride = bias.strides()[0];
  }
  if (numel != 0) launch(current_stream(device), kernels::matmul, args);
  if (tracks_grad(x, weight, bias))
    record(relu ? "linear_relu" : "linear", y, {x, weight, bias},
           [x_ = save(x), weight_ = save(weight), y_ = relu ? save_output(y) : Saved(), x_shape = x.shape()](
               GradContext& c, const Tensor& g_given) {
             const Tensor relu_output = c[y_];
             if (!is_grad_enabled()) return all_gradients(c, x_, weight_, x_shape, relu_output, g_given);
             const Tensor g = relu_output.defined() ? relu_gradient(g_given, relu_output) : g_given;
             const Tensor rows_of_g = as_matrix(g);
             return std::array<Tensor, 3>{c.needs(0) ? matmul(g, c[weight_]) : Tensor(),
                                          c.needs(1) ? matmul(t(rows_of_g), as_matrix(c[x_])) : Tensor(),
                                          c.needs(2) ? sum(rows_of_g, 0) : Tensor()};
           });
  return y;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(linear, x, weight, bias);
  if (weight.dim() == 1 && !bias.defined()) return matmul(x, weight);
  return layer(x, weight, bias, /*relu=*/false);
}

Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(linear_relu, x, weight, bias);
  return layer(x, weight, bias, /*relu=*/true);
}

}  // namespace tern
