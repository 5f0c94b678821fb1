// What transforms ask of the tensor of a picture and of their options, and what they draw. Not public.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/data/random.h"

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

/// Throws ValueError unless p is 0 to 1.
void check_probability(double p, const char* transform);
/// Throws ValueError unless both are positive and finite, the smaller first.
void check_positive_range(const std::array<double, 2>& range, const char* transform, const char* what);

/// The sides of a rectangle of random area, a part of the picture's within `scale`, and random proportion
/// within `ratio`, of the first side to the second; whole numbers, which may be 0 or longer than the picture.
std::array<double, 2> random_sides(const Plane& plane, const std::array<double, 2>& scale,
                                   const std::array<double, 2>& ratio, Random& random);

/// The numbers below `size` in random order.
std::vector<size_t> random_order(size_t size, Random& random);

/// Throws ValueError for no numbers.
void check_fill(const std::vector<double>& fill, const char* transform);
/// One number for all channels or one for each, which bytes can have. Throws ValueError.
void check_channel_values(const std::vector<double>& values, const Plane& plane, DType dtype,
                          const char* transform, const char* what);
inline double channel_value(const std::vector<double>& values, int64_t channel) {
  return values[values.size() == 1 ? 0 : static_cast<size_t>(channel)];
}

}  // namespace tern::data::detail
