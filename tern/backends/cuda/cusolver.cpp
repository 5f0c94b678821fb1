// Opening of cuSOLVER, its handles and its errors.
#include "tern/backends/cuda/cusolver.h"

#include "tern/backends/cuda/check.h"

namespace tern::cuda_backend {
namespace {

const char* status_text(cusolverStatus_t status) {
  switch (status) {
    case CUSOLVER_STATUS_NOT_INITIALIZED:
      return "it is not initialized";
    case CUSOLVER_STATUS_ALLOC_FAILED:
      return "no memory is left: free tensors, or call cuda::empty_cache()";
    case CUSOLVER_STATUS_INVALID_VALUE:
      return "a value is invalid";
    case CUSOLVER_STATUS_ARCH_MISMATCH:
      return "this GPU has not what it needs";
    case CUSOLVER_STATUS_EXECUTION_FAILED:
      return "the execution failed";
    case CUSOLVER_STATUS_INTERNAL_ERROR:
      return "an internal error";
    case CUSOLVER_STATUS_NOT_SUPPORTED:
      return "it is not supported";
    default:
      return "see cusolver_common.h for the status";
  }
}

}  // namespace

const Cusolver& cusolver() {
  static const Cusolver functions = [] {
    static const Library library("cuSOLVER", "factorisations and eigenvalues",
                                 {TERN_SONAME("libcusolver", CUSOLVER_VER_MAJOR), "libcusolver.so"});
    Cusolver found{};
    TERN_CUSOLVER_FUNCTIONS(TERN_LIBRARY_FIND)
    return found;
  }();
  return functions;
}

void check_cusolver(cusolverStatus_t status, const char* call) {
  if (status != CUSOLVER_STATUS_SUCCESS) [[unlikely]]
    throw_library_error("cuSOLVER", call, status_text(status));
}

cusolverDnHandle_t make_cusolver_handle(cudaStream_t stream) {
  cusolverDnHandle_t handle = nullptr;
  TERN_SOLVER_CALL(cusolverDnCreate(&handle));
  TERN_SOLVER_CALL(cusolverDnSetStream(handle, stream));
  return handle;
}

}  // namespace tern::cuda_backend
