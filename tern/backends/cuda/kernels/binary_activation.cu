// Activations of two operands and fused gradients of activations. The element functions are in
// kernels/functors_activation.h.
#include "tern/backends/cuda/kernels/binary.cuh"
#include "tern/kernels/functors_activation.h"

namespace tern::cuda_backend {

void binary_activation(const LaunchContext& context, const BinaryArgs& args) {
  switch (args.op) {
#define TERN_CASE(op, text, kind) \
  case BinaryOp::op:              \
    return dispatch_binary<functors::op, ResultKind::kind, BinaryOp::op>(context, args);
    TERN_BINARY_ACTIVATIONS(TERN_CASE)
#undef TERN_CASE
    default:
      break;
  }
}

}  // namespace tern::cuda_backend
