// Images and volumes read at places of one's own: what spatial transformers are made of (Jaderberg et al.,
// "Spatial transformer networks", 2015).
#pragma once

#include <string>

#include "tern/core/tensor.h"

namespace tern {

/// The places in x that each pixel of an output of shape `size` comes from, by the maps theta: [N, H, W, 2]
/// of pairs (x, y) for theta [N, 2, 3] and `size` (N, C, H, W), [N, D, H, W, 3] of (x, y, z) for theta [N, 3,
/// 4] and (N, C, D, H, W). Coordinates go from -1 to 1, between the centres of the outermost pixels with
/// `align_corners`, else between their outer edges. Throws DTypeError unless theta is floating point,
/// ShapeError, ValueError for sizes below 1.
Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners = false);

struct GridSampleOptions {
  std::string mode = "bilinear";  ///< or "nearest", "bicubic"; of volumes these are trilinear and tricubic
  /// What lies outside: "zeros", "border" (the nearest pixel) or "reflection" (mirrored at the border).
  std::string padding_mode = "zeros";
  bool align_corners = false;  ///< what -1 and 1 mean, as in affine_grid
};
/// x [N, C, H, W] or [N, C, D, H, W] at the places `grid` [N, h, w, 2] or [N, d, h, w, 3], as
/// torch.nn.functional.grid_sample: [N, C, h, w] or [N, C, d, h, w]. With "nearest" the grid's
/// gradient is 0. Where a coordinate is no number the result is NaN, 0 or an element, as in PyTorch. Second
/// derivatives throw NotImplementedError. Throws ShapeError for shapes that do not fit, DTypeError unless
/// both have one floating-point dtype, ValueError for other words.
Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {});

}  // namespace tern
