// Resizing against PIL (Image.resize with each filter; 9.4 for BILINEAR and BOX, 13 for the others), to the
// bit for 8-bit pictures.
#include "tern/data/resize.h"

#include "tests/data/data_testing.h"

namespace tern::data {
namespace {

using testing::expect_error;

const Bytes kSource = {0,   13, 26,  39, 52,  65,  78,  7,   49,  91,  133, 175, 72,  114, 28,  99,  170, 96,
                       167, 93, 164, 63, 163, 118, 218, 173, 128, 228, 112, 241, 225, 209, 193, 177, 50};

struct ResizeCase {
  Interpolation interpolation;
  int64_t height, width;
  Bytes expected;
};

TEST(Resize, SameAsPil) {
  const ResizeCase cases[] = {
      {Interpolation::kBilinear, 3, 4, {16, 56, 90, 83, 67, 130, 144, 137, 145, 194, 187, 142}},
      {Interpolation::kBilinear, 2, 7, {12, 54, 90, 99, 134, 77, 119, 68, 168, 163, 184, 178, 133, 152}},
      {Interpolation::kBilinear, 9, 10, {0,   7,   16,  25,  34,  44,  53,  62,  71,  78,  2,   15,  31,
                                         46,  62,  79,  92,  74,  78,  90,  6,   27,  55,  82,  109, 136,
                                         157, 94,  89,  110, 16,  46,  85,  123, 120, 136, 167, 104, 106,
                                         136, 28,  67,  117, 166, 122, 121, 163, 112, 125, 164, 47,  95,
                                         136, 140, 156, 166, 167, 127, 152, 200, 68,  125, 161, 132, 187,
                                         202, 173, 144, 167, 208, 96,  161, 209, 191, 204, 203, 185, 167,
                                         138, 109, 112, 183, 237, 226, 215, 203, 192, 181, 120, 50}},
      {Interpolation::kBilinear,
       5,
       3,
       {11, 39, 67, 43, 124, 109, 89, 130, 134, 118, 175, 173, 191, 209, 135}},
      {Interpolation::kBilinear, 5, 7, kSource},
      {Interpolation::kArea, 3, 4, {18, 73, 114, 83, 64, 133, 167, 129, 145, 193, 183, 146}},
      {Interpolation::kArea, 2, 7, {12, 54, 96, 89, 131, 77, 119, 88, 202, 172, 214, 183, 153, 139}},
      {Interpolation::kArea, 5, 3, {7, 39, 72, 28, 133, 93, 64, 144, 129, 113, 170, 178, 177, 209, 114}},
      {Interpolation::kNearest, 3, 4, {0, 26, 52, 78, 28, 170, 167, 164, 112, 225, 193, 50}},
      {Interpolation::kNearest, 9, 10, {0,   13,  13,  26,  39,  39,  52,  65,  65,  78,  0,   13,  13,
                                        26,  39,  39,  52,  65,  65,  78,  7,   49,  49,  91,  133, 133,
                                        175, 72,  72,  114, 7,   49,  49,  91,  133, 133, 175, 72,  72,
                                        114, 28,  99,  99,  170, 96,  96,  167, 93,  93,  164, 63,  163,
                                        163, 118, 218, 218, 173, 128, 128, 228, 63,  163, 163, 118, 218,
                                        218, 173, 128, 128, 228, 112, 241, 241, 225, 209, 209, 193, 177,
                                        177, 50,  112, 241, 241, 225, 209, 209, 193, 177, 177, 50}},
      {Interpolation::kNearest, 5, 3, {13, 39, 65, 49, 133, 72, 99, 96, 93, 163, 218, 128, 241, 209, 177}},
      {Interpolation::kNearest, 2, 7, {7, 49, 91, 133, 175, 72, 114, 63, 163, 118, 218, 173, 128, 228}},
      {Interpolation::kHamming, 3, 4, {13, 54, 90, 81, 60, 138, 150, 137, 143, 194, 189, 134}},
      {Interpolation::kHamming, 5, 3, {10, 39, 68, 38, 132, 101, 81, 130, 130, 119, 182, 172, 190, 209, 130}},
      {Interpolation::kHamming, 2, 7, {8, 46, 82, 95, 131, 73, 111, 74, 178, 164, 194, 179, 139, 155}},
      {Interpolation::kBicubic, 3, 4, {10, 55, 90, 80, 61, 135, 147, 140, 146, 202, 190, 140}},
      {Interpolation::kBicubic, 9, 10, {0,   4,   12,  20,  27,  35,  43,  60,  71,  76,  0,   11,  26,
                                        40,  57,  75,  86,  70,  74,  88,  3,   24,  54,  80,  112, 146,
                                        164, 88,  82,  112, 11,  40,  87,  131, 119, 139, 178, 98,  99,
                                        138, 24,  61,  120, 170, 117, 116, 166, 105, 121, 168, 41,  92,
                                        139, 137, 156, 170, 167, 115, 156, 222, 62,  126, 168, 123, 193,
                                        216, 173, 135, 170, 222, 92,  167, 224, 194, 210, 209, 186, 173,
                                        134, 97,  108, 187, 254, 235, 217, 202, 194, 194, 113, 26}},
      {Interpolation::kBicubic, 5, 3, {9, 39, 69, 38, 131, 110, 85, 136, 134, 115, 176, 176, 190, 217, 130}},
      {Interpolation::kBicubic, 2, 7, {8, 46, 84, 92, 130, 73, 119, 72, 176, 170, 189, 182, 137, 152}},
      {Interpolation::kLanczos, 3, 4, {9, 55, 90, 76, 59, 139, 146, 142, 146, 207, 189, 140}},
      {Interpolation::kLanczos, 9, 10, {0,   5,   14,  20,  26,  28,  39,  58,  72,  76,  0,   10,  25,
                                        36,  57,  79,  86,  68,  72,  87,  4,   23,  54,  77,  107, 152,
                                        160, 87,  79,  114, 12,  35,  97,  143, 119, 145, 188, 101, 92,
                                        138, 24,  55,  129, 171, 114, 115, 167, 104, 118, 172, 35,  86,
                                        138, 132, 148, 170, 161, 102, 162, 243, 59,  130, 170, 124, 192,
                                        227, 171, 129, 170, 220, 90,  168, 231, 192, 210, 216, 187, 177,
                                        133, 98,  106, 184, 255, 242, 213, 196, 197, 206, 104, 14}},
      {Interpolation::kLanczos, 5, 3, {8, 39, 70, 35, 133, 111, 84, 138, 132, 114, 176, 177, 188, 224, 126}},
      {Interpolation::kLanczos, 2, 7, {6, 42, 81, 89, 128, 71, 122, 73, 179, 174, 191, 186, 138, 153}},
  };
  const Image source{5, 7, 1, kSource};
  for (const ResizeCase& c : cases) {
    SCOPED_TRACE(c.height * 100 + c.width);
    EXPECT_EQ(resize(source, c.height, c.width, c.interpolation).pixels, c.expected);
    // Each channel of a colour picture is resized like a grey one.
    const Image colour = resize(to_rgb(source), c.height, c.width, c.interpolation);
    EXPECT_EQ(colour.pixels, to_rgb({c.height, c.width, 1, c.expected}).pixels);
  }
}

TEST(Resize, FloatsSameAsPil) {
  const std::vector<float> in(kSource.begin(), kSource.end());
  struct Case {
    Interpolation interpolation;
    std::vector<float> expected;
  };
  const Case cases[] = {
      {Interpolation::kBilinear,
       {16.32f, 55.891f, 90.251f, 83.068f, 66.767f, 130.458f, 144.453f, 136.825f, 145.156f, 194.269f,
        186.703f, 141.789f}},
      {Interpolation::kArea,
       {17.25f, 72.25f, 113.5f, 82.25f, 63.5f, 133.0f, 167.0f, 128.5f, 144.75f, 192.5f, 183.0f, 145.75f}},
  };
  for (const Case& c : cases) {
    std::vector<float> out(12);
    resize_plane(in, 5, 7, out, 3, 4, c.interpolation);
    for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], c.expected[i], 2e-3) << i;
  }
}

TEST(Resize, Errors) {
  const Image source{5, 7, 1, kSource};
  expect_error<ValueError>([&] { resize(source, 0, 4); }, {"resize", "4x0"});
  expect_error<ValueError>([&] { resize(source, 1 << 20, 1 << 20); }, {"resize", "at most"});
  expect_error<ValueError>([&] { resize({5, 7, 1, Bytes(3)}, 2, 2); }, {"35 bytes, not 3"});
  std::vector<float> out(3);
  expect_error<ValueError>([&] { resize_plane(out, 1, 2, out, 1, 3, Interpolation::kArea); }, {"do not fit"});
}

}  // namespace
}  // namespace tern::data
