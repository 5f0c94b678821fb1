// Opening of cuSOLVER, its handles and its errors.
#include "tern/backends/cuda/cusolver.h"

#include <unordered_map>

#include "tern/backends/cuda/check.h"
#include "tern/backends/cuda/device.h"

namespace tern::cuda_backend {
namespace {

std::mutex& cusolver_mutex() {
  static auto* mutex = new std::mutex;  // CUDA may be gone before static objects are
  return *mutex;
}

/// Of the stream alone, as cuDNN's: its memory is used in the order of one stream.
cusolverDnHandle_t cusolver_handle_of(cudaStream_t stream) {
  static auto* handles = new std::unordered_map<cudaStream_t, cusolverDnHandle_t>;
  if (const auto made = handles->find(stream); made != handles->end()) return made->second;
  cusolverDnHandle_t handle = nullptr;
  TERN_SOLVER_CALL(cusolverDnCreate(&handle));
  TERN_SOLVER_CALL(cusolverDnSetStream(handle, stream));
  return (*handles)[stream] = handle;
}

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

CusolverHandle::CusolverHandle(const LaunchContext& context)
    : lock_(cusolver_mutex()), handle_(cusolver_handle_of(stream_of(context.stream).handle())) {}

}  // namespace tern::cuda_backend
