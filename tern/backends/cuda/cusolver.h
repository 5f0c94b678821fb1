// cuSOLVER: factorisations, eigenvalues and singular values of dense matrices; opened when it is first
// needed.
#pragma once

#include <cusolverDn.h>

#include "tern/backends/cuda/library.h"
#include "tern/backends/cuda/stream_handle.h"

namespace tern::cuda_backend {

#define TERN_CUSOLVER_FUNCTIONS(X) \
  X(cusolverDnCreate)              \
  X(cusolverDnSetStream)           \
  X(cusolverDnSpotrf)              \
  X(cusolverDnSpotrf_bufferSize)   \
  X(cusolverDnDpotrf)              \
  X(cusolverDnDpotrf_bufferSize)   \
  X(cusolverDnSgetrf)              \
  X(cusolverDnSgetrf_bufferSize)   \
  X(cusolverDnDgetrf)              \
  X(cusolverDnDgetrf_bufferSize)   \
  X(cusolverDnSgeqrf)              \
  X(cusolverDnSgeqrf_bufferSize)   \
  X(cusolverDnDgeqrf)              \
  X(cusolverDnDgeqrf_bufferSize)   \
  X(cusolverDnSorgqr)              \
  X(cusolverDnSorgqr_bufferSize)   \
  X(cusolverDnDorgqr)              \
  X(cusolverDnDorgqr_bufferSize)   \
  X(cusolverDnSsyevd)              \
  X(cusolverDnSsyevd_bufferSize)   \
  X(cusolverDnDsyevd)              \
  X(cusolverDnDsyevd_bufferSize)   \
  X(cusolverDnSgesvd)              \
  X(cusolverDnSgesvd_bufferSize)   \
  X(cusolverDnDgesvd)              \
  X(cusolverDnDgesvd_bufferSize)

/// cuSOLVER's functions under their own names.
struct Cusolver {
  TERN_CUSOLVER_FUNCTIONS(TERN_LIBRARY_MEMBER)
};

/// Opened with the first call. Throws DeviceError where it is missing.
const Cusolver& cusolver();

/// Throws DeviceError unless cuSOLVER gave success.
void check_cusolver(cusolverStatus_t status, const char* call);

cusolverDnHandle_t make_cusolver_handle(cudaStream_t stream);
using CusolverHandle = StreamHandle<cusolverDnHandle_t, &make_cusolver_handle>;

}  // namespace tern::cuda_backend

/// Calls a function of cuSOLVER and checks what it gives.
#define TERN_SOLVER_CALL(...) \
  ::tern::cuda_backend::check_cusolver(::tern::cuda_backend::cusolver().__VA_ARGS__, #__VA_ARGS__)
