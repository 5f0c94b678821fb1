// Transforms that bend pictures: in perspective, and as if they were of rubber. Rotations and affine maps are
// in transforms.h.
#pragma once

#include <array>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/data/random.h"
#include "tern/data/transforms.h"

namespace tern::data {

/// Four corners, each x and y: upper left, upper right, lower right, lower left.
using Corners = std::array<std::array<double, 2>, 4>;

/// The numbers a to h for which (x, y) -> ((ax + by + c) / (gx + hy + 1), (dx + ey + f) / (gx + hy + 1))
/// leads from `end` to `start`: by it, pixels of a picture whose corners have moved from `start` to `end`
/// find where they come from. Throws ValueError if there is no such map, as when three corners lie in a line.
std::array<double, 8> perspective_coefficients(const Corners& start, const Corners& end);

/// How far RandomPerspective goes.
struct RandomPerspectiveOptions {
  double distortion_scale = 0.5;  ///< 0 to 1: the part of the way to the middle that a corner may move
  double p = 0.5;
  Sampling interpolation = Sampling::kBilinear;
  std::vector<double> fill = {0};  ///< outside the picture: one number, or one for each channel
};

/// With probability p, the picture as it looks from elsewhere: each corner is moved inwards by whole pixels
/// at random, as torchvision does with tensors. Where there is no map to the corners drawn, as with pictures
/// of one pixel's width, it stays as it is.
class RandomPerspective {
 public:
  /// Throws ValueError for a scale or a p outside 0 to 1, and without a fill.
  explicit RandomPerspective(RandomPerspectiveOptions options = {});
  /// Throws ValueError for a fill of other than 1 number or one for each channel, or that a byte cannot have.
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  RandomPerspectiveOptions options_;
};

/// A number for both axes, or one for x and one for y.
struct PerAxis {
  PerAxis(double both) : x(both), y(both) {}
  PerAxis(double x_, double y_) : x(x_), y(y_) {}

  double x;
  double y;
};

/// How ElasticTransform moves pixels.
struct ElasticTransformOptions {
  PerAxis alpha = 50.0;  ///< twice the largest move in pixels, before it is blurred
  PerAxis sigma = 5.0;   ///< of the blur, in pixels; 0: none
  Sampling interpolation = Sampling::kBilinear;
  std::vector<double> fill = {0};  ///< outside the picture: one number, or one for each channel
};

/// Each pixel comes from a place nearby: by how much is drawn for each, uniformly, and then blurred, so that
/// neighbours move together (Simard et al., "Best Practices for Convolutional Neural Networks", 2003). As
/// torchvision does with tensors, but also of pictures that are smaller than the blur.
class ElasticTransform {
 public:
  /// Throws ValueError unless alpha is finite and sigma is positive for both axes or 0 for both, and without
  /// a fill.
  explicit ElasticTransform(ElasticTransformOptions options = {});
  /// Throws as RandomPerspective.
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  ElasticTransformOptions options_;
};

}  // namespace tern::data
