// MixUp and CutMix: batches whose pictures, and with them their labels, are mixed. The transforms of single
// pictures are in transforms.h.
#pragma once

#include <cstdint>
#include <optional>

#include "tern/core/tensor.h"
#include "tern/data/example.h"
#include "tern/data/random.h"

namespace tern::data {

/// How batches are mixed.
struct MixOptions {
  double alpha = 1.0;                       ///< the share of each picture is from Beta(alpha, alpha)
  std::optional<int64_t> num_classes = {};  ///< needed unless labels are probabilities
};

/// Each picture becomes lam times itself and 1 - lam times the one before it in the batch, its label as much
/// of both classes (Zhang et al., "mixup: Beyond Empirical Risk Minimization", 2018). lam is one number for
/// the batch. As torchvision.transforms.v2; on any device.
///
///     const data::MixUp mix({.alpha = 0.2, .num_classes = 10});
///     for (auto& batch : loader) {
///       auto [x, y] = mix(batch);                  // y: float32 [n, 10], which cross_entropy takes
///     }
class MixUp {
 public:
  /// Throws ValueError unless alpha is positive and finite, and num_classes, if given, positive.
  explicit MixUp(const MixOptions& options);
  /// Floats [n, channels, height, width] and int64 class numbers [n] or probabilities [n, classes]; gives
  /// pictures and probabilities [n, classes]. Waits for class numbers on a GPU. Throws ShapeError,
  /// DTypeError, and ValueError for class numbers without num_classes or outside them, or probabilities of
  /// another number of classes.
  Batch operator()(const Tensor& images, const Tensor& labels, Random& random) const;
  /// The same of a batch's first two tensors; others and names stay. The random numbers are keyed by one of
  /// the default generator: in a collate_fn that is the batch's own (DataLoader).
  Batch operator()(Batch batch) const;

 private:
  MixOptions options_;
};

/// A rectangle of each picture is that of the picture before it in the batch, its label as much of its class
/// as the rectangle has of the area (Yun et al., "CutMix", 2019). One rectangle for the batch, whose area
/// before it is cut off at the edges is a part of the picture's from Beta(alpha, alpha). As MixUp in all
/// else, but pictures may be uint8 too.
class CutMix {
 public:
  explicit CutMix(const MixOptions& options);
  Batch operator()(const Tensor& images, const Tensor& labels, Random& random) const;
  Batch operator()(Batch batch) const;

 private:
  MixOptions options_;
};

}  // namespace tern::data
