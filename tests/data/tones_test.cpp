// Transforms of tones and sharpness. What is expected is what torchvision makes of the same picture; where it
// says so, PIL.
#include "tern/data/tones.h"

#include <cmath>
#include <numeric>

#include "tests/data/data_testing.h"
#include "tests/data/picture_testing.h"

namespace tern::data {
namespace {

using testing::bytes_with;
using testing::expect_error;
using testing::kHost;
using testing::picture_of;
using testing::steps_of;
using testing::with;
using Floats = std::vector<float>;

TEST(Tones, BytesOfTorchvision) {
  const Tensor t = steps_of(37, 1, 4, 5);
  const Tensor pale = picture_of(
      {40, 52, 64, 77, 89, 101, 114, 41, 53, 65, 78, 90, 102, 115, 42, 54, 66, 79, 91, 103}, 1, 4, 5);
  struct Case {
    const char* name;
    Transform transform;
    Tensor image;
    Bytes expected;
  };
  const Case cases[] = {
      {"invert", RandomInvert(1), t, {255, 218, 181, 144, 107, 70,  33,  252, 215, 178,
                                      141, 104, 67,  30,  249, 212, 175, 138, 101, 64}},
      {"posterize", RandomPosterize(3, 1), t, {0,  32,  64,  96,  128, 160, 192, 0,  32,  64,
                                               96, 128, 160, 224, 0,   32,  64,  96, 128, 160}},
      {"posterize 8", RandomPosterize(8, 1), t, t.to_vector<uint8_t>()},
      {"posterize 0", RandomPosterize(0, 1), t, Bytes(20, 0)},
      {"solarize", RandomSolarize(128, 1), t, {0,   37,  74, 111, 107, 70, 33, 3,   40,  77,
                                               114, 104, 67, 30,  6,   43, 80, 117, 101, 64}},
      {"autocontrast", RandomAutocontrast(1), t, {0,   41,  83,  125, 167, 209, 251, 3,   45,  87,
                                                  129, 171, 213, 255, 6,   48,  90,  132, 174, 216}},
      {"autocontrast of pale ones", RandomAutocontrast(1), pale, {0, 40, 81, 125, 166, 207, 251,
                                                                  3, 44, 85, 129, 170, 210, 255,
                                                                  6, 47, 88, 132, 173, 214}},
      {"autocontrast of one tone", RandomAutocontrast(1), picture_of(Bytes(4, 9), 1, 2, 2), Bytes(4, 9)},
      {"equalize few", RandomEqualize(1), t, t.to_vector<uint8_t>()},
      // PIL's too.
      {"sharpness 0", RandomAdjustSharpness(0, 1), t, {0,   37,  74,  111, 148, 185, 143, 82,  79,  77,
                                                       114, 131, 149, 146, 6,   43,  80,  117, 154, 191}},
      {"sharpness 1", RandomAdjustSharpness(1, 1), t, t.to_vector<uint8_t>()},
      {"sharpness 1.3", RandomAdjustSharpness(1.3, 1), t, {0,   37,  74,  111, 148, 185, 245, 0,   28,  77,
                                                           114, 157, 199, 248, 6,   43,  80,  117, 154, 191}},
      {"sharpness 2", RandomAdjustSharpness(2, 1), t, {0,   37,  74,  111, 148, 185, 255, 0,   1,   77,
                                                       114, 171, 227, 255, 6,   43,  80,  117, 154, 191}},
      {"sharpness of two columns", RandomAdjustSharpness(2, 1), steps_of(37, 1, 5, 2),
       steps_of(37, 1, 5, 2).to_vector<uint8_t>()},
  };
  for (const Case& c : cases) EXPECT_EQ(bytes_with(c.transform, c.image), c.expected) << c.name;
}

TEST(Tones, EachChannelByItself) {
  const Tensor t = picture_of({1, 2, 10, 30, 100, 255}, 3, 1, 2);
  EXPECT_EQ(bytes_with(RandomAutocontrast(1), t), (Bytes{0, 255, 0, 255, 0, 255}));
  const Tensor strided = steps_of(9, 3, 2, 4).transpose(1, 2);
  for (const Transform& transform : {Transform(RandomInvert(1)), Transform(RandomAutocontrast(1)),
                                     Transform(RandomEqualize(1)), Transform(RandomAdjustSharpness(2, 1))}) {
    EXPECT_EQ(bytes_with(transform, strided), bytes_with(transform, strided.contiguous()));
    EXPECT_EQ(with(transform, zeros({3, 0, 4}, kHost)).numel(), 0);
  }
}

TEST(Tones, Floats) {
  const auto floats = [](const Transform& transform, const Floats& values, int64_t height, int64_t width) {
    return with(transform, tensor(values, kHost).view({1, height, width})).to_vector<float>();
  };
  EXPECT_EQ(floats(RandomInvert(1), {0, 0.25f, 1}, 1, 3), (Floats{1, 0.75f, 0}));
  EXPECT_EQ(floats(RandomPosterize(2, 1), {0, 0.1f, 0.5f, 0.7f, 0.99f, 1}, 2, 3),
            (Floats{0, 0, 0.5f, 0.5f, 0.75f, 0.75f}));
  EXPECT_EQ(floats(RandomSolarize(0.5, 1), {0, 0.25f, 0.5f, 1}, 2, 2), (Floats{0, 0.25f, 0.5f, 0}));
  EXPECT_EQ(floats(RandomAutocontrast(1), {0.25f, 0.5f, 0.625f, 0.75f}, 2, 2), (Floats{0, 0.5f, 0.75f, 1}));
  EXPECT_EQ(floats(RandomEqualize(1), {0, 1}, 1, 2), (Floats{0, 1}));
  const Floats sharper = floats(RandomAdjustSharpness(2, 1), {0, 0, 0, 0, 0.13f, 0, 0, 0, 0}, 3, 3);
  EXPECT_NEAR(sharper[4], 2 * 0.13 - 0.05, 1e-6);
}

TEST(RandomEqualize, SameAsPil) {
  Bytes bytes(1200);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * i / 40 % 200);
  const Tensor t = picture_of(bytes, 1, 30, 40);
  const Bytes found = bytes_with(RandomEqualize(1), t);
  EXPECT_EQ(Bytes(found.begin(), found.begin() + 12), (Bytes{0, 0, 0, 0, 0, 0, 0, 6, 6, 7, 7, 11}));
  EXPECT_EQ(std::accumulate(found.begin(), found.end(), 0), 174924);
  const Floats floats = with(RandomEqualize(1), ToFloat()(t)).to_vector<float>();
  for (size_t i = 0; i < found.size(); ++i) EXPECT_FLOAT_EQ(floats[i], static_cast<float>(found[i]) / 255);
}

TEST(Tones, SomeOfTheTime) {
  const Tensor t = steps_of(37, 1, 4, 5);
  for (const Transform& transform :
       {Transform(RandomInvert(0.3)), Transform(RandomPosterize(1, 0.3)), Transform(RandomSolarize(9, 0.3)),
        Transform(RandomAutocontrast(0.3)), Transform(RandomAdjustSharpness(3, 0.3))}) {
    int changed = 0;
    for (uint64_t sample = 0; sample < 300; ++sample)
      changed += with(transform, t, sample).is_same(t) ? 0 : 1;
    EXPECT_NEAR(changed, 90, 25);
  }
  EXPECT_TRUE(with(RandomEqualize(0), t).is_same(t));
}

TEST(Tones, Errors) {
  expect_error<ValueError>([] { RandomInvert(2); }, {"RandomInvert: p must be 0 to 1, got 2"});
  expect_error<ValueError>([] { RandomPosterize(9); }, {"RandomPosterize: bits must be 0 to 8, got 9"});
  expect_error<ValueError>([] { RandomSolarize(std::nan("")); }, {"RandomSolarize: threshold"});
  expect_error<ValueError>([] { RandomAdjustSharpness(-1); }, {"sharpness_factor", "got -1"});
  expect_error<ValueError>([] { RandomAutocontrast(-1); }, {"RandomAutocontrast: p"});
  expect_error<ValueError>([] { RandomEqualize(-1); }, {"RandomEqualize: p"});
  expect_error<ValueError>(
      [] {
        with(RandomSolarize(128, 0), zeros({1, 2, 2}, kHost));
      },
      {"RandomSolarize: threshold must be at most 1 for a picture of float32, got 128"});
  for (const Transform& transform :
       {Transform(RandomInvert(0)), Transform(RandomPosterize(3)), Transform(RandomSolarize(3)),
        Transform(RandomAutocontrast()), Transform(RandomEqualize()), Transform(RandomAdjustSharpness(2))})
    expect_error<ShapeError>([&] { with(transform, steps_of(1, 2, 2, 2)); },
                             {"1 or 3 channels, got [2, 2, 2]"});
}

}  // namespace
}  // namespace tern::data
