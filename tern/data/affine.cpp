// RandomRotation and RandomAffine. Each pixel of the result is taken from where the inverse map leads: the
// matrices, the grid of places and the filling follow torchvision's of tensors
// (transforms/functional.py, _get_inverse_affine_matrix; _functional_tensor.py, _apply_grid_transform).
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <type_traits>
#include <utility>
#include <vector>

#include "tern/base/check.h"
#include "tern/data/picture_checks.h"
#include "tern/data/rows.h"
#include "tern/data/transforms.h"

namespace tern::data {
namespace {

using XY = std::array<double, 2>;

/// x' = m[0] x + m[1] y + m[2] and y' = m[3] x + m[4] y + m[5], from the middle of the result to the middle
/// of the picture.
using AffineMap = std::array<double, 6>;

/// Undoes: shear, scale and turn clockwise around `center`, seen from the middle; then move by `translate`.
AffineMap inverse_map(const XY& center, double degrees, const XY& translate, double scale, const XY& shear) {
  const auto radians = [](double angle) { return angle * std::numbers::pi / 180; };
  const double angle = radians(degrees), sx = radians(shear[0]), sy = radians(shear[1]);
  const double a = std::cos(angle - sy) / std::cos(sy);
  const double b = -std::cos(angle - sy) * std::tan(sx) / std::cos(sy) - std::sin(angle);
  const double c = std::sin(angle - sy) / std::cos(sy);
  const double d = -std::sin(angle - sy) * std::tan(sx) / std::cos(sy) + std::cos(angle);
  AffineMap m = {d / scale, -b / scale, 0, -c / scale, a / scale, 0};
  const double x = -center[0] - translate[0], y = -center[1] - translate[1];
  m[2] = m[0] * x + m[1] * y + center[0];
  m[5] = m[3] * x + m[4] * y + center[1];
  return m;
}

XY from_middle(const std::optional<XY>& center, const detail::Plane& plane) {
  if (!center) return {0, 0};
  return {(*center)[0] - static_cast<double>(plane.width) / 2,
          (*center)[1] - static_cast<double>(plane.height) / 2};
}

/// The pixels that one of the result is made of, and how much of it they are.
struct SampledPixels {
  std::array<int64_t, 4> at{};
  std::array<float, 4> weight{};
  size_t count = 0;
  float inside = 0;  ///< the sum of the weights

  /// Leaves out what is not in the picture.
  void add(const detail::Plane& plane, double x, double y, double part) {
    if (!(x >= 0 && y >= 0 && x < static_cast<double>(plane.width) && y < static_cast<double>(plane.height)))
      return;
    at[count] = static_cast<int64_t>(y) * plane.width + static_cast<int64_t>(x);
    weight[count++] = static_cast<float>(part);
    inside += static_cast<float>(part);
  }
};

SampledPixels pixels_at(const detail::Plane& plane, double x, double y, Sampling sampling) {
  SampledPixels pixels;
  if (sampling == Sampling::kNearest) {
    pixels.add(plane, std::nearbyint(x), std::nearbyint(y), 1);
    return pixels;
  }
  const double left = std::floor(x), top = std::floor(y), right_part = x - left, lower_part = y - top;
  pixels.add(plane, left, top, (1 - right_part) * (1 - lower_part));
  pixels.add(plane, left + 1, top, right_part * (1 - lower_part));
  pixels.add(plane, left, top + 1, (1 - right_part) * lower_part);
  pixels.add(plane, left + 1, top + 1, right_part * lower_part);
  return pixels;
}

/// How a picture is mapped.
struct AffineWarp {
  detail::Plane plane;
  AffineMap m;
  Sampling sampling;
  const std::vector<double>& fill;

  Tensor operator()(const Tensor& source, int64_t height, int64_t width) const {
    const Tensor image = source.contiguous();
    Tensor out = detail::make_tensor({plane.channels, height, width}, image.dtype());
    if (image.dtype() == DType::UInt8)
      run(image.data<const uint8_t>(), out.data<uint8_t>(), height, width);
    else
      run(image.data<const float>(), out.data<float>(), height, width);
    return out;
  }

  template <class T>
  void run(const T* in, T* out, int64_t height, int64_t width) const {
    const auto middle = [](int64_t size) { return static_cast<double>(size - 1) / 2; };
    for (int64_t row = 0; row < height; ++row)
      for (int64_t column = 0; column < width; ++column, ++out) {
        const double x = static_cast<double>(column) - middle(width),
                     y = static_cast<double>(row) - middle(height);
        const SampledPixels pixels = pixels_at(plane, m[0] * x + m[1] * y + m[2] + middle(plane.width),
                                               m[3] * x + m[4] * y + m[5] + middle(plane.height), sampling);
        for (int64_t c = 0; c < plane.channels; ++c) {
          float value = 0;
          for (size_t i = 0; i < pixels.count; ++i)
            value += pixels.weight[i] * static_cast<float>(in[c * plane.pixels() + pixels.at[i]]);
          // Where the edge runs through a pixel, torchvision weighs what is inside twice.
          const auto outside = static_cast<float>(detail::channel_value(fill, c));
          if (pixels.inside < 1) value = value * pixels.inside + (1 - pixels.inside) * outside;
          if constexpr (std::is_same_v<T, uint8_t>)
            out[c * height * width] = static_cast<uint8_t>(std::nearbyint(std::clamp(value, 0.0f, 255.0f)));
          else
            out[c * height * width] = value;
        }
      }
  }
};

/// Height and width that hold the turned picture, whose corners are known to 1e-4 of a pixel.
std::array<int64_t, 2> expanded(const detail::Plane& plane, const AffineMap& m) {
  const auto side = [&](double own_part, double other_part, int64_t own, int64_t other) {
    const double half = static_cast<double>(own) / 2,
                 reach = std::abs(own_part) * half + std::abs(other_part) * static_cast<double>(other) / 2;
    const auto near = [](double place) { return std::nearbyint(place * 1e4) / 1e4; };
    return static_cast<int64_t>(std::ceil(near(half + reach)) - std::floor(near(half - reach)));
  };
  return {side(m[4], m[3], plane.height, plane.width), side(m[0], m[1], plane.width, plane.height)};
}

void check_angles(const AngleRange& range, const char* transform, const char* what) {
  TERN_CHECK(range.low <= range.high && std::isfinite(range.low) && std::isfinite(range.high), ValueError,
             "{}: {} must be a number that is not negative, or two with the smaller first, got {} to {}",
             transform, what, range.low, range.high);
}

void check_fill(const std::vector<double>& fill, const char* transform) {
  TERN_CHECK(!fill.empty(), ValueError, "{}: fill must be one number, or one for each channel; there is none",
             transform);
}

}  // namespace

RandomRotation::RandomRotation(AngleRange degrees, RandomRotationOptions options)
    : degrees_(degrees), options_(std::move(options)) {
  check_angles(degrees, "RandomRotation", "degrees");
  check_fill(options_.fill, "RandomRotation");
  TERN_CHECK(!options_.expand || !options_.center, ValueError,
             "RandomRotation: expand turns around the middle: leave center out");
}

Tensor RandomRotation::operator()(const Tensor& image, Random& random) const {
  const detail::Plane plane = detail::check_picture(image, "RandomRotation");
  detail::check_channel_values(options_.fill, plane, image.dtype(), "RandomRotation", "fill");
  const double angle = random.between(degrees_.low, degrees_.high);
  if (plane.pixels() == 0) return image;
  // Counter-clockwise here, and clockwise in affine maps.
  const AffineMap map = inverse_map(from_middle(options_.center, plane), -angle, {0, 0}, 1, {0, 0});
  const auto [height, width] = options_.expand ? expanded(plane, map) : std::array{plane.height, plane.width};
  return AffineWarp{plane, map, options_.interpolation, options_.fill}(image, height, width);
}

RandomAffine::RandomAffine(AngleRange degrees, RandomAffineOptions options)
    : degrees_(degrees), options_(std::move(options)) {
  check_angles(degrees, "RandomAffine", "degrees");
  check_fill(options_.fill, "RandomAffine");
  for (const AngleRange& shear : {options_.shear, options_.shear_y}) {
    check_angles(shear, "RandomAffine", "shear");
    TERN_CHECK(shear.low > -90 && shear.high < 90, ValueError,
               "RandomAffine: shear must lie between -90 and 90 degrees, got {} to {}", shear.low,
               shear.high);
  }
  for (const double part : options_.translate)
    TERN_CHECK(part >= 0 && part <= 1, ValueError,
               "RandomAffine: translate must be two parts of the sides, 0 to 1, got {} and {}",
               options_.translate[0], options_.translate[1]);
  detail::check_positive_range(options_.scale, "RandomAffine", "scale");
}

Tensor RandomAffine::operator()(const Tensor& image, Random& random) const {
  const detail::Plane plane = detail::check_picture(image, "RandomAffine");
  detail::check_channel_values(options_.fill, plane, image.dtype(), "RandomAffine", "fill");
  const double angle = random.between(degrees_.low, degrees_.high);
  const double far_x = options_.translate[0] * static_cast<double>(plane.width),
               far_y = options_.translate[1] * static_cast<double>(plane.height);
  const double move_x = std::nearbyint(random.between(-far_x, far_x));
  const double move_y = std::nearbyint(random.between(-far_y, far_y));
  const double scale = random.between(options_.scale[0], options_.scale[1]);
  const double shear_x = random.between(options_.shear.low, options_.shear.high);
  const double shear_y = random.between(options_.shear_y.low, options_.shear_y.high);
  if (plane.pixels() == 0) return image;
  const AffineMap map =
      inverse_map(from_middle(options_.center, plane), angle, {move_x, move_y}, scale, {shear_x, shear_y});
  return AffineWarp{plane, map, options_.interpolation, options_.fill}(image, plane.height, plane.width);
}

}  // namespace tern::data
