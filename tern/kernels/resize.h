// Arguments of the kernel that resizes images, signals and volumes, shared by every backend. Which elements
// make which is in tern/kernels/resize_window.h; shape rules and gradients are in tern/ops/interpolate.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

enum class ResizeMode : std::uint8_t {
  Nearest,       ///< the element whose left edge is at or before the output's left edge
  NearestExact,  ///< the element that has the output's centre
  Linear,
  Cubic,            ///< convolution with Keys's kernel, a = -0.75
  Area,             ///< mean over windows that divide the axis into `out` parts, as adaptive average pooling
  LinearAntialias,  ///< a triangle that grows with the step from one output to the next
  CubicAntialias,   ///< Keys's kernel with a = -0.5 that grows likewise
};

/// One dimension and what becomes of it. Both sizes are positive.
struct ResizeAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  ResizeMode mode = ResizeMode::Nearest;
  bool align_corners = false;  ///< the centres of the first and last elements stay where they are
  double scale = 0;            ///< outputs for each input; 0: out / in
};

/// output[n, i, j, c] = sum over y and x of a[i, y] * b[j, x] * input[n, y, x, c], where the bands a and b
/// are those of the two axes. Floating dtypes; also uint8 for the nearest modes when not transposed. Images
/// with channels last have their channels as `inner`.
struct ResizeArgs {
  DType dtype{};
  bool transposed = false;  ///< with a[y, i] and b[x, j]: the gradient, which goes from output to input
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  ResizeAxis h;
  ResizeAxis w;
  const void* input = nullptr;  ///< [outer, h.in, w.in, inner]; transposed [outer, h.out, w.out, inner]
  void* output = nullptr;       ///< [outer, h.out, w.out, inner]; transposed [outer, h.in, w.in, inner]
};

}  // namespace tern

/// X(kernel, argument struct) for kernels/list.h.
#define TERN_RESIZE_KERNELS(X) X(resize, ResizeArgs)
