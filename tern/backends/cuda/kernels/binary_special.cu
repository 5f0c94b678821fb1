// Special functions of two operands. Their definitions are in kernels/special.h.
#include "tern/backends/cuda/kernels/binary.cuh"
#include "tern/kernels/functors_special.h"

namespace tern::cuda_backend {

TERN_BINARY_FAMILY(binary_special, TERN_BINARY_SPECIAL)

}  // namespace tern::cuda_backend
