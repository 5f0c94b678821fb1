// JPEG pictures through libjpeg-turbo. The library leaves on an error by longjmp: between setjmp and its
// calls only plain data may live, so what owns memory is kept by the caller of the two steps.
#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>

#include "tern/base/check.h"
#include "tern/data/image.h"

namespace tern::data {
namespace {

/// Progressive files may repeat scans at will; no honest one has that many.
constexpr int kMaxScans = 500;
/// Memory that the decoder may take for the coefficients of a progressive file.
constexpr long kMaxDecoderBytes = 1L << 29;

struct ErrorManager {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void fail(j_common_ptr info) {
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  manager->base.format_message(info, manager->message);
  std::longjmp(manager->jump, 1);
}

/// libjpeg fills what is missing with grey and only warns; a data set wants to know.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_TOO_MUCH_DATA:
      return;
    default:
      fail(info);
  }
}

void no_output(j_common_ptr) {}

void on_progress(j_common_ptr info) {
  auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number > kMaxScans) {
    auto* manager = reinterpret_cast<ErrorManager*>(info->err);
    std::snprintf(manager->message, sizeof manager->message, "more than %d scans", kMaxScans);
    std::longjmp(manager->jump, 1);
  }
}

struct Decoder {
  jpeg_decompress_struct info{};
  ErrorManager errors{};
  jpeg_progress_mgr progress{};
  bool created = false;

  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() {
    if (created) jpeg_destroy_decompress(&info);
  }
  size_t position(ByteView bytes) const {
    return bytes.size() -
           (info.src != nullptr ? std::min(info.src->bytes_in_buffer, bytes.size()) : bytes.size());
  }
};

bool read_header(Decoder& decoder, const uint8_t* bytes, size_t size) {
  decoder.info.err = jpeg_std_error(&decoder.errors.base);
  decoder.errors.base.error_exit = &fail;
  decoder.errors.base.emit_message = &on_message;
  decoder.errors.base.output_message = &no_output;
  if (setjmp(decoder.errors.jump) != 0) return false;
  jpeg_create_decompress(&decoder.info);
  decoder.created = true;
  decoder.info.mem->max_memory_to_use = kMaxDecoderBytes;
  decoder.progress.progress_monitor = &on_progress;
  decoder.info.progress = &decoder.progress;
  jpeg_mem_src(&decoder.info, bytes, static_cast<unsigned long>(size));
  jpeg_read_header(&decoder.info, /*require_image=*/TRUE);
  return true;
}

/// Decodes into rows of `row_bytes`, which the caller has sized by the header.
bool read_rows(Decoder& decoder, uint8_t* pixels, size_t row_bytes) {
  if (setjmp(decoder.errors.jump) != 0) return false;
  jpeg_start_decompress(&decoder.info);
  while (decoder.info.output_scanline < decoder.info.output_height) {
    JSAMPROW row = pixels + size_t{decoder.info.output_scanline} * row_bytes;
    jpeg_read_scanlines(&decoder.info, &row, 1);
  }
  jpeg_finish_decompress(&decoder.info);
  return true;
}

/// CMYK as Adobe writes it (inverted: 255 means no ink), or as the standard has it.
Bytes cmyk_to_rgb(const Bytes& cmyk, bool inverted) {
  Bytes rgb(cmyk.size() / 4 * 3);
  for (size_t i = 0; i < cmyk.size() / 4; ++i) {
    const auto light = [&](size_t c) -> unsigned {
      return inverted ? cmyk[4 * i + c] : 255u - cmyk[4 * i + c];
    };
    for (size_t c = 0; c < 3; ++c) rgb[3 * i + c] = static_cast<uint8_t>((light(c) * light(3) + 127u) / 255u);
  }
  return rgb;
}

}  // namespace

Image detail::decode_jpeg(ByteView bytes, const std::string& name, const DecodeOptions& options) {
  Decoder decoder;
  TERN_CHECK(read_header(decoder, bytes.data(), bytes.size()), DataError, "'{}': byte {}: broken JPEG: {}",
             name, decoder.position(bytes), decoder.errors.message);
  const jpeg_decompress_struct& info = decoder.info;
  check_image_size(info.image_width, info.image_height, name, options);
  size_t channels = 3;
  switch (info.jpeg_color_space) {
    case JCS_GRAYSCALE:
      channels = 1;
      decoder.info.out_color_space = JCS_GRAYSCALE;
      break;
    case JCS_CMYK:
    case JCS_YCCK:
      channels = 4;
      decoder.info.out_color_space = JCS_CMYK;
      break;
    case JCS_RGB:
    case JCS_YCbCr:
      decoder.info.out_color_space = JCS_RGB;
      break;
    default:
      TERN_THROW(DataError, "'{}': a JPEG with {} components of an unknown colour space is not supported",
                 name, info.num_components);
  }
  const size_t row_bytes = size_t{info.image_width} * channels;
  Bytes pixels(row_bytes * info.image_height);
  TERN_CHECK(read_rows(decoder, pixels.data(), row_bytes), DataError, "'{}': byte {}: broken JPEG: {}", name,
             decoder.position(bytes), decoder.errors.message);
  if (channels == 4) {
    pixels = cmyk_to_rgb(pixels, info.saw_Adobe_marker != FALSE);
    channels = 3;
  }
  Image image{info.image_height, info.image_width, static_cast<int64_t>(channels), std::move(pixels)};
  if (options.channels == 1) return to_gray(image);
  if (options.channels == 3) return to_rgb(image);
  return image;
}

}  // namespace tern::data
