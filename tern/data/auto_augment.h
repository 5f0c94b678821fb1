// Policies that draw operations on pictures, and how strong they are: AutoAugment, RandAugment,
// TrivialAugmentWide, AugMix. The operations' own transforms are in transforms.h and tones.h.
#pragma once

#include <cstdint>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/data/random.h"
#include "tern/data/transforms.h"

namespace tern::data {

// All take pictures of 1 or 3 channels, in bytes or in floats of which 0 to 1 are black to white, and throw
// ShapeError for others, ValueError for a fill of other than 1 number or one for each channel, or that a byte
// cannot have. Operations and their magnitudes are torchvision's, for tensors.

/// The pictures that a policy was learned on.
enum class AutoAugmentPolicy { kImageNet, kCIFAR10, kSVHN };

/// How AutoAugment moves pixels.
struct AutoAugmentOptions {
  Sampling interpolation = Sampling::kNearest;
  std::vector<double> fill = {};  ///< outside the picture: one number, or one for each channel; none: 0
};

/// One of 25 pairs of operations, each of them with its own probability and magnitude (Cubuk et al.,
/// "AutoAugment: Learning Augmentation Strategies from Data", 2019).
class AutoAugment {
 public:
  explicit AutoAugment(AutoAugmentPolicy policy = AutoAugmentPolicy::kImageNet,
                       AutoAugmentOptions options = {});
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  AutoAugmentPolicy policy_;
  AutoAugmentOptions options_;
};

/// How much RandAugment does.
struct RandAugmentOptions {
  int64_t num_ops = 2;              ///< one after the other
  int64_t magnitude = 9;            ///< 0 to num_magnitude_bins - 1
  int64_t num_magnitude_bins = 31;  ///< steps from nothing to the most
  Sampling interpolation = Sampling::kNearest;
  std::vector<double> fill = {};  ///< as for AutoAugment
};

/// `num_ops` operations of 14, each of this magnitude (Cubuk et al., "RandAugment: Practical automated data
/// augmentation with a reduced search space", 2020).
class RandAugment {
 public:
  /// Throws ValueError for a negative num_ops, fewer than 2 bins or a magnitude outside them.
  explicit RandAugment(RandAugmentOptions options = {});
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  RandAugmentOptions options_;
};

/// How fine TrivialAugmentWide draws.
struct TrivialAugmentWideOptions {
  int64_t num_magnitude_bins = 31;
  Sampling interpolation = Sampling::kNearest;
  std::vector<double> fill = {};  ///< as for AutoAugment
};

/// One operation of 14, of any magnitude, which go further than elsewhere (Mueller and Hutter,
/// "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation", 2021).
class TrivialAugmentWide {
 public:
  /// Throws ValueError for fewer than 2 bins.
  explicit TrivialAugmentWide(TrivialAugmentWideOptions options = {});
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  TrivialAugmentWideOptions options_;
};

/// What AugMix mixes.
struct AugMixOptions {
  int64_t severity = 3;       ///< 1 to 10: magnitudes are drawn from the first steps of 10
  int64_t mixture_width = 3;  ///< chains of operations
  int64_t chain_depth = -1;   ///< operations of a chain; not positive: 1 to 3, drawn for each
  double alpha = 1.0;         ///< of the Dirichlet and Beta distributions of the shares
  bool all_ops = true;        ///< brightness, colour, contrast and sharpness too
  Sampling interpolation = Sampling::kBilinear;
  std::vector<double> fill = {};  ///< as for AutoAugment
};

/// A mixture of the picture and of what chains of operations make of it (Hendrycks et al., "AugMix: A Simple
/// Data Processing Method to Improve Robustness and Uncertainty", 2020).
class AugMix {
 public:
  /// Throws ValueError for a severity outside 1 to 10, a mixture_width that is not positive, or an alpha that
  /// is not positive and finite.
  explicit AugMix(AugMixOptions options = {});
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  AugMixOptions options_;
};

}  // namespace tern::data
