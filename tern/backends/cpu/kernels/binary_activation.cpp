// Activations of two operands and fused gradients of activations. The element functions are in
// kernels/functors_activation.h.
#include "tern/backends/cpu/kernels/binary.h"
#include "tern/kernels/functors_activation.h"

namespace tern::cpu::TERN_CPU_VARIANT {

TERN_BINARY_FAMILY(binary_activation, TERN_BINARY_ACTIVATIONS)

}  // namespace tern::cpu::TERN_CPU_VARIANT
