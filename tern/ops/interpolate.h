// Other sizes for signals, images and volumes. Weights and windows of the modes are in
// kernels/resize_window.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

/// One of `size` and `scale_factor` is needed: a number for each dimension after the channels, or one for
/// all.
struct InterpolateOptions {
  std::vector<int64_t> size = {};
  std::vector<double> scale_factor = {};  ///< the size is floor(size * factor)
  /// nearest, nearest-exact and area for all ranks; linear for [N, C, L], bilinear and bicubic for
  /// [N, C, H, W], trilinear for [N, C, D, H, W].
  std::string mode = "nearest";
  /// Whether the centres of the corners stay where they are; false when left out. Not for nearest and area.
  std::optional<bool> align_corners = {};
  /// Whether coordinates follow from both sizes; otherwise from the scale factor, where that was given.
  bool recompute_scale_factor = false;
  /// Filters grow with the step from one output to the next. For bilinear and bicubic.
  bool antialias = false;
};

/// x [N, C, L], [N, C, H, W] or [N, C, D, H, W] in another size, as torch.nn.functional.interpolate. Floats,
/// for the nearest modes uint8 too. Throws ShapeError for ranks and sizes that do not fit, ValueError for
/// options that do not.
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

}  // namespace tern
