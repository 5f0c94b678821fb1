// Functions of two integers. Their definitions are in kernels/functors.h.
#include "tern/backends/cuda/kernels/binary.cuh"

namespace tern::cuda_backend {

TERN_BINARY_FAMILY(binary_integers, TERN_BINARY_INTEGERS)

}  // namespace tern::cuda_backend
