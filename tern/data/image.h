// Pictures as 8-bit pixels in memory: decoding PNG and JPEG, encoding PNG, grey and colour, resizing.
// Transforms of tensors are in transforms.h, folders of pictures in image_folder.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tern/data/bytes.h"

namespace tern::data {

/// An 8-bit picture. `pixels` holds height x width x channels bytes, row by row, channels together.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;  ///< 1 (grey) or 3 (red, green, blue)
  Bytes pixels;

  uint8_t at(int64_t y, int64_t x, int64_t channel = 0) const {
    return pixels[static_cast<size_t>((y * width + x) * channels + channel)];
  }
};

/// How pictures are decoded.
struct DecodeOptions {
  /// 1 (grey), 3 (red, green, blue), or 0: whichever of the two the file has.
  int64_t channels = 0;
  /// Transparent pixels are blended over this grey. Without it transparency is dropped, as PIL's convert
  /// does.
  std::optional<uint8_t> background = {};
  /// Pictures with more pixels are refused before memory is taken for them.
  int64_t max_pixels = int64_t{1} << 26;
};

/// Decodes a PNG or JPEG picture, told by its content. `name` is for messages. PNG: any bit depth, palette,
/// grey, alpha, interlaced; 16-bit samples are scaled to 8. JPEG: grey, YCbCr, RGB, CMYK and YCCK, baseline
/// and progressive. Throws DataError with the name and, where known, the byte at which the file is broken;
/// ValueError for impossible options.
Image decode_image(ByteView bytes, const std::string& name, const DecodeOptions& options = {});

/// Reads and decodes a picture file. Throws IoError if it cannot be read, else as decode_image.
Image read_image(const std::string& path, const DecodeOptions& options = {});

/// The picture as a PNG file. Throws ValueError if its sizes and pixels disagree.
Bytes encode_png(const Image& image);

/// Writes the picture as a PNG file. Throws IoError if it cannot be written, else as encode_png.
void write_png(const std::string& path, const Image& image);

/// The picture in grey: luma 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601), to the bit as PIL's convert("L").
Image to_gray(const Image& image);

/// The picture in colour: a grey one has its channel repeated.
Image to_rgb(const Image& image);

/// 255 minus every value.
Image invert(const Image& image);

/// Throws ValueError, beginning with `caller`, unless channels are 1 or 3, sizes positive and pixels as many.
void check_image(const Image& image, const char* caller);

namespace detail {
// One decoder per format, for decode_image, tests and fuzzing.
Image decode_png(ByteView bytes, const std::string& name, const DecodeOptions& options);
Image decode_jpeg(ByteView bytes, const std::string& name, const DecodeOptions& options);
void check_image_size(int64_t width, int64_t height, const std::string& name, const DecodeOptions& options);
}  // namespace detail

}  // namespace tern::data
