// Channels to pixels and back (Shi et al., "Real-time single image and video super-resolution", 2016), and in
// another order.
#pragma once

#include "tern/core/tensor.h"

namespace tern {

/// [..., C * r * r, H, W] to [..., C, H * r, W * r] for the upscale_factor r: each pixel becomes r * r
/// pixels, one from each of r * r channels. Throws ShapeError unless r * r divides the channels, ValueError
/// unless r > 0.
Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor);
/// The inverse: [..., C, H * r, W * r] to [..., C * r * r, H, W].
Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor);

/// x [N, C, sizes...] with channel g * (C / groups) + i at i * groups + g: those of each group are spread
/// over all (Zhang et al., "ShuffleNet", 2018). Throws ShapeError unless groups divides the channels,
/// ValueError unless groups > 0.
Tensor channel_shuffle(const Tensor& x, int64_t groups);

}  // namespace tern
