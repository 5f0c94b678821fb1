// Special functions of two operands. Their definitions are in kernels/special.h.
#include "tern/backends/cpu/kernels/binary.h"
#include "tern/kernels/functors_special.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void binary_special(const BinaryArgs& args) {
  switch (args.op) {
#define TERN_CASE(op, text, kind) \
  case BinaryOp::op:              \
    return dispatch_binary<functors::op, ResultKind::kind, BinaryOp::op>(args);
    TERN_BINARY_SPECIAL(TERN_CASE)
#undef TERN_CASE
    default:
      break;
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
