// The binary kernel: sums, products and extremes here, the other operators in the files that it calls.
#include "tern/backends/cuda/kernels/binary.cuh"

namespace tern::cuda_backend {

void binary(const LaunchContext& context, const BinaryArgs& args) {
  switch (args.op) {
    case BinaryOp::Add:
      return dispatch_binary<functors::Add, ResultKind::Same, BinaryOp::Add>(context, args);
    case BinaryOp::Sub:
      return dispatch_binary<functors::Sub, ResultKind::Same, BinaryOp::Sub>(context, args);
    case BinaryOp::Mul:
      return dispatch_binary<functors::Mul, ResultKind::Same, BinaryOp::Mul>(context, args);
    case BinaryOp::Div:
      return dispatch_binary<functors::Div, ResultKind::Float, BinaryOp::Div>(context, args);
    case BinaryOp::Maximum:
      return dispatch_binary<functors::Maximum, ResultKind::Same, BinaryOp::Maximum>(context, args);
    case BinaryOp::Minimum:
      return dispatch_binary<functors::Minimum, ResultKind::Same, BinaryOp::Minimum>(context, args);
    default:
      break;
  }
  if (args.op < BinaryOp::Maximum)
    binary_division(context, args);
  else if (args.op <= BinaryOp::BitwiseXor)
    binary_compare(context, args);
  else if (args.op <= BinaryOp::Lcm)
    binary_integers(context, args);
  else if (args.op <= BinaryOp::Lerp)
    binary_function(context, args);
  else if (args.op <= BinaryOp::StandardGammaGrad)
    binary_special(context, args);
  else
    binary_activation(context, args);
}

}  // namespace tern::cuda_backend
