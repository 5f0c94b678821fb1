// What the tests of transforms share: pictures of numbers, and transforms of one sample.
#pragma once

#include <cstdint>

#include "tern/data/bytes.h"
#include "tern/data/transforms.h"
#include "tern/ops/creation.h"

namespace tern::data::testing {

inline const TensorOptions kHost{.device = kCPU};

/// uint8 [channels, height, width] of these bytes.
inline Tensor picture_of(const Bytes& bytes, int64_t channels, int64_t height, int64_t width) {
  return tensor(bytes, kHost).view({channels, height, width});
}

/// uint8 [channels, height, width] with 0, step, 2 step, ...
inline Tensor steps_of(int step, int64_t channels, int64_t height, int64_t width) {
  Bytes bytes(static_cast<size_t>(channels * height * width));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * static_cast<size_t>(step));
  return picture_of(bytes, channels, height, width);
}

/// What the transform makes of the picture with the random numbers of this sample.
inline Tensor with(const Transform& transform, const Tensor& image, uint64_t sample = 0) {
  Random random(1, 0, sample);
  return transform(image, random);
}

inline Bytes bytes_with(const Transform& transform, const Tensor& image, uint64_t sample = 0) {
  return with(transform, image, sample).to_vector<uint8_t>();
}

}  // namespace tern::data::testing
