// Arguments of the kernel of discrete Fourier transforms along one dimension. Several dimensions, lengths and
// norms are in tern/ops/fft.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

enum class FftKind : uint8_t {
  Complex,  ///< complex to complex
  ToHalf,   ///< real to the first size / 2 + 1 complex numbers of the result
  ToReal,   ///< from these to real numbers; the imaginary parts of the first and, for an even size, of the
            ///< last of them count as 0
};

/// out[o, k, i] = scale * sum over j of in[o, j, i] * exp(sign * 2 pi I j k / size), sign -1 where `forward`,
/// for `outer` and `inner` transforms beside each other. Everything is contiguous: [outer, size, inner], with
/// size / 2 + 1 in place of size for halves. `in` and `out` may be the same memory for Complex.
struct FftArgs {
  FftKind kind{};
  DType dtype{};  ///< of the parts: float32 or float64
  bool forward = true;
  double scale = 1;
  int64_t outer = 0;
  int64_t size = 0;  ///< at least 1
  int64_t inner = 0;
  const void* in = nullptr;
  void* out = nullptr;

  int64_t half() const { return size / 2 + 1; }
};

#define TERN_FFT_KERNELS(X) X(fft, FftArgs)

}  // namespace tern
