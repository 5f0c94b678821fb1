// Functions of two integers. Their definitions are in kernels/functors.h.
#include "tern/backends/cuda/kernels/binary.cuh"

namespace tern::cuda_backend {

void binary_integers(const LaunchContext& context, const BinaryArgs& args) {
  switch (args.op) {
#define TERN_CASE(op, text, kind) \
  case BinaryOp::op:              \
    return dispatch_binary<functors::op, ResultKind::kind, BinaryOp::op>(context, args);
    TERN_BINARY_INTEGERS(TERN_CASE)
#undef TERN_CASE
    default:
      break;
  }
}

}  // namespace tern::cuda_backend
