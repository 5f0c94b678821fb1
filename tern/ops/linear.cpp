// Fully connected layers with their gradients, one launch each way.
#include "tern/ops/linear.h"

#include "tern/ops/activation.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
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

/// What the gradients of a layer are made of; tensors that no wanted one needs may be undefined.
struct LayerGradients {
  bool input, weight, bias;  ///< which are wanted
  Tensor x;                  ///< the input: for the weight's
  Tensor w;                  ///< the weight: for the input's
  Tensor relu_output;        ///< what relu made of the output, or undefined
  Tensor gelu_input;         ///< what gelu made the input of, whose gradient is wanted then; or undefined
};

/// All gradients as one launch, nothing recorded.
std::array<Tensor, 3> all_gradients(const LayerGradients& layer, const Shape& x_shape, const Tensor& grad) {
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
  if (layer.relu_output.defined()) args.relu_output = layer.relu_output.data_ptr();
  if (layer.gelu_input.defined()) args.gelu_input = layer.gelu_input.data_ptr();
  Tensor x;
  if (layer.input) {
    args.weight = layer.w.data_ptr();
    args.weight_row_stride = layer.w.strides()[0];
    args.weight_col_stride = layer.w.strides()[1];
    results[0] = empty_contiguous(x_shape, args.rows * args.in_features, args.dtype, device);
    args.grad_input = results[0].data_ptr();
  }
  if (layer.weight) {
    x = with_rows(layer.x, x_rows);
    args.input = x.data_ptr();
    args.input_row_stride = x_rows.row_stride;
    args.input_col_stride = x_rows.col_stride;
    results[1] = empty_contiguous({args.out_features, args.in_features}, args.out_features * args.in_features,
                                  args.dtype, device);
    args.grad_weight = results[1].data_ptr();
  }
  if (layer.bias) {
    results[2] = empty_contiguous({args.out_features}, args.out_features, args.dtype, device);
    args.grad_bias = results[2].data_ptr();
  }
  launch(current_stream(device), kernels::linear_backward, args);
  return results;
}

/// All dimensions but the last joined.
Tensor as_rows(const Tensor& x) { return x.dim() == 1 ? unsqueeze(x, 0) : flatten(x, 0, -2); }

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

bool fits(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const DType dtype = weight.dtype();
  const Device device = weight.device();
  return x.dim() > 0 && weight.dim() == 2 && x.shape().back() == weight.shape()[1] && x.dtype() == dtype &&
         x.device() == device && is_computable(dtype) && dtype != DType::Bool &&
         (!bias.defined() || (bias.dim() == 1 && bias.shape()[0] == weight.shape()[0] &&
                              bias.dtype() == dtype && bias.device() == device));
}

/// The product of a layer, nothing recorded. `gelu_input`, if not null, becomes what goes into an epilogue
/// Gelu.
Tensor forward(const Tensor& x_given, const Tensor& weight, const Tensor& bias, MatmulEpilogue epilogue,
               Tensor* gelu_input = nullptr) {
  if (!fits(x_given, weight, bias)) [[unlikely]]
    throw_linear(x_given, weight, bias);
  const DType dtype = weight.dtype();
  const Device device = weight.device();
  Rows rows;
  const Tensor x = with_rows(x_given, rows);
  const int64_t out_features = weight.shape()[0];
  Shape shape = x.shape();
  shape.back() = out_features;
  const int64_t numel = checked_numel(shape);
  if (gelu_input != nullptr) *gelu_input = empty_contiguous(shape, numel, dtype, device);
  Tensor y = empty_contiguous(std::move(shape), numel, dtype, device);
  MatmulArgs args = plain_product(
      dtype, {rows.count, out_features, weight.shape()[1]}, {x.data_ptr(), rows.row_stride, rows.col_stride},
      {weight.data_ptr(), weight.strides()[1], weight.strides()[0]}, y.data_ptr());
  args.epilogue = epilogue;
  if (gelu_input != nullptr) args.gelu_input = gelu_input->data_ptr();
  if (bias.defined()) {
    args.addend = bias.data_ptr();
    args.addend_col_stride = bias.strides()[0];
  }
  if (numel != 0) launch(current_stream(device), kernels::matmul, args);
  return y;
}

/// The gradients of a layer as operators. `x` and `weight` are read where the others' are wanted.
std::array<Tensor, 3> recorded_gradients(const LayerGradients& layer, const Tensor& g) {
  const Tensor rows_of_g = as_rows(g);
  return {layer.input ? matmul(g, layer.w) : Tensor(),
          layer.weight ? matmul(t(rows_of_g), as_rows(layer.x)) : Tensor(),
          layer.bias ? sum(rows_of_g, 0) : Tensor()};
}

Tensor layer(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu) {
  const Tensor y = forward(x, weight, bias, relu ? MatmulEpilogue::Relu : MatmulEpilogue::None);
  if (tracks_grad(x, weight, bias))
    record(relu ? "linear_relu" : "linear", y, {x, weight, bias},
           [x_ = save(x), weight_ = save(weight), y_ = relu ? save_output(y) : Saved(), x_shape = x.shape()](
               GradContext& c, const Tensor& g) {
             const LayerGradients wanted{c.needs(0),
                                         c.needs(1),
                                         c.needs(2),
                                         c.needs(1) ? c[x_] : Tensor(),
                                         c.needs(0) ? c[weight_] : Tensor(),
                                         c[y_],
                                         {}};
             if (!is_grad_enabled()) return all_gradients(wanted, x_shape, g);
             return recorded_gradients(
                 wanted, wanted.relu_output.defined() ? relu_gradient(g, wanted.relu_output) : g);
           });
  return y;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(linear, x, weight, bias);
  if (weight.dim() == 1 && !bias.defined()) return matmul(x, weight);
  if (is_complex(weight.dtype())) [[unlikely]] {
    const Tensor y = with_context("linear", [&] { return matmul(x, t(weight)); });
    return bias.defined() ? add(y, bias) : y;
  }
  return layer(x, weight, bias, /*relu=*/false);
}

Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(linear_relu, x, weight, bias);
  return layer(x, weight, bias, /*relu=*/true);
}

Tensor linear_gelu_linear(const Tensor& x, const Tensor& weight1, const Tensor& bias1, const Tensor& weight2,
                          const Tensor& bias2) {
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(linear_gelu_linear, x, weight1, bias1, weight2, bias2);
  if (!is_floating_point(weight1.dtype()))
    return linear(gelu(linear(x, weight1, bias1), "tanh"), weight2, bias2);
  const bool tracked = tracks_grad(x, weight1, bias1, weight2, bias2);
  Tensor gelu_input;
  const Tensor hidden = forward(x, weight1, bias1, MatmulEpilogue::Gelu, tracked ? &gelu_input : nullptr);
  const Tensor y = forward(hidden, weight2, bias2, MatmulEpilogue::None);
  if (!tracked) return y;
  record("linear_gelu_linear", y, {x, weight1, bias1, weight2, bias2},
         [x_ = save(x), weight1_ = save(weight1), bias1_ = save(bias1), weight2_ = save(weight2),
          hidden_ = save(hidden), gelu_input_ = save(gelu_input),
          x_shape = x.shape()](GradContext& c, const Tensor& g) {
           const bool before = c.needs(0) || c.needs(1) || c.needs(2);
           LayerGradients first{c.needs(0), c.needs(1), c.needs(2), {}, {}, {}, {}};
           LayerGradients second{before, c.needs(3), c.needs(4), {}, {}, {}, {}};
           if (first.weight) first.x = c[x_];
           if (first.input) first.w = c[weight1_];
           if (second.input) second.w = c[weight2_];
           std::array<Tensor, 3> of_first, of_second;
           if (!is_grad_enabled()) {
             second.x = c[hidden_];
             second.gelu_input = c[gelu_input_];
             of_second = all_gradients(second, second.x.shape(), g);
             if (before) of_first = all_gradients(first, x_shape, of_second[0]);
           } else {  // what lies between is computed again, with its history
             const Tensor input = linear(c[x_], c[weight1_], c[bias1_]);
             second.x = gelu(input, "tanh");
             of_second = recorded_gradients(second, g);
             if (before) of_first = recorded_gradients(first, gelu_tanh_gradient(of_second[0], input));
           }
           return std::array<Tensor, 5>{of_first[0], of_first[1], of_first[2], of_second[1], of_second[2]};
         });
  return y;
}

Tensor bilinear(const Tensor& x1, const Tensor& x2, const Tensor& weight, const Tensor& bias) {
  if (autocasts(x1)) [[unlikely]]
    return autocast_widest(bilinear, x1, x2, weight, bias);
  const char* op = "bilinear";
  check_same_device(op, {{"input1", x1}, {"input2", x2}, {"weight", weight}, {"bias", bias}});
  TERN_CHECK(x1.dim() >= 1 && x2.dim() == x1.dim(), ShapeError,
             "{}: input dimensions do not match: got {} and {}", op, x1.dim(), x2.dim());
  for (int64_t d = 0; d < x1.dim() - 1; ++d)
    TERN_CHECK(x1.size(d) == x2.size(d), ShapeError,
               "{}: input batch dimensions do not match at dim {}: got {} and {}", op, d, x1.size(d),
               x2.size(d));
  TERN_CHECK(weight.dim() == 3, ShapeError,
             "{}: weight must be [outputs, size of input1, size of input2], got {}", op,
             to_string(weight.shape()));
  const int64_t outputs = weight.size(0), left = weight.size(1), right = weight.size(2);
  TERN_CHECK(x1.size(-1) == left && x2.size(-1) == right, ShapeError,
             "{}: the last sizes of the inputs must be those of the weight {}, got {} and {}", op,
             to_string(weight.shape()), x1.size(-1), x2.size(-1));
  TERN_CHECK(!bias.defined() || bias.shape() == Shape({outputs}), ShapeError,
             "{}: bias size does not match weight size: got {} but expected [{}]", op,
             to_string(bias.shape()), outputs);
  Shape shape = x1.shape();
  shape[shape.size() - 1] = outputs;
  const int64_t rows = checked_numel(shape) == 0 ? 0 : checked_numel(shape) / outputs;
  const Tensor by_input = reshape(permute(weight, {1, 0, 2}), {left, outputs * right});
  const Tensor parts = reshape(matmul(reshape(x1, {rows, left}), by_input), {rows, outputs, right});
  const Tensor y = reshape(matmul(parts, reshape(x2, {rows, right, 1})), shape);
  return bias.defined() ? add(y, bias) : y;
}

}  // namespace tern
