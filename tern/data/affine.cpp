// RandomRotation and RandomAffine. Each pixel of the result is taken from where the inverse map leads: the
// matrices, the grid of places and the filling follow torchvision's of tensors
// (transforms/functional.py, _get_inverse_affine_matrix; _functional_tensor.py, _apply_grid_transform).
#include <array>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "tern/base/check.h"
#include "tern/data/picture_checks.h"
#include "tern/data/picture_ops.h"
#include "tern/data/sampling.h"
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

/// The picture under a map, in this size. The grid is rounded as torchvision's _gen_affine_grid does.
Tensor mapped(const Tensor& image, const detail::Plane& plane, const AffineMap& map, int64_t height,
              int64_t width, Sampling sampling, const std::vector<double>& fill) {
  std::array<float, 6> m;
  for (size_t i = 0; i < 6; ++i)
    m[i] = static_cast<float>(map[i]) / (static_cast<float>(i < 3 ? plane.width : plane.height) / 2);
  const auto middle = [](int64_t size) { return static_cast<float>(size - 1) / 2; };
  return detail::warp(image, plane, height, width, sampling, fill,
                      [&](int64_t row, int64_t column) -> detail::GridPlace {
                        const float x = static_cast<float>(column) - middle(width),
                                    y = static_cast<float>(row) - middle(height);
                        return {m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]};
                      });
}

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

}  // namespace

Tensor detail::affine(const Tensor& image, const AffineChange& change, Sampling sampling,
                      const std::vector<double>& fill) {
  const Plane plane{image.size(0), image.size(1), image.size(2)};
  const AffineMap map = inverse_map(from_middle(change.center, plane), change.degrees, change.translate,
                                    change.scale, change.shear);
  return mapped(image, plane, map, plane.height, plane.width, sampling, fill);
}

RandomRotation::RandomRotation(AngleRange degrees, RandomRotationOptions options)
    : degrees_(degrees), options_(std::move(options)) {
  check_angles(degrees, "RandomRotation", "degrees");
  detail::check_fill(options_.fill, "RandomRotation");
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
  return mapped(image, plane, map, height, width, options_.interpolation, options_.fill);
}

RandomAffine::RandomAffine(AngleRange degrees, RandomAffineOptions options)
    : degrees_(degrees), options_(std::move(options)) {
  check_angles(degrees, "RandomAffine", "degrees");
  detail::check_fill(options_.fill, "RandomAffine");
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
  return detail::affine(image,
                        {.degrees = angle,
                         .translate = {move_x, move_y},
                         .scale = scale,
                         .shear = {shear_x, shear_y},
                         .center = options_.center},
                        options_.interpolation, options_.fill);
}

}  // namespace tern::data
