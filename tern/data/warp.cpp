// RandomPerspective and ElasticTransform. Places and what is drawn follow torchvision's
// (transforms/functional.py, _get_perspective_coeffs; transforms.py, get_params of both).
#include "tern/data/warp.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "tern/base/check.h"
#include "tern/data/picture_checks.h"
#include "tern/data/picture_ops.h"
#include "tern/data/sampling.h"

namespace tern::data {
namespace {

using detail::GridPlace;
using Coefficients = std::array<double, 8>;

/// Of a blur: its kernel has eight times as many pixels.
constexpr double kMostSigma = 1e4;

/// Eight linear equations by elimination with the largest pivots; none where they have no single solution.
std::optional<Coefficients> solved(std::array<std::array<double, 9>, 8> rows) {
  Coefficients x{};
  for (size_t k = 0; k < 8; ++k)
    for (const auto& row : rows) x[k] = std::max(x[k], std::abs(row[k]));
  for (size_t k = 0; k < 8; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < 8; ++i)
      if (std::abs(rows[i][k]) > std::abs(rows[pivot][k])) pivot = i;
    std::swap(rows[pivot], rows[k]);
    if (!(std::abs(rows[k][k]) > 1e-12 * x[k])) return {};
    for (size_t i = 0; i < 8; ++i) {
      if (i == k) continue;
      const double factor = rows[i][k] / rows[k][k];
      for (size_t j = k; j < 9; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  for (size_t k = 0; k < 8; ++k) {
    x[k] = rows[k][8] / rows[k][k];
    if (!std::isfinite(x[k])) return {};
  }
  return x;
}

std::optional<Coefficients> coefficients_between(const Corners& start, const Corners& end) {
  std::array<std::array<double, 9>, 8> rows;
  for (size_t i = 0; i < 4; ++i) {
    const auto [u, v] = start[i];
    const auto [x, y] = end[i];
    rows[2 * i] = {x, y, 1, 0, 0, 0, -u * x, -u * y, u};
    rows[2 * i + 1] = {0, 0, 0, x, y, 1, -v * x, -v * y, v};
  }
  return solved(rows);
}

/// Numbers from -1 to 1 for each pixel, blurred with a kernel of four deviations on each side.
std::vector<float> moves(const detail::Plane& plane, double own_sigma, const PerAxis& sigma, Random& random) {
  std::vector<float> values(static_cast<size_t>(plane.pixels()));
  for (float& value : values) value = random.uniform(-1, 1);
  if (own_sigma == 0) return values;
  const int64_t kernel = static_cast<int64_t>(8 * own_sigma + 1) | 1;
  return detail::blurred(values, plane.height, plane.width, {kernel, kernel}, {sigma.x, sigma.y});
}

}  // namespace

std::array<double, 8> perspective_coefficients(const Corners& start, const Corners& end) {
  const auto found = coefficients_between(start, end);
  TERN_CHECK(
      found, ValueError,
      "perspective_coefficients: no map leads from one four of corners to the other: three of them lie "
      "in a line, or a number is not finite");
  return *found;
}

RandomPerspective::RandomPerspective(RandomPerspectiveOptions options) : options_(std::move(options)) {
  TERN_CHECK(options_.distortion_scale >= 0 && options_.distortion_scale <= 1, ValueError,
             "RandomPerspective: distortion_scale must be 0 to 1, got {}", options_.distortion_scale);
  detail::check_probability(options_.p, "RandomPerspective");
  detail::check_fill(options_.fill, "RandomPerspective");
}

Tensor RandomPerspective::operator()(const Tensor& image, Random& random) const {
  const detail::Plane plane = detail::check_picture(image, "RandomPerspective");
  detail::check_channel_values(options_.fill, plane, image.dtype(), "RandomPerspective", "fill");
  if (!random.chance(options_.p)) return image;
  const auto furthest = [&](int64_t size) {
    return static_cast<int64_t>(options_.distortion_scale * static_cast<double>(size / 2));
  };
  const int64_t far_x = furthest(plane.width), far_y = furthest(plane.height);
  const double right = static_cast<double>(plane.width - 1), bottom = static_cast<double>(plane.height - 1);
  const Corners start = {{{0, 0}, {right, 0}, {right, bottom}, {0, bottom}}};
  const auto inwards = [&](double place, int64_t most) {
    const int64_t drawn = random.below(most + 1);
    return place == 0 ? static_cast<double>(drawn) : place - static_cast<double>(most - drawn);
  };
  Corners end = start;
  for (auto& [x, y] : end) {
    x = inwards(x, far_x);
    y = inwards(y, far_y);
  }
  const auto coefficients = coefficients_between(start, end);
  if (!coefficients || plane.pixels() == 0) return image;
  // As torchvision's _perspective_grid rounds.
  std::array<float, 8> m;
  for (size_t i = 0; i < 8; ++i) {
    m[i] = static_cast<float>((*coefficients)[i]);
    if (i < 6) m[i] /= static_cast<float>(i < 3 ? plane.width : plane.height) / 2;
  }
  return detail::warp(
      image, plane, plane.height, plane.width, options_.interpolation, options_.fill,
      [&](int64_t row, int64_t column) -> GridPlace {
        const float x = static_cast<float>(column) + 0.5f, y = static_cast<float>(row) + 0.5f;
        const float depth = m[6] * x + m[7] * y + 1;
        return {(m[0] * x + m[1] * y + m[2]) / depth - 1, (m[3] * x + m[4] * y + m[5]) / depth - 1};
      });
}

ElasticTransform::ElasticTransform(ElasticTransformOptions options) : options_(std::move(options)) {
  const PerAxis alpha = options_.alpha, sigma = options_.sigma;
  TERN_CHECK(std::isfinite(alpha.x) && std::isfinite(alpha.y), ValueError,
             "ElasticTransform: alpha must be finite, got {} and {}", alpha.x, alpha.y);
  TERN_CHECK(
      (sigma.x > 0 && sigma.y > 0 && sigma.x <= kMostSigma && sigma.y <= kMostSigma) ||
          (sigma.x == 0 && sigma.y == 0),
      ValueError,
      "ElasticTransform: sigma must be positive and at most {} for both axes, or 0 for both, got {} and {}",
      kMostSigma, sigma.x, sigma.y);
  detail::check_fill(options_.fill, "ElasticTransform");
}

Tensor ElasticTransform::operator()(const Tensor& image, Random& random) const {
  const detail::Plane plane = detail::check_picture(image, "ElasticTransform");
  detail::check_channel_values(options_.fill, plane, image.dtype(), "ElasticTransform", "fill");
  if (plane.pixels() == 0) return image;
  const PerAxis alpha = options_.alpha, sigma = options_.sigma;
  const std::vector<float> right = moves(plane, sigma.x, sigma, random),
                           down = moves(plane, sigma.y, sigma, random);
  const auto moved = [](int64_t place, int64_t size, float move, double most) {
    const float edge = static_cast<float>(static_cast<double>(size - 1) / static_cast<double>(size));
    const float still = size == 1 ? 0 : detail::linspace_at(-edge, edge, place, size);
    return still + move * static_cast<float>(most) / static_cast<float>(size);
  };
  return detail::warp(
      image, plane, plane.height, plane.width, options_.interpolation, options_.fill,
      [&](int64_t row, int64_t column) -> GridPlace {
        const auto at = static_cast<size_t>(row * plane.width + column);
        return {moved(column, plane.width, right[at], alpha.x), moved(row, plane.height, down[at], alpha.y)};
      });
}

}  // namespace tern::data
