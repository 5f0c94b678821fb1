// The reduce kernel: which part computes what. The loops are in reduce_loops.h.
#include "tern/backends/cpu/kernels/reduce.h"

#include "tern/device/backend.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void reduce(const LaunchContext&, const ReduceArgs& args) {
  switch (args.op) {
    case ReduceOp::Sum:
      return reduce_sum(args);
    case ReduceOp::Prod:
      return reduce_prod(args);
    case ReduceOp::Max:
    case ReduceOp::Min:
      return reduce_extreme(args);
    case ReduceOp::Any:
    case ReduceOp::All:
    case ReduceOp::CountNonzero:
      return reduce_logic(args);
    case ReduceOp::NanSum:
    case ReduceOp::Norm1:
    case ReduceOp::Norm2:
    case ReduceOp::NormInf:
    case ReduceOp::NormNegInf:
    case ReduceOp::NormP:
      return reduce_norm(args);
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
