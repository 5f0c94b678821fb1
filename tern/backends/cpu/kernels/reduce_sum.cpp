// Sums, the part of the reduce kernel that most programs run.
#include "tern/backends/cpu/kernels/reduce.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void reduce_sum(const ReduceArgs& args) { reduce_arithmetic<wide::Sum>(args); }

}  // namespace tern::cpu::TERN_CPU_VARIANT
