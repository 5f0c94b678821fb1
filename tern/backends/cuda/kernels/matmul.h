// The parts of the matrix product: cuBLASLt in matmul.cpp, a plain kernel for everything else in
// matmul_plain.cu.
#pragma once

#include "tern/device/backend.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/pointwise.h"

namespace tern::cuda_backend {

/// Every dtype and every stride, at no particular speed: integers, and products of no columns.
void matmul_plain(const LaunchContext& context, const MatmulArgs& args);

// A kernel of the table that others use as well.
void copy(const LaunchContext& context, const CopyArgs& args);

}  // namespace tern::cuda_backend
