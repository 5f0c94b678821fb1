// Fused forms of gradients. The element functions are in kernels/functors.h.
#include "tern/backends/cpu/kernels/binary.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void binary_gradient(const BinaryArgs& args) {
  switch (args.op) {
    case BinaryOp::ReluBackward:
      return dispatch_binary<functors::ReluBackward, ResultKind::Same, BinaryOp::ReluBackward>(args);
    case BinaryOp::SigmoidBackward:
      return dispatch_binary<functors::SigmoidBackward, ResultKind::Float, BinaryOp::SigmoidBackward>(args);
    case BinaryOp::TanhBackward:
      return dispatch_binary<functors::TanhBackward, ResultKind::Float, BinaryOp::TanhBackward>(args);
    case BinaryOp::SiluBackward:
      return dispatch_binary<functors::SiluBackward, ResultKind::Float, BinaryOp::SiluBackward>(args);
    case BinaryOp::GeluBackward:
      return dispatch_binary<functors::GeluBackward, ResultKind::Float, BinaryOp::GeluBackward>(args);
    case BinaryOp::GeluTanhBackward:
      return dispatch_binary<functors::GeluTanhBackward, ResultKind::Float, BinaryOp::GeluTanhBackward>(args);
    case BinaryOp::SoftplusBackward:
      return dispatch_binary<functors::SoftplusBackward, ResultKind::Float, BinaryOp::SoftplusBackward>(args);
    case BinaryOp::EluBackward:
      return dispatch_binary<functors::EluBackward, ResultKind::Float, BinaryOp::EluBackward>(args);
    case BinaryOp::LeakyReluBackward:
      return dispatch_binary<functors::LeakyReluBackward, ResultKind::Float, BinaryOp::LeakyReluBackward>(
          args);
    default:
      break;
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
