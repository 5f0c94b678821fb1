// PNG pictures through libpng. libpng leaves on an error by longjmp: between setjmp and libpng's calls only
// plain data may live, so what owns memory is kept by the callers of the two steps of each direction.
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <memory>

#include "tern/base/check.h"
#include "tern/data/image.h"

namespace tern::data {
namespace {

/// What libpng's callbacks see; plain data.
struct Session {
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  size_t at = 0;
  Bytes* out = nullptr;
  bool out_of_memory = false;
  char message[160] = "";
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  auto* session = static_cast<Session*>(png_get_error_ptr(png));
  if (session->message[0] == '\0') std::strncpy(session->message, text, sizeof session->message - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, png_size_t count) {
  auto* session = static_cast<Session*>(png_get_io_ptr(png));
  if (count > session->size - session->at) png_error(png, "the file ends early; it was cut");
  std::memcpy(to, session->bytes + session->at, count);
  session->at += count;
}

void write_bytes(png_structp png, png_bytep from, png_size_t count) {
  auto* session = static_cast<Session*>(png_get_io_ptr(png));
  try {
    session->out->insert(session->out->end(), from, from + count);
  } catch (const std::bad_alloc&) {
    session->out_of_memory = true;
  }
  if (session->out_of_memory) png_error(png, "out of memory");
}

void flush_bytes(png_structp) {}

struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  Session session;

  Reader() {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &session, &on_error, &on_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    TERN_CHECK(info != nullptr, OutOfMemoryError, "no memory for the PNG decoder");
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

struct Header {
  png_uint_32 width = 0;
  png_uint_32 height = 0;
  size_t channels = 0;  ///< after the conversions asked for: 1 to 4
  size_t row_bytes = 0;
  int bits_per_pixel = 0;  ///< in the file
};

/// Reads everything before the pixels and asks for 8-bit grey or colour, with alpha if `keep_alpha`.
bool read_header(Reader& reader, bool keep_alpha, Header& header) {
  png_structp png = reader.png;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, &reader.session, &read_bytes);
  png_set_user_limits(png, 1u << 20, 1u << 20);
  png_set_chunk_cache_max(png, 128);
  png_set_chunk_malloc_max(png, png_alloc_size_t{8} << 20);
  png_read_info(png, reader.info);
  const png_byte color = png_get_color_type(png, reader.info);
  const png_byte depth = png_get_bit_depth(png, reader.info);
  header.bits_per_pixel = depth * png_get_channels(png, reader.info);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (color == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (depth == 16) png_set_scale_16(png);
  if (keep_alpha) {
    if (png_get_valid(png, reader.info, PNG_INFO_tRNS) != 0) png_set_tRNS_to_alpha(png);
  } else {
    png_set_strip_alpha(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  header.width = png_get_image_width(png, reader.info);
  header.height = png_get_image_height(png, reader.info);
  header.channels = png_get_channels(png, reader.info);
  header.row_bytes = png_get_rowbytes(png, reader.info);
  return true;
}

bool read_rows(Reader& reader, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_read_image(reader.png, rows);
  png_read_end(reader.png, nullptr);
  return true;
}

/// Blends pixels with alpha (the last of `channels`) over a grey background, giving channels - 1 channels.
Bytes blend(const Bytes& pixels, size_t channels, uint8_t background) {
  const size_t colors = channels - 1, count = pixels.size() / channels;
  Bytes out(count * colors);
  for (size_t i = 0; i < count; ++i) {
    const unsigned alpha = pixels[i * channels + colors];
    for (size_t c = 0; c < colors; ++c) {
      const unsigned sum = pixels[i * channels + c] * alpha + background * (255u - alpha);
      out[i * colors + c] = static_cast<uint8_t>((sum + 127u) / 255u);
    }
  }
  return out;
}

bool write_all(png_structp png, png_infop info, Session& session, const Image& image) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_write_fn(png, &session, &write_bytes, &flush_bytes);
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height), 8,
               image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (int64_t y = 0; y < image.height; ++y) {
    png_write_row(png, image.pixels.data() + y * image.width * image.channels);
  }
  png_write_end(png, info);
  return true;
}

}  // namespace

Image detail::decode_png(ByteView bytes, const std::string& name, const DecodeOptions& options) {
  Reader reader;
  reader.session.bytes = bytes.data();
  reader.session.size = bytes.size();
  Header header;
  TERN_CHECK(read_header(reader, options.background.has_value(), header), DataError,
             "'{}': byte {}: broken PNG: {}", name, reader.session.at, reader.session.message);
  check_image_size(header.width, header.height, name, options);
  // Deflate shrinks at most 1032 to 1, so a file far smaller than that is cut and deserves no memory.
  const uint64_t raw_bits =
      uint64_t{header.width} * header.height * static_cast<unsigned>(header.bits_per_pixel);
  TERN_CHECK(raw_bits / 8 <= (uint64_t{bytes.size()} + 1) * 1040, DataError,
             "'{}': byte {}: a {}x{} picture cannot come from {} bytes; the file was cut", name, bytes.size(),
             header.width, header.height, bytes.size());
  TERN_CHECK(
      header.row_bytes == header.width * header.channels && header.channels >= 1 && header.channels <= 4,
      DataError, "'{}': a PNG with {} channels in rows of {} bytes is not supported", name, header.channels,
      header.row_bytes);

  Bytes pixels(header.row_bytes * header.height);
  std::vector<png_bytep> rows(header.height);
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = pixels.data() + y * header.row_bytes;
  TERN_CHECK(read_rows(reader, rows.data()), DataError, "'{}': byte {}: broken PNG: {}", name,
             reader.session.at, reader.session.message);
  size_t channels = header.channels;
  if (channels == 2 || channels == 4) {
    pixels = blend(pixels, channels, options.background.value_or(0));
    --channels;
  }
  Image image{header.height, header.width, static_cast<int64_t>(channels), std::move(pixels)};
  if (options.channels == 1) return to_gray(image);
  if (options.channels == 3) return to_rgb(image);
  return image;
}

Bytes encode_png(const Image& image) {
  check_image(image, "encode_png");
  Bytes out;
  Session session;
  session.out = &out;
  struct Writer {
    png_structp png = nullptr;
    png_infop info = nullptr;
    ~Writer() { png_destroy_write_struct(&png, &info); }
  } writer;
  writer.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &session, &on_error, &on_warning);
  if (writer.png != nullptr) writer.info = png_create_info_struct(writer.png);
  TERN_CHECK(writer.info != nullptr, OutOfMemoryError, "no memory for the PNG encoder");
  const bool written = write_all(writer.png, writer.info, session, image);
  TERN_CHECK(!session.out_of_memory, OutOfMemoryError, "encode_png: no memory for the file");
  TERN_CHECK(written, DataError, "encode_png: {}", session.message);
  return out;
}

}  // namespace tern::data
