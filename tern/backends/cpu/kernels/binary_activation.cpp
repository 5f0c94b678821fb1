// Activations of two operands and fused gradients of activations. The element functions are in
// kernels/functors_activation.h.
#include "tern/backends/cpu/kernels/binary.h"
#include "tern/kernels/functors_activation.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void binary_activation(const BinaryArgs& args) {
  switch (args.op) {
#define TERN_CASE(op, text, kind) \
  case BinaryOp::op:              \
    return dispatch_binary<functors::op, ResultKind::kind, BinaryOp::op>(args);
    TERN_BINARY_ACTIVATIONS(TERN_CASE)
#undef TERN_CASE
    default:
      break;
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
