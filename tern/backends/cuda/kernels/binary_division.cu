// Binary operators that are dear: divisions with a rule for rounding, powers, angles.
#include "tern/backends/cuda/kernels/binary.cuh"

namespace tern::cuda_backend {

void binary_division(const LaunchContext& context, const BinaryArgs& args) {
  switch (args.op) {
    case BinaryOp::DivFloor:
      return dispatch_binary<functors::DivFloor, ResultKind::Same, BinaryOp::DivFloor>(context, args);
    case BinaryOp::DivTrunc:
      return dispatch_binary<functors::DivTrunc, ResultKind::Same, BinaryOp::DivTrunc>(context, args);
    case BinaryOp::Remainder:
      return dispatch_binary<functors::Remainder, ResultKind::Same, BinaryOp::Remainder>(context, args);
    case BinaryOp::Fmod:
      return dispatch_binary<functors::Fmod, ResultKind::Same, BinaryOp::Fmod>(context, args);
    case BinaryOp::Pow:
      if (is_cube(args))
        return dispatch_binary<functors::Cube, ResultKind::Same, BinaryOp::Pow>(context, args);
      return dispatch_binary<functors::Pow, ResultKind::Same, BinaryOp::Pow>(context, args);
    case BinaryOp::Atan2:
      return dispatch_binary<functors::Atan2, ResultKind::Float, BinaryOp::Atan2>(context, args);
    default:
      break;
  }
}

}  // namespace tern::cuda_backend
