// Telling picture formats apart, and conversions between grey and colour.
// The decoders are in image_png.cpp and image_jpeg.cpp, resizing in resize.cpp.
#include "tern/data/image.h"

#include <algorithm>
#include <array>

#include "tern/base/check.h"

namespace tern::data {
namespace {

bool begins_with(ByteView bytes, std::initializer_list<uint8_t> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

}  // namespace

namespace detail {

void check_image_size(int64_t width, int64_t height, const std::string& name, const DecodeOptions& options) {
  TERN_CHECK(width > 0 && height > 0, DataError, "'{}': the picture is empty ({}x{})", name, width, height);
  TERN_CHECK(width <= options.max_pixels / height, DataError,
             "'{}': a picture of {}x{} is over the limit of {} pixels: scale it down or, in a program, raise "
             "DecodeOptions::max_pixels",
             name, width, height, options.max_pixels);
}

}  // namespace detail

void check_image(const Image& image, const char* caller) {
  TERN_CHECK(image.channels == 1 || image.channels == 3, ValueError,
             "{}: a picture has 1 or 3 channels, not {}", caller, image.channels);
  constexpr int64_t kMaxSide = int64_t{1} << 20;
  TERN_CHECK(image.height > 0 && image.width > 0 && image.height <= kMaxSide && image.width <= kMaxSide,
             ValueError, "{}: the sides of a picture are 1 to {} pixels, not {}x{}", caller, kMaxSide,
             image.width, image.height);
  const int64_t expected = image.height * image.width * image.channels;
  TERN_CHECK(static_cast<int64_t>(image.pixels.size()) == expected, ValueError,
             "{}: a {}x{} picture with {} channel{} has {} bytes, not {}", caller, image.width, image.height,
             image.channels, image.channels == 1 ? "" : "s", expected, image.pixels.size());
}

Image decode_image(ByteView bytes, const std::string& name, const DecodeOptions& options) {
  TERN_CHECK(options.channels == 0 || options.channels == 1 || options.channels == 3, ValueError,
             "decode_image: channels must be 0 (as in the file), 1 or 3, not {}", options.channels);
  if (begins_with(bytes, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'})) {
    return detail::decode_png(bytes, name, options);
  }
  if (begins_with(bytes, {0xFF, 0xD8, 0xFF})) return detail::decode_jpeg(bytes, name, options);
  TERN_CHECK(!bytes.empty(), DataError, "'{}': byte 0: the file is empty; expected a PNG or JPEG picture",
             name);
  std::string found;
  for (const uint8_t byte : bytes.first(std::min<size_t>(bytes.size(), 8))) {
    found += fmt::format("{}{:02x}", found.empty() ? "" : " ", byte);
  }
  TERN_THROW(DataError,
             "'{}': byte 0: neither PNG (it begins 89 50 4e 47) nor JPEG (ff d8 ff): the file begins {}; "
             "convert it to "
             "one of the two",
             name, found);
}

Image read_image(const std::string& path, const DecodeOptions& options) {
  return decode_image(read_file(path, /*max_bytes=*/uint64_t{1} << 30), path, options);
}

void write_png(const std::string& path, const Image& image) { write_file(path, encode_png(image)); }

Image to_gray(const Image& image) {
  check_image(image, "to_gray");
  if (image.channels == 1) return image;
  Image gray{image.height, image.width, 1, Bytes(static_cast<size_t>(image.height * image.width))};
  const uint8_t* in = image.pixels.data();
  for (uint8_t& out : gray.pixels) {
    out = static_cast<uint8_t>((in[0] * 19595u + in[1] * 38470u + in[2] * 7471u + 0x8000u) >> 16);
    in += 3;
  }
  return gray;
}

Image to_rgb(const Image& image) {
  check_image(image, "to_rgb");
  if (image.channels == 3) return image;
  Image rgb{image.height, image.width, 3, Bytes(image.pixels.size() * 3)};
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    std::fill_n(rgb.pixels.begin() + static_cast<std::ptrdiff_t>(3 * i), 3, image.pixels[i]);
  }
  return rgb;
}

Image invert(const Image& image) {
  check_image(image, "invert");
  Image inverted = image;
  for (uint8_t& value : inverted.pixels) value = static_cast<uint8_t>(255 - value);
  return inverted;
}

}  // namespace tern::data
