// Unary operators of floats.
#include "tern/backends/cuda/kernels/unary.cuh"

namespace tern::cuda_backend {

void unary_float(const LaunchContext& context, const UnaryArgs& args) {
  switch (args.op) {
#define TERN_CASE_Same(op)
#define TERN_CASE_Bool(op)
#define TERN_CASE_Float(op) \
  case UnaryOp::op:         \
    return dispatch_unary<functors::op, ResultKind::Float, UnaryOp::op>(context, args);
#define TERN_CASE(op, text, kind) TERN_CASE_##kind(op)
    TERN_UNARY_OPS(TERN_CASE)
#undef TERN_CASE
#undef TERN_CASE_Float
#undef TERN_CASE_Bool
#undef TERN_CASE_Same
    default:
      break;
  }
}

}  // namespace tern::cuda_backend
