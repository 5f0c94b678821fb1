// Products of elements.
#include "tern/backends/cpu/kernels/reduce.h"

namespace tern::cpu::TERN_CPU_VARIANT {

void reduce_prod(const ReduceArgs& args) { reduce_arithmetic<wide::Prod>(args); }

}  // namespace tern::cpu::TERN_CPU_VARIANT
