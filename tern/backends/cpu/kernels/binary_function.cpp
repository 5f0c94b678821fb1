// Elementary functions of two operands. The element functions are in kernels/functors.h.
#include "tern/backends/cpu/kernels/binary.h"

namespace tern::cpu::TERN_CPU_VARIANT {

TERN_BINARY_FAMILY(binary_function, TERN_BINARY_FUNCTIONS)

}  // namespace tern::cpu::TERN_CPU_VARIANT
