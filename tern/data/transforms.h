// Transforms: what is done to the picture of a sample. Each is a callable on tensors [channels, height,
// width] on the CPU, uint8 or float32; random ones also take the sample's random stream. More of them are in
// tones.h, warp.h and auto_augment.h, those of whole batches in mixup.h. Resampling itself is in resize.h.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/data/image.h"
#include "tern/data/random.h"
#include "tern/data/resize.h"

namespace tern::data {

/// Any of the transforms below, or a callable Tensor(Tensor) or Tensor(Tensor, Random&). Empty ones change
/// nothing. Called from several threads at once when a DataLoader has workers.
class Transform {
 public:
  Transform() = default;
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Transform> &&
           (std::is_invocable_r_v<Tensor, const F&, const Tensor&, Random&> ||
            std::is_invocable_r_v<Tensor, const F&, const Tensor&>)) Transform(F function) {
    if constexpr (std::is_invocable_r_v<Tensor, const F&, const Tensor&, Random&>) {
      function_ = std::move(function);
    } else {
      std::function<Tensor(const Tensor&)> f(std::move(function));
      if (f) function_ = [f = std::move(f)](const Tensor& x, Random&) { return f(x); };
    }
  }

  explicit operator bool() const { return static_cast<bool>(function_); }
  Tensor operator()(const Tensor& x, Random& random) const { return function_ ? function_(x, random) : x; }

 private:
  std::function<Tensor(const Tensor&, Random&)> function_;
};

/// One transform after the other.
class Compose {
 public:
  explicit Compose(std::vector<Transform> steps) : steps_(std::move(steps)) {}
  template <class... Steps>
  requires(std::convertible_to<Steps, Transform>&&...) explicit Compose(Steps... steps)
      : steps_{Transform(std::move(steps))...} {}
  Tensor operator()(const Tensor& x, Random& random) const;

 private:
  std::vector<Transform> steps_;
};

/// With probability p all of the transforms one after the other, else none.
class RandomApply {
 public:
  explicit RandomApply(std::vector<Transform> transforms, double p = 0.5);
  Tensor operator()(const Tensor& x, Random& random) const;

 private:
  Compose steps_;
  double p_;
};

/// One of the transforms, drawn anew for each picture.
class RandomChoice {
 public:
  /// With the probabilities `p`, of which only the proportions count; by default all are alike. Throws
  /// ValueError for no transforms, and for probabilities that are none or not as many.
  explicit RandomChoice(std::vector<Transform> transforms, const std::vector<double>& p = {});
  Tensor operator()(const Tensor& x, Random& random) const;

 private:
  std::vector<Transform> transforms_;
  std::vector<double> ends_;  ///< ends_[i]: the sum of p[0] to p[i]
};

/// All of the transforms, in an order that is drawn anew for each picture.
class RandomOrder {
 public:
  explicit RandomOrder(std::vector<Transform> transforms);
  Tensor operator()(const Tensor& x, Random& random) const;

 private:
  std::vector<Transform> transforms_;
};

/// uint8 0 to 255 to float32 0 to 1 (divided by 255, as torchvision's ToTensor). float32 stays as it is.
struct ToFloat {
  Tensor operator()(const Tensor& image) const;
};

/// (x - mean) / std per channel, of a float32 picture.
class Normalize {
 public:
  /// One mean and one deviation for each channel, or one for all. Throws ValueError for lists of different
  /// lengths, empty ones, values that are not finite, or a deviation of 0.
  Normalize(std::vector<double> mean, std::vector<double> std);
  Tensor operator()(const Tensor& image) const;

 private:
  std::vector<float> mean_;
  std::vector<float> std_;
};

/// Another size, with anti-aliasing; uint8 pictures to the bit as PIL.
class Resize {
 public:
  /// The shorter side becomes `size`, the other keeps the proportion (rounded down, as torchvision does).
  explicit Resize(int64_t size, Interpolation interpolation = Interpolation::kBilinear);
  Resize(int64_t height, int64_t width, Interpolation interpolation = Interpolation::kBilinear);
  Tensor operator()(const Tensor& image) const;

 private:
  int64_t height_;
  int64_t width_;  ///< 0: height_ is the size of the shorter side
  Interpolation interpolation_;
};

/// The middle of the picture; a smaller one gets zeros around it.
class CenterCrop {
 public:
  explicit CenterCrop(int64_t size) : CenterCrop(size, size) {}
  CenterCrop(int64_t height, int64_t width);
  Tensor operator()(const Tensor& image) const;

 private:
  int64_t height_;
  int64_t width_;
};

/// How many pixels are added on each side.
struct Padding {
  Padding(int64_t all) : Padding(all, all) {}
  Padding(int64_t left_and_right, int64_t top_and_bottom)
      : Padding(left_and_right, top_and_bottom, left_and_right, top_and_bottom) {}
  Padding(int64_t left_, int64_t top_, int64_t right_, int64_t bottom_)
      : left(left_), top(top_), right(right_), bottom(bottom_) {}

  int64_t left;
  int64_t top;
  int64_t right;
  int64_t bottom;
};

/// What stands in the pixels that are added.
enum class PaddingMode {
  kConstant,   ///< `fill`
  kEdge,       ///< the pixel at the edge: 1 1 [1 2 3] 3 3
  kReflect,    ///< the picture mirrored, its edge not repeated: 3 2 [1 2 3] 2 1
  kSymmetric,  ///< the picture mirrored, its edge too: 2 1 [1 2 3] 3 2
};

/// How Pad continues a picture.
struct PadOptions {
  std::vector<double> fill = {0};  ///< one number, or one for each channel
  PaddingMode padding_mode = PaddingMode::kConstant;
};

/// Pixels added around the picture. A padding that is longer than the picture mirrors it again and again, as
/// torchvision does with PIL's pictures (numpy.pad).
///
///     Pad({4, 8}, {.padding_mode = PaddingMode::kReflect})
class Pad {
 public:
  /// Throws ValueError for a padding outside 0 to 2^20, and without a fill.
  explicit Pad(Padding padding, PadOptions options = {});
  /// Throws ValueError for a fill of other than 1 number or one for each channel, or that a byte cannot have;
  /// ShapeError for an empty picture unless the mode is kConstant.
  Tensor operator()(const Tensor& image) const;

 private:
  Padding padding_;
  PadOptions options_;
};

/// The four corners (upper left, upper right, lower left, lower right) and the middle, stacked: [5, channels,
/// height, width]. It comes last among transforms, or before ToFloat; a set's normalisation (ImageOptions)
/// takes the stack too. A network sees the crops of a batch [n, 5, c, h, w] side by side:
///
///     Tensor scores = net(x.flatten(0, 1)).view({x.size(0), 5, -1}).mean(/*dim=*/1);
class FiveCrop {
 public:
  explicit FiveCrop(int64_t size) : FiveCrop(size, size) {}
  FiveCrop(int64_t height, int64_t width);
  /// Throws ValueError for a picture that is too small.
  Tensor operator()(const Tensor& image) const;

 private:
  int64_t height_;
  int64_t width_;
};

/// How TenCrop flips.
struct TenCropOptions {
  bool vertical_flip = false;  ///< top and bottom instead of left and right
};

/// FiveCrop of the picture, then of the flipped picture: [10, channels, height, width].
class TenCrop {
 public:
  explicit TenCrop(int64_t size, const TenCropOptions& options = {}) : TenCrop(size, size, options) {}
  TenCrop(int64_t height, int64_t width, const TenCropOptions& options = {});
  /// Throws ValueError for a picture that is too small.
  Tensor operator()(const Tensor& image) const;

 private:
  int64_t height_;
  int64_t width_;
  bool vertical_flip_;
};

/// A piece at a random place of the picture with `padding` zeros on each side. Throws ValueError for a
/// picture that is too small.
class RandomCrop {
 public:
  explicit RandomCrop(int64_t size, int64_t padding = 0) : RandomCrop(size, size, padding) {}
  RandomCrop(int64_t height, int64_t width, int64_t padding);
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  int64_t height_;
  int64_t width_;
  int64_t padding_;
};

/// Mirrors left and right with probability p.
class RandomHorizontalFlip {
 public:
  explicit RandomHorizontalFlip(double p = 0.5);
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  double p_;
};

/// Turns top and bottom with probability p.
class RandomVerticalFlip {
 public:
  explicit RandomVerticalFlip(double p = 0.5);
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  double p_;
};

/// Which pieces RandomResizedCrop takes.
struct RandomResizedCropOptions {
  std::array<double, 2> scale = {0.08, 1.0};  ///< the least and the largest part of the picture's area
  std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0};  ///< of width to height, before it is resized
  Interpolation interpolation = Interpolation::kBilinear;
};

/// A piece of random area and proportion at a random place, resized; as torchvision, the largest piece in the
/// middle with an allowed proportion where ten tries find none that fits. Throws ValueError for ranges that
/// are none.
class RandomResizedCrop {
 public:
  explicit RandomResizedCrop(int64_t size, const RandomResizedCropOptions& options = {})
      : RandomResizedCrop(size, size, options) {}
  RandomResizedCrop(int64_t height, int64_t width, const RandomResizedCropOptions& options = {});
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  Resize resize_;
  RandomResizedCropOptions options_;
};

/// Colour to grey (luma, as to_gray), in 1 channel or repeated in 3.
class Grayscale {
 public:
  explicit Grayscale(int64_t num_output_channels = 1);
  Tensor operator()(const Tensor& image) const;

 private:
  int64_t channels_;
};

/// Colour to grey with probability p, in as many channels as the picture has.
class RandomGrayscale {
 public:
  explicit RandomGrayscale(double p = 0.1);
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  double p_;
};

/// How far an adjustment of ColorJitter goes: an amount around what changes nothing, or the two bounds.
struct JitterRange {
  JitterRange(double amount) : bounds{0, amount}, is_amount(true) {}
  JitterRange(double low, double high) : bounds{low, high}, is_amount(false) {}

  std::array<double, 2> bounds;
  bool is_amount;
};

/// Factors of brightness, contrast and saturation come from [max(0, 1 - amount), 1 + amount]: 0 gives black,
/// grey of the mean, or no colour; 1 changes nothing. The shift of the hue comes from [-amount, amount],
/// which is at most 0.5, half the circle of colours.
struct ColorJitterOptions {
  JitterRange brightness = 0;
  JitterRange contrast = 0;
  JitterRange saturation = 0;
  JitterRange hue = 0;
};

/// Random brightness, contrast, saturation and hue, one after the other in random order, as torchvision does
/// with tensors: floats are taken to be 0 to 1, grey pictures have neither saturation nor hue.
///
///     ColorJitter({.brightness = 0.4, .contrast = {0.8, 1.2}, .hue = 0.1})
class ColorJitter {
 public:
  /// Throws ValueError for a negative factor, or a hue outside -0.5 to 0.5.
  explicit ColorJitter(const ColorJitterOptions& options);
  /// Of 1 or 3 channels; throws ShapeError for another number.
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  std::array<std::optional<std::array<double, 2>>, 4> ranges_;  ///< in the order above; none: left alone
};

/// The standard deviation of a blur, in pixels: a number, or the bounds that one is drawn from.
struct BlurSigma {
  BlurSigma(double sigma) : low(sigma), high(sigma) {}
  BlurSigma(double low_, double high_) : low(low_), high(high_) {}

  double low;
  double high;
};

/// Each pixel becomes the mean of those around it, weighted by exp(-distance^2 / (2 sigma^2)); the picture is
/// mirrored at its edges. As torchvision does with tensors: bytes are computed as floats and rounded.
///
///     GaussianBlur(5, {0.1, 2.0})
class GaussianBlur {
 public:
  /// A square of kernel_size pixels. Throws ValueError unless it is odd and positive, and sigma positive, the
  /// smaller bound first.
  explicit GaussianBlur(int64_t kernel_size, BlurSigma sigma = {0.1, 2.0})
      : GaussianBlur(kernel_size, kernel_size, sigma) {}
  /// Width before height, as in torchvision's pairs.
  GaussianBlur(int64_t kernel_width, int64_t kernel_height, BlurSigma sigma);
  /// Throws ShapeError for a picture with a side that is not longer than half the kernel.
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  int64_t width_;
  int64_t height_;
  BlurSigma sigma_;
};

/// Where RandomErasing erases, and what stands there afterwards.
struct RandomErasingOptions {
  double p = 0.5;
  std::array<double, 2> scale = {0.02, 0.33};  ///< the least and the largest part of the picture's area
  std::array<double, 2> ratio = {0.3, 3.3};    ///< of height to width
  std::vector<double> value = {0};             ///< one number, or one for each channel
  bool random_value = false;                   ///< instead, standard normal numbers (value='random')
};

/// With probability p, a rectangle of random area and proportion at a random place is overwritten (Zhong et
/// al., "Random Erasing Data Augmentation", 2020); as torchvision, none where ten tries find none that is
/// smaller than the picture in both directions. It is made for pictures that are normalised.
class RandomErasing {
 public:
  /// Throws ValueError for ranges that are none, and without a value.
  explicit RandomErasing(RandomErasingOptions options = {});
  /// Throws ValueError for values that are not as many as the channels or that a byte cannot have, DTypeError
  /// for random values in bytes.
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  RandomErasingOptions options_;
};

/// What a pixel of a turned or otherwise mapped picture is made of.
enum class Sampling {
  kNearest,   ///< the pixel nearest to its place
  kBilinear,  ///< the four around its place, weighted by distance
};

/// An angle in degrees: drawn from -angle to angle, or between two bounds.
struct AngleRange {
  AngleRange(double angle) : low(-angle), high(angle) {}
  AngleRange(double low_, double high_) : low(low_), high(high_) {}

  double low;
  double high;
};

/// How a picture is turned.
struct RandomRotationOptions {
  Sampling interpolation = Sampling::kNearest;
  bool expand = false;  ///< the result is large enough for all of the picture, turned around its middle
  std::optional<std::array<double, 2>> center = {};  ///< x and y from the upper left corner; else the middle
  std::vector<double> fill = {0};  ///< outside the picture: one number, or one for each channel
};

/// Turned counter-clockwise by a random angle, as torchvision does with tensors.
class RandomRotation {
 public:
  /// Throws ValueError for bounds that are none, `center` together with `expand`, and without a fill.
  explicit RandomRotation(AngleRange degrees, RandomRotationOptions options = {});
  /// Throws ValueError for a fill of other than 1 number or one for each channel, or that a byte cannot have.
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  AngleRange degrees_;
  RandomRotationOptions options_;
};

/// What RandomAffine does besides turning.
struct RandomAffineOptions {
  std::array<double, 2> translate = {0, 0};  ///< the most, as parts of width and height
  std::array<double, 2> scale = {1, 1};      ///< the least and the largest factor
  AngleRange shear = 0;                      ///< along x, in degrees
  AngleRange shear_y = 0;                    ///< along y
  Sampling interpolation = Sampling::kNearest;
  std::vector<double> fill = {0};  ///< outside the picture: one number, or one for each channel
  std::optional<std::array<double, 2>> center = {};  ///< of turning, scaling and shearing, as for rotations
};

/// Turned clockwise, moved by whole pixels, scaled and sheared at random, in the size that it has, as
/// torchvision does with tensors.
///
///     RandomAffine(15, {.translate = {0.1, 0.1}, .scale = {0.9, 1.1}, .shear = 10})
class RandomAffine {
 public:
  /// Throws ValueError for ranges that are none, parts outside 0 to 1, and without a fill.
  explicit RandomAffine(AngleRange degrees, RandomAffineOptions options = {});
  /// Throws as RandomRotation.
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  AngleRange degrees_;
  RandomAffineOptions options_;
};

/// The picture as a uint8 tensor [channels, height, width].
Tensor image_to_tensor(const Image& image);

/// The tensor as a picture: uint8, or floats of which 0 to 1 become 0 to 255 (rounded, values outside
/// clipped). [height, width] or [channels, height, width] with 1 or 3 channels. Throws ShapeError and
/// DTypeError.
Image tensor_to_image(const Tensor& tensor);

}  // namespace tern::data
