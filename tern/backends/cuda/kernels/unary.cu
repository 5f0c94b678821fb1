// The unary kernel: operators whose result has the operand's dtype or is bool. Those of floats alone are in
// unary_float.cu.
#include "tern/backends/cuda/kernels/unary.cuh"

namespace tern::cuda_backend {

void unary(const LaunchContext& context, const UnaryArgs& args) {
  switch (args.op) {
#define TERN_CASE_Same(op) \
  case UnaryOp::op:        \
    return dispatch_unary<functors::op, ResultKind::Same, UnaryOp::op>(context, args);
#define TERN_CASE_Bool(op) \
  case UnaryOp::op:        \
    return dispatch_unary<functors::op, ResultKind::Bool, UnaryOp::op>(context, args);
#define TERN_CASE_Float(op)
#define TERN_CASE(op, text, kind) TERN_CASE_##kind(op)
    TERN_UNARY_OPS(TERN_CASE)
#undef TERN_CASE
#undef TERN_CASE_Float
#undef TERN_CASE_Bool
#undef TERN_CASE_Same
    default:
      return unary_float(context, args);
  }
}

}  // namespace tern::cuda_backend
