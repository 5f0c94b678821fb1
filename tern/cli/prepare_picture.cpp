// From any picture to what a network takes (declared in cli/data_source.h).
#include <algorithm>
#include <cmath>
#include <vector>

#include "tern/cli/data_source.h"
#include "tern/data/resize.h"
#include "tern/data/transforms.h"

namespace tern::cli {
namespace {

using data::Image;

/// MNIST's digits fill a box of 20x20 in their 28x28.
constexpr double kBoxPart = 20.0 / 28;

uint8_t border_median(const Image& image) {
  std::vector<uint8_t> border;
  for (int64_t x = 0; x < image.width; ++x) {
    border.push_back(image.at(0, x));
    border.push_back(image.at(image.height - 1, x));
  }
  for (int64_t y = 0; y < image.height; ++y) {
    border.push_back(image.at(y, 0));
    border.push_back(image.at(y, image.width - 1));
  }
  const auto middle = border.begin() + static_cast<std::ptrdiff_t>(border.size() / 2);
  std::nth_element(border.begin(), middle, border.end());
  return *middle;
}

Image blank(int64_t height, int64_t width, int64_t channels) {
  return {height, width, channels, data::Bytes(static_cast<size_t>(height * width * channels), 0)};
}

Image crop(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  Image part = blank(height, width, image.channels);
  for (int64_t y = 0; y < height; ++y) {
    const auto* from = image.pixels.data() + ((top + y) * image.width + left) * image.channels;
    std::copy_n(from, width * image.channels, part.pixels.data() + y * width * image.channels);
  }
  return part;
}

/// The brightness between the background, which the border shows, and the ink becomes 0 to 255.
void stretch(Image& image) {
  const int background = border_median(image);
  const int ink = *std::max_element(image.pixels.begin(), image.pixels.end());
  if (ink - background < 16) return;
  for (uint8_t& p : image.pixels)
    p = static_cast<uint8_t>(std::clamp((p - background) * 255 / (ink - background), 0, 255));
}

/// Ink on a dark ground, scaled into the box and centred by its mass.
Image centre_ink(const Image& image, int64_t height, int64_t width) {
  constexpr int kInk = 64;
  int64_t top = image.height, bottom = -1, left = image.width, right = -1;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      if (image.at(y, x) < kInk) continue;
      top = std::min(top, y);
      bottom = std::max(bottom, y);
      left = std::min(left, x);
      right = std::max(right, x);
    }
  }
  if (bottom < 0) return data::resize(image, height, width, data::Interpolation::kArea);
  Image ink = crop(image, top, left, bottom - top + 1, right - left + 1);
  const double scale = std::min(kBoxPart * static_cast<double>(height) / static_cast<double>(ink.height),
                                kBoxPart * static_cast<double>(width) / static_cast<double>(ink.width));
  auto scaled = [&](int64_t side, int64_t most) {
    return std::clamp<int64_t>(std::llround(static_cast<double>(side) * scale), 1, most);
  };
  ink = data::resize(ink, scaled(ink.height, height), scaled(ink.width, width));
  double mass = 0, mass_y = 0, mass_x = 0;
  for (int64_t y = 0; y < ink.height; ++y) {
    for (int64_t x = 0; x < ink.width; ++x) {
      const double m = ink.at(y, x);
      mass += m;
      mass_y += m * (static_cast<double>(y) + 0.5);
      mass_x += m * (static_cast<double>(x) + 0.5);
    }
  }
  auto offset = [&](int64_t outer, int64_t inner, double centre) {
    const auto wanted = std::llround(static_cast<double>(outer) / 2 -
                                     (mass > 0 ? centre / mass : static_cast<double>(inner) / 2));
    return std::clamp<int64_t>(wanted, 0, outer - inner);
  };
  const int64_t at_y = offset(height, ink.height, mass_y), at_x = offset(width, ink.width, mass_x);
  Image result = blank(height, width, 1);
  for (int64_t y = 0; y < ink.height; ++y)
    for (int64_t x = 0; x < ink.width; ++x)
      result.pixels[static_cast<size_t>((at_y + y) * width + at_x + x)] = ink.at(y, x);
  return result;
}

Image see_digit(const Image& picture, const PictureFormat& format) {
  Image image = data::to_gray(picture);
  if (border_median(image) > 127) image = data::invert(image);
  // A picture that has the form of the training set already is left as it is.
  if (image.height == format.height && image.width == format.width) return image;
  stretch(image);
  return centre_ink(image, format.height, format.width);
}

Image see_scene(const Image& picture, const PictureFormat& format) {
  Image image = format.channels == 1 ? data::to_gray(picture) : data::to_rgb(picture);
  // The largest part from the middle that has the right proportions.
  const int64_t height =
      std::min(image.height, std::max<int64_t>(1, image.width * format.height / format.width));
  const int64_t width =
      std::min(image.width, std::max<int64_t>(1, image.height * format.width / format.height));
  image = crop(image, (image.height - height) / 2, (image.width - width) / 2, height, width);
  image = data::resize(image, format.height, format.width);
  if (format.kind == "fashion" && border_median(image) > 127) image = data::invert(image);
  return image;
}

}  // namespace

Seen prepare_picture(const Image& picture, const PictureFormat& format) {
  const bool digit = format.kind == "digits" || format.kind == "mnist";
  Seen seen;
  seen.image = digit ? see_digit(picture, format) : see_scene(picture, format);
  const Tensor floats = data::ToFloat()(data::image_to_tensor(seen.image));
  seen.input = data::Normalize(format.mean, format.std)(floats).unsqueeze(0);
  return seen;
}

}  // namespace tern::cli
