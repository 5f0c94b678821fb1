// cuFFT: Fourier transforms; opened when it is first needed.
#pragma once

#include <cufftXt.h>

#include "tern/backends/cuda/library.h"

namespace tern::cuda_backend {

#define TERN_CUFFT_FUNCTIONS(X) \
  X(cufftCreate)                \
  X(cufftSetAutoAllocation)     \
  X(cufftMakePlanMany64)        \
  X(cufftSetStream)             \
  X(cufftSetWorkArea)           \
  X(cufftXtExec)

/// cuFFT's functions under their own names.
struct Cufft {
  TERN_CUFFT_FUNCTIONS(TERN_LIBRARY_MEMBER)
};

/// Opened with the first call. Throws DeviceError where it is missing.
const Cufft& cufft();

/// Throws DeviceError unless cuFFT gave success.
void check_cufft(cufftResult status, const char* call);

}  // namespace tern::cuda_backend

/// Calls a function of cuFFT and checks what it gives.
#define TERN_FFT_CALL(...) \
  ::tern::cuda_backend::check_cufft(::tern::cuda_backend::cufft().__VA_ARGS__, #__VA_ARGS__)
