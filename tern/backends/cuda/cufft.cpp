// Opening of cuFFT, and its errors.
#include "tern/backends/cuda/cufft.h"

#include "tern/backends/cuda/check.h"

namespace tern::cuda_backend {
namespace {

const char* status_text(cufftResult status) {
  switch (status) {
    case CUFFT_INVALID_PLAN:
      return "the plan is invalid";
    case CUFFT_ALLOC_FAILED:
      return "no memory is left: free tensors, or call cuda::empty_cache()";
    case CUFFT_INVALID_VALUE:
      return "a value is invalid";
    case CUFFT_INTERNAL_ERROR:
      return "an internal error";
    case CUFFT_EXEC_FAILED:
      return "the execution failed";
    case CUFFT_SETUP_FAILED:
      return "it could not be set up";
    case CUFFT_INVALID_SIZE:
      return "the size is not supported";
    default:
      return "see cufft.h for the status";
  }
}

}  // namespace

const Cufft& cufft() {
  static const Cufft functions = [] {
    static const Library library("cuFFT", "Fourier transforms",
                                 {TERN_SONAME("libcufft", CUFFT_VER_MAJOR), "libcufft.so"});
    Cufft found{};
    TERN_CUFFT_FUNCTIONS(TERN_LIBRARY_FIND)
    return found;
  }();
  return functions;
}

void check_cufft(cufftResult status, const char* call) {
  if (status != CUFFT_SUCCESS) [[unlikely]]
    throw_library_error("cuFFT", call, status_text(status));
}

}  // namespace tern::cuda_backend
