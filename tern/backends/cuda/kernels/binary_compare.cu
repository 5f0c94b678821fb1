// Comparisons, logical and bitwise operators.
#include "tern/backends/cuda/kernels/binary.cuh"

namespace tern::cuda_backend {

void binary_compare(const LaunchContext& context, const BinaryArgs& args) {
  switch (args.op) {
    case BinaryOp::Eq:
      return dispatch_binary<functors::Eq, ResultKind::Bool, BinaryOp::Eq>(context, args);
    case BinaryOp::Ne:
      return dispatch_binary<functors::Ne, ResultKind::Bool, BinaryOp::Ne>(context, args);
    case BinaryOp::Lt:
      return dispatch_binary<functors::Lt, ResultKind::Bool, BinaryOp::Lt>(context, args);
    case BinaryOp::Le:
      return dispatch_binary<functors::Le, ResultKind::Bool, BinaryOp::Le>(context, args);
    case BinaryOp::Gt:
      return dispatch_binary<functors::Gt, ResultKind::Bool, BinaryOp::Gt>(context, args);
    case BinaryOp::Ge:
      return dispatch_binary<functors::Ge, ResultKind::Bool, BinaryOp::Ge>(context, args);
    case BinaryOp::LogicalAnd:
      return dispatch_binary<functors::LogicalAnd, ResultKind::Bool, BinaryOp::LogicalAnd>(context, args);
    case BinaryOp::LogicalOr:
      return dispatch_binary<functors::LogicalOr, ResultKind::Bool, BinaryOp::LogicalOr>(context, args);
    case BinaryOp::LogicalXor:
      return dispatch_binary<functors::LogicalXor, ResultKind::Bool, BinaryOp::LogicalXor>(context, args);
    case BinaryOp::BitwiseAnd:
      return dispatch_binary<functors::BitwiseAnd, ResultKind::Same, BinaryOp::BitwiseAnd>(context, args);
    case BinaryOp::BitwiseOr:
      return dispatch_binary<functors::BitwiseOr, ResultKind::Same, BinaryOp::BitwiseOr>(context, args);
    case BinaryOp::BitwiseXor:
      return dispatch_binary<functors::BitwiseXor, ResultKind::Same, BinaryOp::BitwiseXor>(context, args);
    default:
      break;
  }
}

}  // namespace tern::cuda_backend
