// Functions of two integers. Their definitions are in kernels/functors.h.
#include "tern/backends/cpu/kernels/binary.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void binary_integers(const BinaryArgs& args) {
  switch (args.op) {
#define TERN_CASE(op, text, kind) \
  case BinaryOp::op:              \
    return dispatch_binary<functors::op, ResultKind::kind, BinaryOp::op>(args);
    TERN_BINARY_INTEGERS(TERN_CASE)
#undef TERN_CASE
    default:
      break;
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
