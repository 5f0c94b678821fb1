// Policies of augmentation. Tables, spaces of magnitudes and operations are those of torchvision's
// transforms/autoaugment.py.
#include "tern/data/auto_augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <type_traits>
#include <utility>

#include "tern/base/check.h"
#include "tern/data/dirichlet.h"
#include "tern/data/picture_checks.h"
#include "tern/data/picture_ops.h"
#include "tern/data/sampling.h"

namespace tern::data {
namespace {

enum class Op {
  kIdentity,
  kShearX,  // from here on with a sign
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,  // up to here
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
  kInvert
};

/// How many there are without kInvert, which only AutoAugment uses.
constexpr int64_t kOps = 14;

/// An operation of AutoAugment: whether, and how strong, of 10 steps.
struct PolicyStep {
  Op op;
  double probability;
  int64_t step;
};
using Policy = std::array<std::array<PolicyStep, 2>, 25>;

constexpr Policy kImageNetPolicy = {{
    {{{Op::kPosterize, 0.4, 8}, {Op::kRotate, 0.6, 9}}},
    {{{Op::kSolarize, 0.6, 5}, {Op::kAutoContrast, 0.6, 0}}},
    {{{Op::kEqualize, 0.8, 0}, {Op::kEqualize, 0.6, 0}}},
    {{{Op::kPosterize, 0.6, 7}, {Op::kPosterize, 0.6, 6}}},
    {{{Op::kEqualize, 0.4, 0}, {Op::kSolarize, 0.2, 4}}},
    {{{Op::kEqualize, 0.4, 0}, {Op::kRotate, 0.8, 8}}},
    {{{Op::kSolarize, 0.6, 3}, {Op::kEqualize, 0.6, 0}}},
    {{{Op::kPosterize, 0.8, 5}, {Op::kEqualize, 1, 0}}},
    {{{Op::kRotate, 0.2, 3}, {Op::kSolarize, 0.6, 8}}},
    {{{Op::kEqualize, 0.6, 0}, {Op::kPosterize, 0.4, 6}}},
    {{{Op::kRotate, 0.8, 8}, {Op::kColor, 0.4, 0}}},
    {{{Op::kRotate, 0.4, 9}, {Op::kEqualize, 0.6, 0}}},
    {{{Op::kEqualize, 0, 0}, {Op::kEqualize, 0.8, 0}}},
    {{{Op::kInvert, 0.6, 0}, {Op::kEqualize, 1, 0}}},
    {{{Op::kColor, 0.6, 4}, {Op::kContrast, 1, 8}}},
    {{{Op::kRotate, 0.8, 8}, {Op::kColor, 1, 2}}},
    {{{Op::kColor, 0.8, 8}, {Op::kSolarize, 0.8, 7}}},
    {{{Op::kSharpness, 0.4, 7}, {Op::kInvert, 0.6, 0}}},
    {{{Op::kShearX, 0.6, 5}, {Op::kEqualize, 1, 0}}},
    {{{Op::kColor, 0.4, 0}, {Op::kEqualize, 0.6, 0}}},
    {{{Op::kEqualize, 0.4, 0}, {Op::kSolarize, 0.2, 4}}},
    {{{Op::kSolarize, 0.6, 5}, {Op::kAutoContrast, 0.6, 0}}},
    {{{Op::kInvert, 0.6, 0}, {Op::kEqualize, 1, 0}}},
    {{{Op::kColor, 0.6, 4}, {Op::kContrast, 1, 8}}},
    {{{Op::kEqualize, 0.8, 0}, {Op::kEqualize, 0.6, 0}}},
}};

constexpr Policy kCIFAR10Policy = {{
    {{{Op::kInvert, 0.1, 0}, {Op::kContrast, 0.2, 6}}},
    {{{Op::kRotate, 0.7, 2}, {Op::kTranslateX, 0.3, 9}}},
    {{{Op::kSharpness, 0.8, 1}, {Op::kSharpness, 0.9, 3}}},
    {{{Op::kShearY, 0.5, 8}, {Op::kTranslateY, 0.7, 9}}},
    {{{Op::kAutoContrast, 0.5, 0}, {Op::kEqualize, 0.9, 0}}},
    {{{Op::kShearY, 0.2, 7}, {Op::kPosterize, 0.3, 7}}},
    {{{Op::kColor, 0.4, 3}, {Op::kBrightness, 0.6, 7}}},
    {{{Op::kSharpness, 0.3, 9}, {Op::kBrightness, 0.7, 9}}},
    {{{Op::kEqualize, 0.6, 0}, {Op::kEqualize, 0.5, 0}}},
    {{{Op::kContrast, 0.6, 7}, {Op::kSharpness, 0.6, 5}}},
    {{{Op::kColor, 0.7, 7}, {Op::kTranslateX, 0.5, 8}}},
    {{{Op::kEqualize, 0.3, 0}, {Op::kAutoContrast, 0.4, 0}}},
    {{{Op::kTranslateY, 0.4, 3}, {Op::kSharpness, 0.2, 6}}},
    {{{Op::kBrightness, 0.9, 6}, {Op::kColor, 0.2, 8}}},
    {{{Op::kSolarize, 0.5, 2}, {Op::kInvert, 0, 0}}},
    {{{Op::kEqualize, 0.2, 0}, {Op::kAutoContrast, 0.6, 0}}},
    {{{Op::kEqualize, 0.2, 0}, {Op::kEqualize, 0.6, 0}}},
    {{{Op::kColor, 0.9, 9}, {Op::kEqualize, 0.6, 0}}},
    {{{Op::kAutoContrast, 0.8, 0}, {Op::kSolarize, 0.2, 8}}},
    {{{Op::kBrightness, 0.1, 3}, {Op::kColor, 0.7, 0}}},
    {{{Op::kSolarize, 0.4, 5}, {Op::kAutoContrast, 0.9, 0}}},
    {{{Op::kTranslateY, 0.9, 9}, {Op::kTranslateY, 0.7, 9}}},
    {{{Op::kAutoContrast, 0.9, 0}, {Op::kSolarize, 0.8, 3}}},
    {{{Op::kEqualize, 0.8, 0}, {Op::kInvert, 0.1, 0}}},
    {{{Op::kTranslateY, 0.7, 9}, {Op::kAutoContrast, 0.9, 0}}},
}};

constexpr Policy kSVHNPolicy = {{
    {{{Op::kShearX, 0.9, 4}, {Op::kInvert, 0.2, 0}}},
    {{{Op::kShearY, 0.9, 8}, {Op::kInvert, 0.7, 0}}},
    {{{Op::kEqualize, 0.6, 0}, {Op::kSolarize, 0.6, 6}}},
    {{{Op::kInvert, 0.9, 0}, {Op::kEqualize, 0.6, 0}}},
    {{{Op::kEqualize, 0.6, 0}, {Op::kRotate, 0.9, 3}}},
    {{{Op::kShearX, 0.9, 4}, {Op::kAutoContrast, 0.8, 0}}},
    {{{Op::kShearY, 0.9, 8}, {Op::kInvert, 0.4, 0}}},
    {{{Op::kShearY, 0.9, 5}, {Op::kSolarize, 0.2, 6}}},
    {{{Op::kInvert, 0.9, 0}, {Op::kAutoContrast, 0.8, 0}}},
    {{{Op::kEqualize, 0.6, 0}, {Op::kRotate, 0.9, 3}}},
    {{{Op::kShearX, 0.9, 4}, {Op::kSolarize, 0.3, 3}}},
    {{{Op::kShearY, 0.8, 8}, {Op::kInvert, 0.7, 0}}},
    {{{Op::kEqualize, 0.9, 0}, {Op::kTranslateY, 0.6, 6}}},
    {{{Op::kInvert, 0.9, 0}, {Op::kEqualize, 0.6, 0}}},
    {{{Op::kContrast, 0.3, 3}, {Op::kRotate, 0.8, 4}}},
    {{{Op::kInvert, 0.8, 0}, {Op::kTranslateY, 0, 2}}},
    {{{Op::kShearY, 0.7, 6}, {Op::kSolarize, 0.4, 8}}},
    {{{Op::kInvert, 0.6, 0}, {Op::kRotate, 0.8, 4}}},
    {{{Op::kShearY, 0.3, 7}, {Op::kTranslateX, 0.9, 3}}},
    {{{Op::kShearX, 0.1, 6}, {Op::kInvert, 0.6, 0}}},
    {{{Op::kSolarize, 0.7, 2}, {Op::kTranslateY, 0.6, 7}}},
    {{{Op::kShearY, 0.8, 4}, {Op::kInvert, 0.8, 0}}},
    {{{Op::kShearX, 0.7, 9}, {Op::kTranslateY, 0.8, 3}}},
    {{{Op::kShearY, 0.8, 5}, {Op::kAutoContrast, 0.7, 0}}},
    {{{Op::kShearX, 0.7, 2}, {Op::kInvert, 0.1, 0}}},
}};
/// The largest magnitudes.
struct Magnitudes {
  double shear = 0.3;
  std::array<double, 2> move = {0, 0};  ///< in pixels
  double degrees = 30;
  double factor = 0.9;                   ///< of colour, besides 1
  std::array<int64_t, 2> bits = {8, 4};  ///< of posterize
};

/// How pixels are moved.
struct Look {
  Sampling interpolation;
  const std::vector<double>& fill;
};

/// Of the picture's sides, for AutoAugment and RandAugment.
Magnitudes usual_magnitudes(const detail::Plane& plane) {
  constexpr double kPart = 150.0 / 331.0;
  return {.move = {kPart * static_cast<double>(plane.width), kPart * static_cast<double>(plane.height)}};
}

/// Step `step` of `steps` on the way from the least to the most.
double magnitude_of(Op op, int64_t step, int64_t steps, const Magnitudes& most, float white) {
  const auto up_to = [&](double last) {
    return static_cast<double>(detail::linspace_at(0, static_cast<float>(last), step, steps));
  };
  switch (op) {
    case Op::kShearX:
    case Op::kShearY:
      return up_to(most.shear);
    case Op::kTranslateX:
      return up_to(most.move[0]);
    case Op::kTranslateY:
      return up_to(most.move[1]);
    case Op::kRotate:
      return up_to(most.degrees);
    case Op::kBrightness:
    case Op::kColor:
    case Op::kContrast:
    case Op::kSharpness:
      return up_to(most.factor);
    case Op::kPosterize:
      return static_cast<double>(most.bits[0]) -
             std::nearbyint(static_cast<double>(step * (most.bits[0] - most.bits[1])) /
                            static_cast<double>(steps - 1));
    case Op::kSolarize:
      return static_cast<double>(detail::linspace_at(white, 0, step, steps));
    default:
      return 0;
  }
}

Tensor with_operation(const Tensor& image, Op op, double magnitude, const Look& look) {
  const auto moved = [&](const detail::AffineChange& change) {
    return detail::affine(image, change, look.interpolation, look.fill);
  };
  const auto shear_degrees = [&] { return std::atan(magnitude) * 180 / std::numbers::pi; };
  switch (op) {
    case Op::kShearX:
      return moved({.shear = {shear_degrees(), 0}, .center = {{0, 0}}});
    case Op::kShearY:
      return moved({.shear = {0, shear_degrees()}, .center = {{0, 0}}});
    case Op::kTranslateX:
      return moved({.translate = {std::trunc(magnitude), 0}});
    case Op::kTranslateY:
      return moved({.translate = {0, std::trunc(magnitude)}});
    case Op::kRotate:
      return moved({.degrees = -magnitude});
    case Op::kBrightness:
      return detail::adjust_brightness(image, 1 + magnitude);
    case Op::kColor:
      return detail::adjust_saturation(image, 1 + magnitude);
    case Op::kContrast:
      return detail::adjust_contrast(image, 1 + magnitude);
    case Op::kSharpness:
      return detail::adjust_sharpness(image, 1 + magnitude);
    case Op::kPosterize:
      return detail::posterize(image, static_cast<int64_t>(magnitude));
    case Op::kSolarize:
      return detail::solarize(image, magnitude);
    case Op::kAutoContrast:
      return detail::autocontrast(image);
    case Op::kEqualize:
      return detail::equalize(image);
    case Op::kInvert:
      return detail::invert(image);
    default:
      return image;
  }
}

/// The operation with one of its magnitudes, the sign of which is drawn if it has one.
Tensor augmented(const Tensor& image, Op op, int64_t step, int64_t steps, const Magnitudes& most,
                 const Look& look, Random& random) {
  const float white = image.dtype() == DType::UInt8 ? detail::kBound<uint8_t> : detail::kBound<float>;
  double magnitude = magnitude_of(op, step, steps, most, white);
  if (op >= Op::kShearX && op <= Op::kSharpness && random.chance(0.5)) magnitude = -magnitude;
  return with_operation(image, op, magnitude, look);
}

detail::Plane check_augmented(const Tensor& image, const std::vector<double>& fill, const char* transform) {
  const detail::Plane plane = detail::check_gray_or_rgb(image, transform);
  if (!fill.empty()) detail::check_channel_values(fill, plane, image.dtype(), transform, "fill");
  return plane;
}

void check_bins(int64_t bins, const char* transform) {
  TERN_CHECK(bins >= 2, ValueError, "{}: num_magnitude_bins must be at least 2, got {}", transform, bins);
}

}  // namespace

AutoAugment::AutoAugment(AutoAugmentPolicy policy, AutoAugmentOptions options)
    : policy_(policy), options_(std::move(options)) {}

Tensor AutoAugment::operator()(const Tensor& image, Random& random) const {
  const detail::Plane plane = check_augmented(image, options_.fill, "AutoAugment");
  const Policy& policy = policy_ == AutoAugmentPolicy::kImageNet  ? kImageNetPolicy
                         : policy_ == AutoAugmentPolicy::kCIFAR10 ? kCIFAR10Policy
                                                                  : kSVHNPolicy;
  Tensor result = image;
  for (const auto& [op, probability, step] : policy[static_cast<size_t>(random.below(std::ssize(policy)))])
    if (random.chance(probability))
      result = augmented(result, op, step, /*steps=*/10, usual_magnitudes(plane),
                         {options_.interpolation, options_.fill}, random);
  return result;
}

RandAugment::RandAugment(RandAugmentOptions options) : options_(std::move(options)) {
  TERN_CHECK(options_.num_ops >= 0, ValueError, "RandAugment: num_ops must not be negative, got {}",
             options_.num_ops);
  check_bins(options_.num_magnitude_bins, "RandAugment");
  TERN_CHECK(options_.magnitude >= 0 && options_.magnitude < options_.num_magnitude_bins, ValueError,
             "RandAugment: magnitude must be 0 to {} with {} bins, got {}", options_.num_magnitude_bins - 1,
             options_.num_magnitude_bins, options_.magnitude);
}

Tensor RandAugment::operator()(const Tensor& image, Random& random) const {
  const detail::Plane plane = check_augmented(image, options_.fill, "RandAugment");
  Tensor result = image;
  for (int64_t i = 0; i < options_.num_ops; ++i) {
    const auto op = static_cast<Op>(random.below(kOps));
    result = augmented(result, op, options_.magnitude, options_.num_magnitude_bins, usual_magnitudes(plane),
                       {options_.interpolation, options_.fill}, random);
  }
  return result;
}

TrivialAugmentWide::TrivialAugmentWide(TrivialAugmentWideOptions options) : options_(std::move(options)) {
  check_bins(options_.num_magnitude_bins, "TrivialAugmentWide");
}

Tensor TrivialAugmentWide::operator()(const Tensor& image, Random& random) const {
  check_augmented(image, options_.fill, "TrivialAugmentWide");
  const Magnitudes most{.shear = 0.99, .move = {32, 32}, .degrees = 135, .factor = 0.99, .bits = {8, 2}};
  const auto op = static_cast<Op>(random.below(kOps));
  const int64_t step = random.below(options_.num_magnitude_bins);
  return augmented(image, op, step, options_.num_magnitude_bins, most,
                   {options_.interpolation, options_.fill}, random);
}

AugMix::AugMix(AugMixOptions options) : options_(std::move(options)) {
  TERN_CHECK(options_.severity >= 1 && options_.severity <= 10, ValueError,
             "AugMix: severity must be 1 to 10, got {}", options_.severity);
  TERN_CHECK(options_.mixture_width >= 1, ValueError, "AugMix: mixture_width must be positive, got {}",
             options_.mixture_width);
  TERN_CHECK(options_.alpha > 0 && std::isfinite(options_.alpha), ValueError,
             "AugMix: alpha must be positive and finite, got {}", options_.alpha);
}

Tensor AugMix::operator()(const Tensor& image, Random& random) const {
  const detail::Plane plane = check_augmented(image, options_.fill, "AugMix");
  constexpr std::array kChainOps = {Op::kShearX,   Op::kShearY,     Op::kTranslateX, Op::kTranslateY,
                                    Op::kRotate,   Op::kPosterize,  Op::kSolarize,   Op::kAutoContrast,
                                    Op::kEqualize, Op::kBrightness, Op::kColor,      Op::kContrast,
                                    Op::kSharpness};
  const int64_t ops = std::ssize(kChainOps) - (options_.all_ops ? 0 : 4);
  const Magnitudes most{.move = {static_cast<double>(plane.width) / 3, static_cast<double>(plane.height) / 3},
                        .bits = {4, 0}};
  const std::vector<double> shares = detail::random_dirichlet(2, options_.alpha, random),
                            parts = detail::random_dirichlet(static_cast<size_t>(options_.mixture_width),
                                                             options_.alpha, random);
  std::vector<float> sums(static_cast<size_t>(image.numel()));
  const auto add = [&](const Tensor& picture, double share) {
    const Tensor values = picture.contiguous();
    const auto add_values = [&](const auto* value) {
      for (float& sum : sums) sum += static_cast<float>(share) * static_cast<float>(*value++);
    };
    if (values.dtype() == DType::UInt8)
      add_values(values.data<const uint8_t>());
    else
      add_values(values.data<const float>());
  };
  add(image, shares[0]);
  for (const double part : parts) {
    Tensor chain = image;
    const int64_t depth = options_.chain_depth > 0 ? options_.chain_depth : 1 + random.below(3);
    for (int64_t i = 0; i < depth; ++i) {
      const Op op = kChainOps[static_cast<size_t>(random.below(ops))];
      chain = augmented(chain, op, random.below(options_.severity), /*steps=*/10, most,
                        {options_.interpolation, options_.fill}, random);
    }
    add(chain, part * shares[1]);
  }
  return detail::make_picture(image, image.shape(), [&]<class T>(const T*, T* out) {
    for (const float sum : sums)
      *out++ = static_cast<T>(std::is_same_v<T, uint8_t> ? std::clamp(sum, 0.0f, 255.0f) : sum);
  });
}

}  // namespace tern::data
