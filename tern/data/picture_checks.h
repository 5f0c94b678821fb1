// What transforms ask of the tensor of a picture. Not public.
#pragma once

#include <cstdint>

#include "tern/core/tensor.h"

namespace tern::data::detail {

/// Sizes of a picture tensor after its checks.
struct Plane {
  int64_t channels;
  int64_t height;
  int64_t width;
  int64_t pixels() const { return height * width; }
};

/// Throws DeviceError, in the name of the transform.
void check_on_cpu(const Tensor& image, const char* transform);
/// [channels, height, width], uint8 or float32, on the CPU. Throws ShapeError, DTypeError, DeviceError.
Plane check_picture(const Tensor& image, const char* transform);
/// The same, with 1 or 3 channels.
Plane check_gray_or_rgb(const Tensor& image, const char* transform);

}  // namespace tern::data::detail
