// Windows by which pieces of signals are multiplied before their spectra are taken.
#pragma once

#include "tern/core/tensor.h"

namespace tern {

// [window_length] numbers, ones for a length of 1. `periodic` ones are the first of a symmetric window that
// is longer by one, as discrete spectra want them. Computed in float64 (Harris, "On the use of windows for
// harmonic analysis with the discrete Fourier transform", 1978). Throw ValueError for a negative length,
// DTypeError unless floating point.

/// 0.5 - 0.5 cos(2 pi i / n).
Tensor hann_window(int64_t window_length, bool periodic = true, const TensorOptions& options = {});
/// alpha - beta cos(2 pi i / n).
Tensor hamming_window(int64_t window_length, bool periodic = true, double alpha = 0.54, double beta = 0.46,
                      const TensorOptions& options = {});
/// 0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n).
Tensor blackman_window(int64_t window_length, bool periodic = true, const TensorOptions& options = {});
/// 1 - |2 i / n - 1|, a triangle.
Tensor bartlett_window(int64_t window_length, bool periodic = true, const TensorOptions& options = {});

}  // namespace tern
