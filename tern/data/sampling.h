// Pictures whose pixels come from other places of a picture, with weights: what is between the pixels, and
// what is outside. Not public. The maps are in affine.cpp and warp.cpp; changes of size are in resize.h.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/data/picture_checks.h"
#include "tern/data/picture_ops.h"
#include "tern/data/transforms.h"

namespace tern::data::detail {

// Numbers are floats, rounded where torch's grid_sample rounds them on the CPU, so that bytes are the same to
// the bit, places in the middle between two pixels among them.

/// A place in a picture, x and y: -1 and 1 are its edges.
using GridPlace = std::array<float, 2>;

/// a * b + c, rounded once: a product of floats is exact in double.
inline float multiply_add(float a, float b, float c) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
}

/// Number `i` of `count` from `first` to `last`, as torch.linspace.
inline float linspace_at(float first, float last, int64_t i, int64_t count) {
  const float step = (last - first) / static_cast<float>(count - 1);
  return i < count / 2 ? multiply_add(step, static_cast<float>(i), first)
                       : multiply_add(-step, static_cast<float>(count - 1 - i), last);
}

/// The pixels that one of the result is made of, and how much of it they are.
struct SampledPixels {
  std::array<int64_t, 4> at{};
  std::array<float, 4> weight{};
  size_t count = 0;
  float inside = 0;  ///< the sum of the weights

  /// Leaves out what is not in the picture.
  void add(const Plane& plane, float x, float y, float part) {
    if (!(x >= 0 && y >= 0 && x < static_cast<float>(plane.width) && y < static_cast<float>(plane.height)))
      return;
    at[count] = static_cast<int64_t>(y) * plane.width + static_cast<int64_t>(x);
    weight[count++] = part;
    inside += part;
  }
};

inline SampledPixels pixels_at(const Plane& plane, const GridPlace& place, Sampling sampling) {
  const auto in_pixels = [](float coordinate, int64_t size) {
    return multiply_add(coordinate + 1, static_cast<float>(size) / 2, -0.5f);
  };
  const float x = in_pixels(place[0], plane.width), y = in_pixels(place[1], plane.height);
  SampledPixels pixels;
  if (sampling == Sampling::kNearest) {
    pixels.add(plane, std::nearbyint(x), std::nearbyint(y), 1);
    return pixels;
  }
  const float left = std::floor(x), top = std::floor(y), right_part = x - left, lower_part = y - top;
  pixels.add(plane, left, top, (1 - right_part) * (1 - lower_part));
  pixels.add(plane, left + 1, top, right_part * (1 - lower_part));
  pixels.add(plane, left, top + 1, (1 - right_part) * lower_part);
  pixels.add(plane, left + 1, top + 1, right_part * lower_part);
  return pixels;
}

/// A picture of height x width, with what is at `place(row, column)` of the source, a GridPlace, at each of
/// its pixels. `fill` stands outside the source; as for torchvision's fill=None, that is 0 if it is empty,
/// and edges are not weighed twice.
template <class Place>
Tensor warp(const Tensor& source, const Plane& plane, int64_t height, int64_t width, Sampling sampling,
            const std::vector<double>& fill, const Place& place) {
  return make_picture(source, {plane.channels, height, width}, [&]<class T>(const T* in, T* out) {
    for (int64_t row = 0; row < height; ++row)
      for (int64_t column = 0; column < width; ++column, ++out) {
        const SampledPixels pixels = pixels_at(plane, place(row, column), sampling);
        for (int64_t c = 0; c < plane.channels; ++c) {
          float value = 0;
          for (size_t i = 0; i < pixels.count; ++i)
            value = multiply_add(pixels.weight[i], static_cast<float>(in[c * plane.pixels() + pixels.at[i]]),
                                 value);
          // Where the edge runs through a pixel, torchvision weighs what is inside twice.
          if (pixels.inside != 1 && !fill.empty())
            value = value * pixels.inside + (1 - pixels.inside) * static_cast<float>(channel_value(fill, c));
          if constexpr (std::is_same_v<T, uint8_t>)
            out[c * height * width] = static_cast<uint8_t>(std::nearbyint(std::clamp(value, 0.0f, 255.0f)));
          else
            out[c * height * width] = value;
        }
      }
  });
}

}  // namespace tern::data::detail
