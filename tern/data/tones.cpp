// Negatives, posters, contrast and sharpness. The formulas are torchvision's (_functional_tensor.py; those of
// floats for posterize and equalize, and sharpness, transforms/v2/functional/_color.py).
#include "tern/data/tones.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "tern/base/check.h"
#include "tern/data/picture_checks.h"
#include "tern/data/picture_ops.h"

namespace tern::data {
namespace {

using detail::kBound;

/// The picture with `change(value)` for each value.
template <class Change>
Tensor each_value(const Tensor& image, Change&& change) {
  return detail::make_picture(image, image.shape(), [&]<class T>(const T* in, T* out) {
    std::transform(in, in + image.numel(), out, [&](T value) { return static_cast<T>(change(value)); });
  });
}

template <class T>
T negative(T value) {
  return static_cast<T>(kBound<T> - static_cast<float>(value));
}

/// A byte's place among the 256, or a float's.
int64_t tone_of(uint8_t value) { return value; }
int64_t tone_of(float value) {
  return static_cast<int64_t>(std::isnan(value) ? 0.0f : std::clamp(value * 255.999f, 0.0f, 255.0f));
}

/// For each tone of a channel the one that equalizes it, as PIL's ImageOps.equalize; itself where the tones
/// are too few.
std::array<int64_t, 256> equal_tones(const std::array<int64_t, 256>& histogram) {
  const auto last =
      std::find_if(histogram.rbegin(), histogram.rend(), [](int64_t count) { return count > 0; });
  const int64_t brightest = last == histogram.rend() ? 0 : *last;
  const int64_t step = (std::accumulate(histogram.begin(), histogram.end(), int64_t{0}) - brightest) / 255;
  std::array<int64_t, 256> tones;
  std::iota(tones.begin(), tones.end(), int64_t{0});
  if (step == 0) return tones;
  int64_t darker = step / 2;
  for (size_t i = 0; i < 256; darker += histogram[i++]) tones[i] = std::min<int64_t>(darker / step, 255);
  return tones;
}

/// The mean of a pixel, five times, and the eight around it. Whole numbers for bytes.
template <class T>
float smoothed(const T* pixel, int64_t width) {
  const auto row = [](const T* middle) {
    return static_cast<float>(middle[-1]) + static_cast<float>(middle[0]) + static_cast<float>(middle[1]);
  };
  const float sum = row(pixel - width) + row(pixel) + row(pixel + width) + 4 * static_cast<float>(*pixel);
  return std::is_same_v<T, uint8_t> ? std::nearbyint(sum / 13) : sum / 13;
}

/// With probability p what the operation makes of it.
template <class Operation>
Tensor sometimes(const Tensor& image, double p, Random& random, const char* transform,
                 Operation&& operation) {
  detail::check_gray_or_rgb(image, transform);
  return random.chance(p) ? operation(image) : image;
}

}  // namespace

namespace detail {

Tensor invert(const Tensor& image) {
  return each_value(image, []<class T>(T value) { return negative(value); });
}

Tensor posterize(const Tensor& image, int64_t bits) {
  const auto levels = static_cast<float>(1 << bits);
  return each_value(image, [&]<class T>(T value) {
    if constexpr (std::is_same_v<T, uint8_t>)
      return value & (0xFF << (8 - bits));
    else
      return std::clamp(std::floor(value * levels), 0.0f, levels - 1) / levels;
  });
}

Tensor solarize(const Tensor& image, double threshold) {
  const auto limit = static_cast<float>(threshold);
  return each_value(
      image, [&]<class T>(T value) { return static_cast<float>(value) >= limit ? negative(value) : value; });
}

Tensor autocontrast(const Tensor& image) {
  const int64_t pixels = image.size(1) * image.size(2);
  return make_picture(image, image.shape(), [&]<class T>(const T* in, T* out) {
    for (int64_t c = 0; c < image.size(0) && pixels > 0; ++c, in += pixels, out += pixels) {
      const auto [least, most] = std::minmax_element(in, in + pixels);
      auto dark = static_cast<float>(*least);
      float scale = 1 / (static_cast<float>(*most) - dark) * kBound<T>;  // in torch's order
      if (!std::isfinite(scale)) {
        dark = 0;
        scale = 1;
      }
      for (int64_t i = 0; i < pixels; ++i)
        out[i] = static_cast<T>(std::clamp((static_cast<float>(in[i]) - dark) * scale, 0.0f, kBound<T>));
    }
  });
}

Tensor equalize(const Tensor& image) {
  const int64_t pixels = image.size(1) * image.size(2);
  return make_picture(image, image.shape(), [&]<class T>(const T* in, T* out) {
    for (int64_t c = 0; c < image.size(0); ++c, in += pixels, out += pixels) {
      std::array<int64_t, 256> histogram{};
      for (int64_t i = 0; i < pixels; ++i) ++histogram[static_cast<size_t>(tone_of(in[i]))];
      const std::array<int64_t, 256> tones = equal_tones(histogram);
      for (int64_t i = 0; i < pixels; ++i) {
        const int64_t tone = tones[static_cast<size_t>(tone_of(in[i]))];
        if constexpr (std::is_same_v<T, uint8_t>)
          out[i] = static_cast<uint8_t>(tone);
        else
          out[i] = static_cast<float>(tone) / 255;
      }
    }
  });
}

Tensor adjust_sharpness(const Tensor& image, double factor) {
  const int64_t height = image.size(1), width = image.size(2);
  if (height <= 2 || width <= 2) return image;
  const auto part = static_cast<double>(static_cast<float>(1 - factor));
  return make_picture(image, image.shape(), [&]<class T>(const T* in, T* out) {
    for (int64_t c = 0; c < image.size(0); ++c)
      for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x, ++in, ++out) {
          *out = *in;
          if (y == 0 || x == 0 || y == height - 1 || x == width - 1) continue;
          // Rounded once, as torch's kernels do: a product of floats is exact in double.
          const auto value = static_cast<float>(*in);
          const auto mixed = static_cast<float>(static_cast<double>(value) +
                                                part * static_cast<double>(smoothed(in, width) - value));
          *out = static_cast<T>(std::clamp(mixed, 0.0f, kBound<T>));
        }
  });
}

}  // namespace detail

RandomInvert::RandomInvert(double p) : p_(p) { detail::check_probability(p, "RandomInvert"); }

Tensor RandomInvert::operator()(const Tensor& image, Random& random) const {
  return sometimes(image, p_, random, "RandomInvert", detail::invert);
}

RandomPosterize::RandomPosterize(int64_t bits, double p) : bits_(bits), p_(p) {
  TERN_CHECK(bits >= 0 && bits <= 8, ValueError, "RandomPosterize: bits must be 0 to 8, got {}", bits);
  detail::check_probability(p, "RandomPosterize");
}

Tensor RandomPosterize::operator()(const Tensor& image, Random& random) const {
  return sometimes(image, p_, random, "RandomPosterize",
                   [&](const Tensor& x) { return detail::posterize(x, bits_); });
}

RandomSolarize::RandomSolarize(double threshold, double p) : threshold_(threshold), p_(p) {
  TERN_CHECK(!std::isnan(threshold), ValueError, "RandomSolarize: threshold is no number");
  detail::check_probability(p, "RandomSolarize");
}

Tensor RandomSolarize::operator()(const Tensor& image, Random& random) const {
  detail::check_gray_or_rgb(image, "RandomSolarize");
  const float bound = image.dtype() == DType::UInt8 ? kBound<uint8_t> : kBound<float>;
  TERN_CHECK(threshold_ <= static_cast<double>(bound), ValueError,
             "RandomSolarize: threshold must be at most {} for a picture of {}, got {}", bound,
             name(image.dtype()), threshold_);
  return sometimes(image, p_, random, "RandomSolarize",
                   [&](const Tensor& x) { return detail::solarize(x, threshold_); });
}

RandomAutocontrast::RandomAutocontrast(double p) : p_(p) {
  detail::check_probability(p, "RandomAutocontrast");
}

Tensor RandomAutocontrast::operator()(const Tensor& image, Random& random) const {
  return sometimes(image, p_, random, "RandomAutocontrast", detail::autocontrast);
}

RandomEqualize::RandomEqualize(double p) : p_(p) { detail::check_probability(p, "RandomEqualize"); }

Tensor RandomEqualize::operator()(const Tensor& image, Random& random) const {
  return sometimes(image, p_, random, "RandomEqualize", detail::equalize);
}

RandomAdjustSharpness::RandomAdjustSharpness(double sharpness_factor, double p)
    : factor_(sharpness_factor), p_(p) {
  TERN_CHECK(sharpness_factor >= 0 && std::isfinite(sharpness_factor), ValueError,
             "RandomAdjustSharpness: sharpness_factor must be finite and not negative, got {}",
             sharpness_factor);
  detail::check_probability(p, "RandomAdjustSharpness");
}

Tensor RandomAdjustSharpness::operator()(const Tensor& image, Random& random) const {
  return sometimes(image, p_, random, "RandomAdjustSharpness",
                   [&](const Tensor& x) { return detail::adjust_sharpness(x, factor_); });
}

}  // namespace tern::data
