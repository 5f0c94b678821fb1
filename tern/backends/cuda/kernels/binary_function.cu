// Elementary functions of two operands. The element functions are in kernels/functors.h.
#include "tern/backends/cuda/kernels/binary.cuh"

namespace tern::cuda_backend {

TERN_BINARY_FAMILY(binary_function, TERN_BINARY_FUNCTIONS)

}  // namespace tern::cuda_backend
