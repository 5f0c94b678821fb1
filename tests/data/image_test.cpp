// Decoding and encoding of pictures against what PIL wrote, and hostile files.
#include "tern/data/image.h"

#include "tests/data/data_testing.h"
#include "tests/data/picture_bytes.h"

namespace tern::data {
namespace {

using testing::expect_error;
using testing::TempFolder;
using testing::unhex;

struct DecodeCase {
  const char* name;
  const char* hex;
  DecodeOptions options;
  int64_t height, width, channels;
  std::vector<int> first_pixels;
};

TEST(DecodePng, EveryKindBecomesEightBits) {
  const DecodeCase cases[] = {
      {"grey", testing::kGray8, {}, 2, 3, 1, {0, 64, 128, 192, 255, 10}},
      {"1 bit", testing::kBits1, {}, 2, 3, 1, {0, 0, 255, 255, 255, 0}},
      {"16 bits", testing::kGray16, {}, 2, 3, 1, {0, 64, 128, 192, 255, 10}},
      {"colour", testing::kRgb8, {}, 2, 2, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30}},
      {"palette", testing::kPalette, {}, 2, 2, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30}},
      {"alpha dropped", testing::kRgba8, {}, 2, 2, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30}},
      {"alpha over white",
       testing::kRgba8,
       {.background = 255},
       2,
       2,
       3,
       {255, 0, 0, 255, 255, 255, 127, 127, 255, 10, 20, 30}},
      {"grey with alpha", testing::kGrayAlpha, {}, 2, 2, 1, {0, 64, 192, 255}},
      {"grey with alpha over black", testing::kGrayAlpha, {.background = 0}, 2, 2, 1, {0, 0, 38, 255}},
      {"colour to grey", testing::kRgb8, {.channels = 1}, 2, 2, 1, {76, 150, 29, 18}},
      {"grey to colour", testing::kGray8, {.channels = 3}, 2, 3, 3, {0, 0, 0, 64, 64, 64}},
  };
  for (const DecodeCase& c : cases) {
    SCOPED_TRACE(c.name);
    const Image image = decode_image(unhex(c.hex), "f.png", c.options);
    EXPECT_EQ(image.height, c.height);
    EXPECT_EQ(image.width, c.width);
    EXPECT_EQ(image.channels, c.channels);
    ASSERT_EQ(image.pixels.size(), static_cast<size_t>(c.height * c.width * c.channels));
    for (size_t i = 0; i < c.first_pixels.size(); ++i) EXPECT_EQ(image.pixels[i], c.first_pixels[i]) << i;
  }
}

TEST(DecodeJpeg, EveryKindBecomesGreyOrColour) {
  // The files hold one colour each; values as PIL reads them, decoders may differ by a little.
  const DecodeCase cases[] = {
      {"colour", testing::kJpegRgb, {}, 8, 8, 3, {200, 100, 50}},
      {"grey", testing::kJpegGray, {}, 8, 8, 1, {77}},
      {"progressive", testing::kJpegProgressive, {}, 8, 8, 3, {198, 101, 50}},
      {"CMYK", testing::kJpegCmyk, {}, 8, 8, 3, {190, 154, 119}},
      {"colour to grey", testing::kJpegRgb, {.channels = 1}, 8, 8, 1, {124}},
      {"grey to colour", testing::kJpegGray, {.channels = 3}, 8, 8, 3, {77, 77, 77}},
  };
  for (const DecodeCase& c : cases) {
    SCOPED_TRACE(c.name);
    const Image image = decode_image(unhex(c.hex), "f.jpg", c.options);
    EXPECT_EQ(image.height, c.height);
    EXPECT_EQ(image.width, c.width);
    ASSERT_EQ(image.channels, c.channels);
    ASSERT_EQ(image.pixels.size(), static_cast<size_t>(c.height * c.width * c.channels));
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      EXPECT_NEAR(image.pixels[i], c.first_pixels[i % static_cast<size_t>(c.channels)], 2) << i;
    }
  }
}

TEST(DecodeImage, Errors) {
  expect_error<DataError>([] { decode_image({}, "f"); }, {"'f': byte 0", "empty"});
  const Bytes text = {'h', 'e', 'l', 'l', 'o'};
  expect_error<DataError>([&] { decode_image(text, "f.png"); },
                          {"'f.png': byte 0", "neither PNG", "nor JPEG", "68 65 6c 6c 6f"});
  const Bytes png = unhex(testing::kRgb8);
  expect_error<DataError>([&] { decode_image(png, "f.png", {.max_pixels = 3}); },
                          {"'f.png'", "2x2", "limit of 3"});
  expect_error<ValueError>([&] { decode_image(png, "f", {.channels = 2}); }, {"channels must be 0", "not 2"});
  Bytes crc = png;
  crc[crc.size() - 20] ^= 1;
  expect_error<DataError>([&] { decode_image(crc, "f.png"); }, {"'f.png': byte", "broken PNG"});
  // 65535 x 65535 in a header of 13 bytes: refused before memory is taken.
  Bytes huge = png;
  for (const size_t at : {18u, 19u, 22u, 23u}) huge[at] = 0xFF;
  const uLong checksum = crc32(0, huge.data() + 12, 17);
  for (size_t i = 0; i < 4; ++i) huge[29 + i] = static_cast<uint8_t>(checksum >> (24 - 8 * i));
  expect_error<DataError>(
      [&] { decode_image(huge, "f.png"); },
      {"65535x65535 is over the limit of 67108864 pixels: scale it down or, in a program"});
  Bytes jpeg = unhex(testing::kJpegRgb);
  expect_error<DataError>([&] { decode_image(ByteView(jpeg).first(jpeg.size() - 6), "f.jpg"); },
                          {"'f.jpg': byte", "broken JPEG"});
  TempFolder folder;
  expect_error<IoError>([&] { read_image(folder.file("none.png")); }, {"none.png"});
}

TEST(DecodeImage, EveryCutIsAnError) {
  for (const char* hex : {testing::kGray8, testing::kRgba8, testing::kPalette, testing::kJpegRgb,
                          testing::kJpegCmyk, testing::kJpegProgressive}) {
    const Bytes whole = unhex(hex);
    for (size_t size = 0; size < whole.size(); ++size) {
      // Without the last marker a JPEG is complete as far as its pixels go.
      if (whole[0] == 0xFF && size + 2 >= whole.size()) continue;
      EXPECT_THROW(decode_image(ByteView(whole).first(size), "f"), DataError)
          << size << " of " << whole.size();
    }
  }
}

TEST(DecodeImage, FlippedBitsNeverCrash) {
  for (const char* hex : {testing::kGray8, testing::kRgba8, testing::kPalette, testing::kJpegRgb,
                          testing::kJpegCmyk, testing::kJpegProgressive, testing::kGray16}) {
    const Bytes whole = unhex(hex);
    for (size_t i = 0; i < whole.size() * 8; ++i) {
      Bytes broken = whole;
      broken[i / 8] ^= static_cast<uint8_t>(1u << i % 8);
      try {
        const Image image = decode_image(broken, "f", {.max_pixels = 1 << 20});
        EXPECT_NO_THROW(check_image(image, "test"));
      } catch (const DataError&) {
      }
    }
  }
}

TEST(EncodePng, ComesBack) {
  TempFolder folder;
  for (const int64_t channels : {1, 3}) {
    Image image{5, 7, channels, Bytes(static_cast<size_t>(35 * channels))};
    for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 11);
    write_png(folder.file("p.png"), image);
    const Image back = read_image(folder.file("p.png"));
    EXPECT_EQ(back.channels, channels);
    EXPECT_EQ(back.width, 7);
    EXPECT_EQ(back.pixels, image.pixels);
  }
  expect_error<ValueError>([] { encode_png({2, 2, 1, Bytes(5)}); }, {"encode_png", "4 bytes, not 5"});
  expect_error<ValueError>([] { encode_png({2, 2, 2, Bytes(8)}); }, {"1 or 3 channels, not 2"});
  expect_error<ValueError>([] { encode_png({0, 2, 1, {}}); }, {"not 2x0"});
}

TEST(Image, GreyColourInvert) {
  const Image rgb = decode_image(unhex(testing::kRgb8), "f");
  const Image gray = to_gray(rgb);
  EXPECT_EQ(gray.pixels, (Bytes{76, 150, 29, 18}));
  EXPECT_EQ(to_gray(gray).pixels, gray.pixels);
  EXPECT_EQ(to_rgb(gray).pixels, (Bytes{76, 76, 76, 150, 150, 150, 29, 29, 29, 18, 18, 18}));
  EXPECT_EQ(invert(gray).pixels, (Bytes{179, 105, 226, 237}));
  EXPECT_EQ(rgb.at(1, 1, 2), 30);
}

}  // namespace
}  // namespace tern::data
