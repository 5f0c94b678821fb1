// Transforms that change tones and sharpness: each with probability p, of pictures with 1 or 3 channels, in
// bytes or in floats of which 0 to 1 are black to white. They follow torchvision's of tensors. Other ones of
// colour (ColorJitter, Grayscale) are in transforms.h.
#pragma once

#include <cstdint>

#include "tern/core/tensor.h"
#include "tern/data/random.h"

namespace tern::data {

// The constructors throw ValueError for a p outside 0 to 1; all throw ShapeError for another number of
// channels.

/// The negative: 255 or 1 minus the value.
class RandomInvert {
 public:
  explicit RandomInvert(double p = 0.5);
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  double p_;
};

/// Keeps the upper `bits` of each byte; floats are rounded down to one of 2^bits steps.
class RandomPosterize {
 public:
  /// Throws ValueError for bits outside 0 to 8.
  explicit RandomPosterize(int64_t bits, double p = 0.5);
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  int64_t bits_;
  double p_;
};

/// The negative of all values that are `threshold` or more.
class RandomSolarize {
 public:
  /// Throws ValueError for a threshold that is no number.
  explicit RandomSolarize(double threshold, double p = 0.5);
  /// Throws ValueError if the threshold is above what the picture can have, 255 or 1.
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  double threshold_;
  double p_;
};

/// Each channel is stretched until its darkest value is black and its brightest is white. Bytes as
/// torchvision.transforms makes them; those of PIL and of transforms.v2 differ by 1 here and there.
class RandomAutocontrast {
 public:
  explicit RandomAutocontrast(double p = 0.5);
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  double p_;
};

/// The values of each channel are spread so that all are about as frequent; bytes as PIL makes them. Floats
/// are made bytes for it.
class RandomEqualize {
 public:
  explicit RandomEqualize(double p = 0.5);
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  double p_;
};

/// Between smoothed (0), as it is (1) and sharper (more). Pictures of fewer than 3 pixels in a direction, and
/// pixels at the edge, stay as they are.
class RandomAdjustSharpness {
 public:
  /// Throws ValueError for a factor that is negative or not finite.
  explicit RandomAdjustSharpness(double sharpness_factor, double p = 0.5);
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  double factor_;
  double p_;
};

}  // namespace tern::data
