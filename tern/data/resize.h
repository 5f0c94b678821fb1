// Resizing of 8-bit pictures and of float planes with anti-aliasing, as PIL and torchvision do it.
#pragma once

#include <cstdint>
#include <span>

#include "tern/data/image.h"

namespace tern::data {

/// The filter of a resize. All but the first widen when shrinking, so that every source pixel counts
/// (anti-aliasing).
enum class Interpolation {
  kNearest,   ///< the source pixel below the middle of the output pixel
  kBilinear,  ///< triangle filter
  kArea,      ///< box filter: the mean over the area that an output pixel covers
  kHamming,   ///< sinc over one pixel, under Hamming's window
  kBicubic,   ///< Keys' cubic with a = -1/2 (1981)
  kLanczos,   ///< sinc over three pixels, under its own main lobe
};

/// The picture in another size; the same values to the bit as PIL's Image.resize with the filter of that name
/// (kArea: BOX). Throws ValueError unless the new sides are 1 to 2^20 and the result has at most 2^28 pixels.
Image resize(const Image& image, int64_t height, int64_t width,
             Interpolation interpolation = Interpolation::kBilinear);

/// One plane in another size. `in` has in_height x in_width values, `out` out_height x out_width; sizes are
/// checked as in resize().
void resize_plane(std::span<const uint8_t> in, int64_t in_height, int64_t in_width, std::span<uint8_t> out,
                  int64_t out_height, int64_t out_width, Interpolation interpolation);
void resize_plane(std::span<const float> in, int64_t in_height, int64_t in_width, std::span<float> out,
                  int64_t out_height, int64_t out_width, Interpolation interpolation);

}  // namespace tern::data
