// The binary kernel: sends each operator to the file that has its loops.
#include "tern/backends/cpu/kernels/binary.h"

#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void binary(const LaunchContext&, const BinaryArgs& args) {
  if (args.op <= BinaryOp::Minimum)
    binary_arithmetic(args);
  else if (args.op <= BinaryOp::BitwiseXor)
    binary_compare(args);
  else if (args.op <= BinaryOp::Lcm)
    binary_integers(args);
  else if (args.op <= BinaryOp::Lerp)
    binary_function(args);
  else if (args.op <= BinaryOp::StandardGammaGrad)
    binary_special(args);
  else
    binary_activation(args);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
