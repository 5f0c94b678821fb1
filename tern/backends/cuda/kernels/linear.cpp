// The gradients of a fully connected layer: one kernel for small ones, else products and sums.
#include "tern/kernels/linear.h"

#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/kernels/matmul.h"

namespace tern::cuda_backend {

void linear_backward(const LaunchContext& context, const LinearBackwardArgs& given) {
  const int64_t rows = given.rows, in = given.in_features, out = given.out_features;
  if (given.gelu_input == nullptr && matmul_suits_small(given.dtype, rows, in, out) &&
      matmul_suits_small(given.dtype, out, in, rows))
    return linear_backward_small(context, given);
  LinearBackwardArgs args = given;
  Storage masked;
  if (args.relu_output != nullptr && rows * out > 0) {
    masked = workspace(context, static_cast<size_t>(rows * out) * itemsize(args.dtype));
    binary(context, relu_mask(args, masked->data()));
    args.grad_output = masked->data();
    args.grad_row_stride = out;
    args.grad_col_stride = 1;
  }
  if (args.grad_input != nullptr) matmul(context, input_product(args));
  if (args.grad_weight != nullptr) {
    const MatmulArgs product = weight_product(args);
    if (args.grad_bias != nullptr && matmul_with_row_sums(context, product, args.grad_bias)) return;
    matmul(context, product);
  }
  if (args.grad_bias != nullptr) reduce(context, bias_sums(args));
}

}  // namespace tern::cuda_backend
