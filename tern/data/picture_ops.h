// What the transforms of pictures are made of: single operations, with the numbers that are drawn elsewhere.
// Transforms and the policies of auto_augment.h share them. Not public. Operations of colour take pictures
// that have passed check_gray_or_rgb().
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <type_traits>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/data/picture_checks.h"
#include "tern/data/rows.h"
#include "tern/data/transforms.h"

namespace tern::data::detail {

/// A new tensor of this shape and the picture's dtype, which `body(const T* in, T* out)` writes.
template <class Body>
Tensor make_picture(const Tensor& source, IntArrayRef shape, Body&& body) {
  const Tensor image = source.contiguous();
  Tensor out = make_tensor(shape, image.dtype());
  if (image.dtype() == DType::UInt8)
    body(image.data<const uint8_t>(), out.data<uint8_t>());
  else
    body(image.data<const float>(), out.data<float>());
  return out;
}

/// What stands for white.
template <class T>
constexpr float kBound = std::is_same_v<T, uint8_t> ? 255.0f : 1.0f;

/// Of both, as torchvision's _blend does: clamped to what the dtype holds and, for bytes, cut off after the
/// point.
template <class T>
T blend(T value, float other, double factor) {
  const float mixed =
      static_cast<float>(factor) * static_cast<float>(value) + static_cast<float>(1 - factor) * other;
  return static_cast<T>(std::clamp(mixed, 0.0f, kBound<T>));
}

// color.cpp. The picture itself stays.
Tensor adjust_brightness(const Tensor& image, double factor);
Tensor adjust_contrast(const Tensor& image, double factor);
Tensor adjust_saturation(const Tensor& image, double factor);

// tones.cpp
Tensor adjust_sharpness(const Tensor& image, double factor);
Tensor invert(const Tensor& image);
Tensor posterize(const Tensor& image, int64_t bits);
Tensor solarize(const Tensor& image, double threshold);
Tensor autocontrast(const Tensor& image);
Tensor equalize(const Tensor& image);

/// What affine() does, in the order of shearing, scaling, turning and moving.
struct AffineChange {
  double degrees = 0;  ///< clockwise
  std::array<double, 2> translate = {0, 0};
  double scale = 1;
  std::array<double, 2> shear = {0, 0};              ///< along x and along y, in degrees
  std::optional<std::array<double, 2>> center = {};  ///< from the upper left corner; else the middle
};
/// In the size that it has; affine.cpp.
Tensor affine(const Tensor& image, const AffineChange& change, Sampling sampling,
              const std::vector<double>& fill);

/// One plane as GaussianBlur makes it; the kernel's sides are odd. blur.cpp.
std::vector<float> blurred(const std::vector<float>& plane, int64_t height, int64_t width,
                           std::array<int64_t, 2> kernel_xy, std::array<double, 2> sigma_xy);

/// The place in a line that is mirrored at its first and its last pixel, which are not repeated.
inline int64_t mirrored(int64_t at, int64_t size) {
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1);
  at = std::abs(at) % period;
  return at < size ? at : period - at;
}

}  // namespace tern::data::detail
