// Special functions of two operands. Their definitions are in kernels/special.h.
#include "tern/backends/cuda/kernels/binary.cuh"
#include "tern/kernels/functors_special.h"

namespace tern::cuda_backend {

void binary_special(const LaunchContext& context, const BinaryArgs& args) {
  switch (args.op) {
#define TERN_CASE(op, text, kind) \
  case BinaryOp::op:              \
    return dispatch_binary<functors::op, ResultKind::kind, BinaryOp::op>(context, args);
    TERN_BINARY_SPECIAL(TERN_CASE)
#undef TERN_CASE
    default:
      break;
  }
}

}  // namespace tern::cuda_backend
