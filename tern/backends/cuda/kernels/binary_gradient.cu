// Gradients that would take several passes as formulas.
#include "tern/backends/cuda/kernels/binary.cuh"

namespace tern::cuda_backend {

void binary_gradient(const LaunchContext& context, const BinaryArgs& args) {
  switch (args.op) {
    case BinaryOp::ReluBackward:
      return dispatch_binary<functors::ReluBackward, ResultKind::Same, BinaryOp::ReluBackward>(context, args);
    case BinaryOp::SigmoidBackward:
      return dispatch_binary<functors::SigmoidBackward, ResultKind::Float, BinaryOp::SigmoidBackward>(context,
                                                                                                      args);
    case BinaryOp::TanhBackward:
      return dispatch_binary<functors::TanhBackward, ResultKind::Float, BinaryOp::TanhBackward>(context,
                                                                                                args);
    case BinaryOp::SiluBackward:
      return dispatch_binary<functors::SiluBackward, ResultKind::Float, BinaryOp::SiluBackward>(context,
                                                                                                args);
    case BinaryOp::GeluBackward:
      return dispatch_binary<functors::GeluBackward, ResultKind::Float, BinaryOp::GeluBackward>(context,
                                                                                                args);
    case BinaryOp::GeluTanhBackward:
      return dispatch_binary<functors::GeluTanhBackward, ResultKind::Float, BinaryOp::GeluTanhBackward>(
          context, args);
    case BinaryOp::SoftplusBackward:
      return dispatch_binary<functors::SoftplusBackward, ResultKind::Float, BinaryOp::SoftplusBackward>(
          context, args);
    case BinaryOp::EluBackward:
      return dispatch_binary<functors::EluBackward, ResultKind::Float, BinaryOp::EluBackward>(context, args);
    case BinaryOp::LeakyReluBackward:
      return dispatch_binary<functors::LeakyReluBackward, ResultKind::Float, BinaryOp::LeakyReluBackward>(
          context, args);
    default:
      break;
  }
}

}  // namespace tern::cuda_backend
