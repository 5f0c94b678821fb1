// The table of the CUDA kernels.
#pragma once

#include "tern/kernels/list.h"

namespace tern::cuda_backend {

extern const KernelFn kernel_table[kernels::kCount];

/// The names of all kernels of the table, then null.
const char* const* kernel_names();

}  // namespace tern::cuda_backend
