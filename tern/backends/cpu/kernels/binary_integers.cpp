// Functions of two integers. Their definitions are in kernels/functors.h.
#include "tern/backends/cpu/kernels/binary.h"

namespace tern::cpu::TERN_CPU_VARIANT {

TERN_BINARY_FAMILY(binary_integers, TERN_BINARY_INTEGERS)

}  // namespace tern::cpu::TERN_CPU_VARIANT
