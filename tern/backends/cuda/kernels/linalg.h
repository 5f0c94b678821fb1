// The kernels of linear algebra that are the backend's own (linalg.cu), for linalg.cpp, which asks cuSOLVER
// for the rest.
#pragma once

#include "tern/kernels/linalg.h"

#include "tern/device/launch.h"

namespace tern::cuda_backend {

/// Matrices up to this order are factored a warp for each.
inline constexpr int64_t kSmallOrder = 32;

void cholesky_small(const LaunchContext& context, const CholeskyArgs& args);
void lu_factor_small(const LaunchContext& context, const LuFactorArgs& args);
/// Zeros above the diagonals of row-major matrices.
void clear_above(const LaunchContext& context, const CholeskyArgs& args);
/// x = a^-1 @ x for args.n <= kSmallOrder.
void triangular_solve_small(const LaunchContext& context, const TriangularSolveArgs& args);
/// Where values [batch, n] hold NaN, info becomes n unless it is something already.
void report_nan(const LaunchContext& context, DType dtype, const void* values, int64_t batch, int64_t n,
                int32_t* info);

}  // namespace tern::cuda_backend
