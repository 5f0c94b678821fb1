// Activations of two operands and fused gradients of activations. The element functions are in
// kernels/functors_activation.h.
#include "tern/backends/cuda/kernels/binary.cuh"
#include "tern/kernels/functors_activation.h"

namespace tern::cuda_backend {

TERN_BINARY_FAMILY(binary_activation, TERN_BINARY_ACTIVATIONS)

}  // namespace tern::cuda_backend
