// Special functions of two operands. Their definitions are in kernels/special.h.
#include "tern/backends/cpu/kernels/binary.h"
#include "tern/kernels/functors_special.h"

namespace tern::cpu::TERN_CPU_VARIANT {

TERN_BINARY_FAMILY(binary_special, TERN_BINARY_SPECIAL)

}  // namespace tern::cpu::TERN_CPU_VARIANT
