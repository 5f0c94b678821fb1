// The gradients of a fully connected layer, by the kernels of products and sums.
#include "tern/kernels/linear.h"

#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/device/launch.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void binary(const LaunchContext& context, const BinaryArgs& args);
void matmul(const LaunchContext& context, const MatmulArgs& args, bool tiles);
void reduce(const LaunchContext& context, const ReduceArgs& args);

namespace {

void backward(const LaunchContext& context, const LinearBackwardArgs& given, bool tiles) {
  LinearBackwardArgs args = given;
  const bool masks = args.relu_output != nullptr && args.rows > 0;
  const Scratch<char> masked(
      masks ? args.rows * args.out_features * static_cast<int64_t>(itemsize(args.dtype)) : 0);
  if (masks) {
    binary(context, relu_mask(args, masked.get()));
    args.grad_output = masked.get();
    args.grad_row_stride = args.out_features;
    args.grad_col_stride = 1;
  }
  if (args.grad_input != nullptr) matmul(context, input_product(args), tiles);
  if (args.grad_weight != nullptr) matmul(context, weight_product(args), tiles);
  if (args.grad_bias != nullptr) reduce(context, bias_sums(args));
}

}  // namespace

void linear_backward(const LaunchContext& context, const LinearBackwardArgs& args) {
  backward(context, args, /*tiles=*/false);
}
void linear_backward_tiles(const LaunchContext& context, const LinearBackwardArgs& args) {
  backward(context, args, /*tiles=*/true);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
