// Arguments of the gradients of a fully connected layer, shared by every backend. The layer itself is a
// product with an addend (kernels/matmul.h); shape rules are in tern/ops/linear.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/pointwise.h"
#include "tern/kernels/reduce.h"

namespace tern {

/// The gradients that are wanted (not null) of y = x W^T + b, or of relu of that: with g = grad_output,
/// grad_input = g W, grad_weight = g^T x, grad_bias = the sums of the columns of g. Floating dtypes only.
/// What is read may have any strides, in elements; what is written is contiguous.
struct LinearBackwardArgs {
  DType dtype{};

  std::int64_t rows = 0;          ///< of x and y
  std::int64_t in_features = 0;   ///< columns of x and W
  std::int64_t out_features = 0;  ///< columns of y, rows of W

  const void* grad_output = nullptr;  ///< [rows, out_features]
  std::int64_t grad_row_stride = 0;
  std::int64_t grad_col_stride = 0;

  /// [rows, out_features], contiguous, what relu gave: where it is 0 or less, grad_output counts as 0; or
  /// null
  const void* relu_output = nullptr;
  /// [rows, in_features], contiguous, where x is the gelu (by tanh) of this: grad_input is its gradient; or
  /// null
  void* gelu_input = nullptr;

  const void* input = nullptr;  ///< x: [rows, in_features], read for grad_weight
  std::int64_t input_row_stride = 0;
  std::int64_t input_col_stride = 0;

  const void* weight = nullptr;  ///< W: [out_features, in_features], read for grad_input
  std::int64_t weight_row_stride = 0;
  std::int64_t weight_col_stride = 0;

  void* grad_input = nullptr;   ///< [rows, in_features]; or null
  void* grad_weight = nullptr;  ///< [out_features, in_features]; or null
  void* grad_bias = nullptr;    ///< [out_features]; or null

  double flops() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(in_features) *
           static_cast<double>(out_features) *
           ((grad_input != nullptr ? 1 : 0) + (grad_weight != nullptr ? 1 : 0));
  }
};

// The same as launches of other kernels, for backends and shapes that have no kernel of their own.

/// The gradient of what went into relu, contiguous, to `masked`.
inline BinaryArgs relu_mask(const LinearBackwardArgs& args, void* masked) {
  const int64_t shape[] = {args.rows, args.out_features};
  const int64_t strides[] = {args.grad_row_stride, args.grad_col_stride};
  return relu_mask(args.dtype, masked, args.grad_output, args.relu_output, IntArrayRef(shape, 2), strides);
}

inline MatmulArgs input_product(const LinearBackwardArgs& args) {
  MatmulArgs product =
      plain_product(args.dtype, {args.rows, args.in_features, args.out_features},
                    {args.grad_output, args.grad_row_stride, args.grad_col_stride},
                    {args.weight, args.weight_row_stride, args.weight_col_stride}, args.grad_input);
  if (args.gelu_input != nullptr) {
    product.epilogue = MatmulEpilogue::GeluGradient;
    product.gelu_input = args.gelu_input;
  }
  return product;
}

inline MatmulArgs weight_product(const LinearBackwardArgs& args) {
  return plain_product(args.dtype, {args.out_features, args.in_features, args.rows},
                       {args.grad_output, args.grad_col_stride, args.grad_row_stride},
                       {args.input, args.input_row_stride, args.input_col_stride}, args.grad_weight);
}

inline ReduceArgs bias_sums(const LinearBackwardArgs& args) {
  ReduceArgs sums{.op = ReduceOp::Sum,
                  .dtype = args.dtype,
                  .param = 1,
                  .out = args.grad_bias,
                  .in = args.grad_output,
                  .kept = {},
                  .reduced = {}};
  set_flat(sums.kept, args.out_features);
  sums.kept.strides[0][0] = args.grad_col_stride;
  set_flat(sums.reduced, args.rows);
  sums.reduced.strides[0][0] = args.grad_row_stride;
  return sums;
}

/// Of a product whose epilogue is Gelu or its gradient: what comes first, without it,
inline MatmulArgs without_gelu(const MatmulArgs& args) {
  MatmulArgs product = args;
  product.epilogue = MatmulEpilogue::None;
  if (args.epilogue == MatmulEpilogue::Gelu && args.gelu_input != nullptr) product.out = args.gelu_input;
  return product;
}
/// then gelu,
inline UnaryArgs gelu_of(const MatmulArgs& args) {
  UnaryArgs gelu{};
  gelu.op = UnaryOp::GeluTanh;
  gelu.dtype = args.dtype;
  gelu.out = args.out;
  gelu.in = args.gelu_input != nullptr ? args.gelu_input : args.out;
  set_flat(gelu.geometry, args.m * args.n);
  return gelu;
}
/// or its gradient.
inline BinaryArgs gelu_gradient_of(const MatmulArgs& args) {
  BinaryArgs gradient{};
  gradient.op = BinaryOp::GeluTanhBackward;
  gradient.dtype = args.dtype;
  gradient.out = args.out;
  gradient.a = args.out;
  gradient.b = args.gelu_input;
  set_flat(gradient.geometry, args.m * args.n);
  return gradient;
}

}  // namespace tern

/// X(kernel, argument struct) for kernels/list.h.
#define TERN_LINEAR_KERNELS(X) X(linear_backward, LinearBackwardArgs)
