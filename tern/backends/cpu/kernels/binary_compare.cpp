// Comparisons, logical and bitwise operators. The element functions are in kernels/functors.h.
#include "tern/backends/cpu/kernels/binary.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void binary_compare(const BinaryArgs& args) {
  switch (args.op) {
    case BinaryOp::Eq:
      return dispatch_binary<functors::Eq, ResultKind::Bool, BinaryOp::Eq>(args);
    case BinaryOp::Ne:
      return dispatch_binary<functors::Ne, ResultKind::Bool, BinaryOp::Ne>(args);
    case BinaryOp::Lt:
      return dispatch_binary<functors::Lt, ResultKind::Bool, BinaryOp::Lt>(args);
    case BinaryOp::Le:
      return dispatch_binary<functors::Le, ResultKind::Bool, BinaryOp::Le>(args);
    case BinaryOp::Gt:
      return dispatch_binary<functors::Gt, ResultKind::Bool, BinaryOp::Gt>(args);
    case BinaryOp::Ge:
      return dispatch_binary<functors::Ge, ResultKind::Bool, BinaryOp::Ge>(args);
    case BinaryOp::LogicalAnd:
      return dispatch_binary<functors::LogicalAnd, ResultKind::Bool, BinaryOp::LogicalAnd>(args);
    case BinaryOp::LogicalOr:
      return dispatch_binary<functors::LogicalOr, ResultKind::Bool, BinaryOp::LogicalOr>(args);
    case BinaryOp::LogicalXor:
      return dispatch_binary<functors::LogicalXor, ResultKind::Bool, BinaryOp::LogicalXor>(args);
    case BinaryOp::BitwiseAnd:
      return dispatch_binary<functors::BitwiseAnd, ResultKind::Same, BinaryOp::BitwiseAnd>(args);
    case BinaryOp::BitwiseOr:
      return dispatch_binary<functors::BitwiseOr, ResultKind::Same, BinaryOp::BitwiseOr>(args);
    case BinaryOp::BitwiseXor:
      return dispatch_binary<functors::BitwiseXor, ResultKind::Same, BinaryOp::BitwiseXor>(args);
    default:
      break;
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
