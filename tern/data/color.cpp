// The transforms of colour: grey pictures and ColorJitter. Those of single tones are in tones.cpp, those of
// place and size in transforms.cpp.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <type_traits>
#include <vector>

#include "tern/base/check.h"
#include "tern/data/picture_checks.h"
#include "tern/data/picture_ops.h"
#include "tern/data/transforms.h"

namespace tern::data {

using detail::Plane;

Grayscale::Grayscale(int64_t num_output_channels) : channels_(num_output_channels) {
  TERN_CHECK(channels_ == 1 || channels_ == 3, ValueError,
             "Grayscale: num_output_channels must be 1 or 3, got {}", channels_);
}

Tensor Grayscale::operator()(const Tensor& source) const {
  const Plane plane = detail::check_gray_or_rgb(source, "Grayscale");
  const int64_t n = plane.pixels();
  return detail::make_picture(
      source, {channels_, plane.height, plane.width}, [&]<class T>(const T* in, T* to) {
        for (int64_t i = 0; i < n; ++i) {
          if (plane.channels == 1)
            to[i] = in[i];
          else if constexpr (std::is_same_v<T, float>)
            to[i] = 0.299f * in[i] + 0.587f * in[n + i] + 0.114f * in[2 * n + i];
          else
            to[i] =
                static_cast<T>((in[i] * 19595u + in[n + i] * 38470u + in[2 * n + i] * 7471u + 0x8000u) >> 16);
        }
        for (int64_t c = 1; c < channels_; ++c) std::copy_n(to, n, to + c * n);
      });
}

RandomGrayscale::RandomGrayscale(double p) : p_(p) { detail::check_probability(p, "RandomGrayscale"); }

Tensor RandomGrayscale::operator()(const Tensor& image, Random& random) const {
  const Plane plane = detail::check_gray_or_rgb(image, "RandomGrayscale");
  return random.chance(p_) ? Grayscale(plane.channels)(image) : image;
}

namespace {

// The changes follow torchvision's adjustments of tensors, of which detail::blend() is the arithmetic.

/// The channels of a picture, changed in place.
template <class T>
struct Pixels {
  T* data;
  int64_t channels;
  int64_t count;

  T gray(int64_t i) const {
    if (channels == 1) return data[i];
    return static_cast<T>(0.2989f * static_cast<float>(data[i]) +
                          0.587f * static_cast<float>(data[count + i]) +
                          0.114f * static_cast<float>(data[2 * count + i]));
  }
};

template <class T>
void change_brightness(const Pixels<T>& pixels, double factor) {
  for (int64_t i = 0; i < pixels.channels * pixels.count; ++i)
    pixels.data[i] = detail::blend(pixels.data[i], 0, factor);
}

template <class T>
void change_contrast(const Pixels<T>& pixels, double factor) {
  double sum = 0;
  for (int64_t i = 0; i < pixels.count; ++i) sum += static_cast<double>(pixels.gray(i));
  const auto mean = static_cast<float>(sum / static_cast<double>(pixels.count));
  for (int64_t i = 0; i < pixels.channels * pixels.count; ++i)
    pixels.data[i] = detail::blend(pixels.data[i], mean, factor);
}

template <class T>
void change_saturation(const Pixels<T>& pixels, double factor) {
  if (pixels.channels == 1) return;
  for (int64_t i = 0; i < pixels.count; ++i) {
    const auto gray = static_cast<float>(pixels.gray(i));
    for (int64_t c = 0; c < 3; ++c) {
      T& value = pixels.data[c * pixels.count + i];
      value = detail::blend(value, gray, factor);
    }
  }
}

/// Hue, saturation and value, each 0 to 1.
std::array<float, 3> rgb_to_hsv(float r, float g, float b) {
  const float most = std::max({r, g, b}), range = most - std::min({r, g, b});
  if (range == 0) return {0, 0, most};
  float sixths;
  if (most == r)
    sixths = (g - b) / range;
  else if (most == g)
    sixths = 2 + (b - r) / range;
  else
    sixths = 4 + (r - g) / range;
  return {std::fmod(sixths / 6 + 1, 1.0f), range / most, most};
}

std::array<float, 3> hsv_to_rgb(float h, float s, float v) {
  const float sector = std::floor(h * 6), f = h * 6 - sector;
  const auto unit = [](float x) { return std::clamp(x, 0.0f, 1.0f); };
  const float p = unit(v * (1 - s)), q = unit(v * (1 - s * f)), t = unit(v * (1 - s * (1 - f)));
  switch (sector < 6 ? static_cast<int>(sector) : 0) {  // 6 where h is rounded to 1
    case 0:
      return {v, t, p};
    case 1:
      return {q, v, p};
    case 2:
      return {p, v, t};
    case 3:
      return {p, q, v};
    case 4:
      return {t, p, v};
    default:
      return {v, p, q};
  }
}

template <class T>
void change_hue(const Pixels<T>& pixels, double shift) {
  if (pixels.channels == 1) return;
  // Bytes are scaled as torchvision's convert_image_dtype does, in which every byte survives the way and
  // back.
  const auto to_byte = [](float x) { return static_cast<uint8_t>(x * 255.999f); };
  for (int64_t i = 0; i < pixels.count; ++i) {
    std::array<float, 3> rgb;
    for (size_t c = 0; c < 3; ++c)
      rgb[c] =
          static_cast<float>(pixels.data[static_cast<int64_t>(c) * pixels.count + i]) / detail::kBound<T>;
    const auto [h, s, v] = rgb_to_hsv(rgb[0], rgb[1], rgb[2]);
    const float shifted = h + static_cast<float>(shift);
    rgb = hsv_to_rgb(shifted - std::floor(shifted), s, v);
    for (size_t c = 0; c < 3; ++c) {
      T& value = pixels.data[static_cast<int64_t>(c) * pixels.count + i];
      if constexpr (std::is_same_v<T, uint8_t>)
        value = to_byte(rgb[c]);
      else
        value = rgb[c];
    }
  }
}

/// The picture after `adjust(pixels)`.
template <class Adjust>
Tensor adjusted(const Tensor& image, Adjust&& adjust) {
  const int64_t channels = image.size(0), count = image.size(1) * image.size(2);
  return detail::make_picture(image, image.shape(), [&]<class T>(const T* in, T* out) {
    std::copy_n(in, channels * count, out);
    if (count > 0) adjust(Pixels<T>{out, channels, count});
  });
}

}  // namespace

Tensor detail::adjust_brightness(const Tensor& image, double factor) {
  return adjusted(image, [=](const auto& pixels) { change_brightness(pixels, factor); });
}

Tensor detail::adjust_contrast(const Tensor& image, double factor) {
  return adjusted(image, [=](const auto& pixels) { change_contrast(pixels, factor); });
}

Tensor detail::adjust_saturation(const Tensor& image, double factor) {
  return adjusted(image, [=](const auto& pixels) { change_saturation(pixels, factor); });
}

ColorJitter::ColorJitter(const ColorJitterOptions& options) {
  const auto resolve = [](const JitterRange& range, const char* name, double center, double least,
                          double most) -> std::optional<std::array<double, 2>> {
    auto [low, high] = range.bounds;
    if (range.is_amount) {
      TERN_CHECK(high >= 0 && std::isfinite(high), ValueError,
                 "ColorJitter: {} must be a finite number that is not negative, got {}", name, high);
      low = center - high;
      high += center;
      if (center == 1) low = std::max(low, 0.0);
    }
    TERN_CHECK(low >= least && low <= high && high <= most, ValueError,
               "ColorJitter: {} must lie within {} to {}, the smaller bound first, got {} to {}", name, least,
               most, low, high);
    if (low == center && high == center) return {};
    return std::array{low, high};
  };
  constexpr double kNoLimit = 1e30;  // what a float multiplies by 255
  ranges_ = {resolve(options.brightness, "brightness", 1, 0, kNoLimit),
             resolve(options.contrast, "contrast", 1, 0, kNoLimit),
             resolve(options.saturation, "saturation", 1, 0, kNoLimit),
             resolve(options.hue, "hue", 0, -0.5, 0.5)};
}

Tensor ColorJitter::operator()(const Tensor& source, Random& random) const {
  detail::check_gray_or_rgb(source, "ColorJitter");
  const std::vector<size_t> order = detail::random_order(4, random);
  std::array<double, 4> factors = {};
  for (size_t i = 0; i < 4; ++i) {
    if (!ranges_[i]) continue;
    const auto [low, high] = *ranges_[i];
    factors[i] = random.between(low, high);
  }
  return adjusted(source, [&]<class T>(const Pixels<T>& pixels) {
    constexpr std::array kChanges = {change_brightness<T>, change_contrast<T>, change_saturation<T>,
                                     change_hue<T>};
    for (const size_t i : order)
      if (ranges_[i]) kChanges[i](pixels, factors[i]);
  });
}

}  // namespace tern::data
