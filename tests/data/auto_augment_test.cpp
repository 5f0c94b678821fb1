// AutoAugment, RandAugment, TrivialAugmentWide and AugMix. The bytes are those of torchvision's operations,
// for what the sample draws.
#include "tern/data/auto_augment.h"

#include <cmath>
#include <set>

#include "tests/data/data_testing.h"
#include "tests/data/picture_testing.h"

namespace tern::data {
namespace {

using testing::bytes_with;
using testing::expect_error;
using testing::kHost;
using testing::steps_of;
using testing::with;

Tensor small_picture() { return steps_of(37, 3, 3, 4); }

TEST(TrivialAugmentWide, OperationsOfTorchvision) {
  struct Case {
    const char* name;
    uint64_t sample;
    Bytes expected;
  };
  const Case cases[] = {
      {"ShearX, step 26", 18, {0,   37,  74,  111, 185, 222, 3,   0, 114, 151, 0, 0,
                               188, 225, 6,   43,  117, 154, 191, 0, 46,  83,  0, 0,
                               120, 157, 194, 231, 49,  86,  123, 0, 234, 15,  0, 0}},
      {"ShearY, step 19", 12, {0, 0, 0,   0,   148, 37, 0,   0, 40, 185, 74, 111, 188, 0, 0,   0,  80,  225,
                               0, 0, 228, 117, 6,   43, 120, 0, 0,  0,   12, 157, 0,   0, 160, 49, 194, 231}},
      {"TranslateX, step 2", 38, {74,  111, 0, 0, 222, 3,   0, 0, 114, 151, 0, 0,
                                  6,   43,  0, 0, 154, 191, 0, 0, 46,  83,  0, 0,
                                  194, 231, 0, 0, 86,  123, 0, 0, 234, 15,  0, 0}},
      {"TranslateY, step 1", 194, {0, 0, 0, 0, 0,   37,  74,  111, 148, 185, 222, 3,
                                   0, 0, 0, 0, 188, 225, 6,   43,  80,  117, 154, 191,
                                   0, 0, 0, 0, 120, 157, 194, 231, 12,  49,  86,  123}},
      {"Rotate, step 8", 25, {0,   74, 74, 3, 0, 185, 222, 151, 148, 77,  77,  0,  0,  6,  6,  191, 188, 117,
                              154, 83, 80, 9, 9, 0,   0,   194, 194, 123, 120, 49, 86, 15, 12, 197, 197, 0}},
      {"Brightness, step 23", 22, {0,   65,  130, 195, 255, 255, 255, 5,   70,  135, 200, 255,
                                   255, 255, 10,  75,  140, 205, 255, 255, 255, 15,  80,  145,
                                   211, 255, 255, 255, 21,  86,  151, 216, 255, 255, 255, 26}},
      {"Color, step 26", 3, {0,   0,   97,  134, 196, 233, 255, 0,   0,   100, 137, 199,
                             242, 255, 0,   7,   69,  106, 143, 245, 255, 0,   10,  72,
                             116, 153, 255, 255, 0,   0,   17,  119, 156, 255, 255, 0}},
      {"Contrast, step 15", 8, {54,  73,  92,  110, 129, 148, 166, 56,  74,  93,  112, 130,
                                149, 168, 57,  76,  95,  113, 132, 151, 169, 59,  77,  96,
                                115, 133, 152, 171, 60,  79,  98,  116, 135, 154, 172, 62}},
      {"Sharpness, step 22", 14, {0,   37,  74,  111, 148, 227, 255, 3,   40,  77,  114, 151,
                                  188, 225, 6,   43,  80,  117, 182, 191, 228, 9,   46,  83,
                                  120, 157, 194, 231, 12,  6,   57,  123, 160, 197, 234, 15}},
      {"Posterize, step 13", 4, {0,   32,  72,  104, 144, 184, 216, 0,   40,  72,  112, 144,
                                 184, 224, 0,   40,  80,  112, 152, 184, 224, 8,   40,  80,
                                 120, 152, 192, 224, 8,   48,  80,  120, 160, 192, 232, 8}},
      {"Solarize, step 24", 83, {0,   37, 181, 144, 107, 70,  33,  3,   40, 178, 141, 104,
                                 67,  30, 6,   43,  175, 138, 101, 64,  27, 9,   46,  172,
                                 135, 98, 61,  24,  12,  49,  169, 132, 95, 58,  21,  15}},
      {"AutoContrast, step 27", 0, {0,   42,  85,  127, 170, 212, 255, 3,   45,  88,  130, 173,
                                    209, 251, 0,   42,  85,  127, 170, 212, 255, 3,   45,  88,
                                    124, 166, 209, 251, 0,   42,  85,  127, 170, 212, 255, 3}},
  };
  for (const Case& c : cases)
    EXPECT_EQ(bytes_with(TrivialAugmentWide(), small_picture(), c.sample), c.expected) << c.name;
}

/// Each byte of what 200 samples become, times its place.
int64_t checksum(const Transform& transform) {
  int64_t sum = 0;
  for (uint64_t sample = 0; sample < 200; ++sample) {
    const Bytes bytes = bytes_with(transform, small_picture(), sample);
    for (size_t i = 0; i < bytes.size(); ++i) sum += static_cast<int64_t>((i + 1) * bytes[i]);
  }
  return sum;
}

TEST(AutoAugment, PoliciesOfTorchvision) {
  EXPECT_EQ(checksum(AutoAugment()), 14978025);
  EXPECT_EQ(checksum(AutoAugment(AutoAugmentPolicy::kCIFAR10)), 15060181);
  EXPECT_EQ(checksum(AutoAugment(AutoAugmentPolicy::kSVHN)), 15987299);
  EXPECT_EQ(checksum(TrivialAugmentWide()), 12408029);
  EXPECT_EQ(checksum(RandAugment()), 15575559);
}

TEST(AugMix, MixtureOfTorchvision) {
  const Bytes cases[] = {
      {0,   37,  74,  111, 148, 185, 211, 3,   40,  77,  113, 150, 187, 214, 6,   42,  80,  116,
       154, 191, 217, 8,   46,  83,  120, 157, 193, 219, 12,  48,  85,  122, 160, 196, 222, 15},
      {3,   44,  86,  98, 145, 183, 218, 20,  39,  73,  105, 132, 184, 219, 19,  58,  83,  111,
       147, 178, 221, 8,  42,  74,  116, 150, 184, 217, 15,  51,  94,  112, 156, 187, 214, 14},
  };
  for (uint64_t sample = 0; sample < std::size(cases); ++sample) {
    const Bytes found = bytes_with(AugMix(), small_picture(), sample);
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], cases[sample][i], 1) << sample << ", " << i;
  }
}

TEST(AutoAugment, AnyPicture) {
  const Tensor bytes = steps_of(37, 3, 6, 8), floats = ToFloat()(bytes);
  for (const Transform& policy :
       {Transform(AutoAugment()), Transform(RandAugment()),
        Transform(TrivialAugmentWide({.interpolation = Sampling::kBilinear, .fill = {1}})),
        Transform(AugMix({.chain_depth = 2, .all_ops = false}))}) {
    std::set<Bytes> seen;
    for (uint64_t sample = 0; sample < 40; ++sample) {
      seen.insert(bytes_with(policy, bytes, sample));
      for (const float value : with(policy, floats, sample).to_vector<float>()) {
        EXPECT_GE(value, 0);
        EXPECT_LE(value, 1.0001f);
      }
    }
    EXPECT_GT(seen.size(), 12u);
    EXPECT_EQ(with(policy, steps_of(1, 1, 2, 2)).shape(), (Shape{1, 2, 2}));
    EXPECT_EQ(with(policy, bytes.transpose(1, 2)).shape(), (Shape{3, 8, 6}));
    for (uint64_t sample = 0; sample < 20; ++sample)
      EXPECT_EQ(with(policy, zeros({3, 0, 4}, kHost), sample).numel(), 0);
    expect_error<ShapeError>([&] { with(policy, steps_of(1, 2, 2, 2)); }, {"1 or 3 channels"});
  }
}

// Floats are changed as the bytes that they stand for, but for rounding.
TEST(RandAugment, FloatsAsBytes) {
  const Tensor bytes = steps_of(37, 3, 6, 8), floats = ToFloat()(bytes);
  for (uint64_t sample = 0; sample < 100; ++sample) {
    const Bytes wanted = bytes_with(RandAugment({.num_ops = 1}), bytes, sample);
    const std::vector<float> found = with(RandAugment({.num_ops = 1}), floats, sample).to_vector<float>();
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i] * 255, wanted[i], 4) << sample;
  }
}

TEST(AutoAugment, Errors) {
  expect_error<ValueError>([] { RandAugment({.num_ops = -1}); }, {"RandAugment: num_ops", "got -1"});
  expect_error<ValueError>([] { RandAugment({.magnitude = 31}); }, {"magnitude must be 0 to 30", "got 31"});
  expect_error<ValueError>([] { RandAugment({.magnitude = 0, .num_magnitude_bins = 1}); },
                           {"at least 2, got 1"});
  expect_error<ValueError>([] { TrivialAugmentWide({.num_magnitude_bins = 0}); }, {"TrivialAugmentWide"});
  expect_error<ValueError>([] { AugMix({.severity = 11}); }, {"AugMix: severity must be 1 to 10, got 11"});
  expect_error<ValueError>([] { AugMix({.mixture_width = 0}); }, {"mixture_width", "got 0"});
  expect_error<ValueError>([] { AugMix({.alpha = 0}); }, {"alpha", "got 0"});
  expect_error<ValueError>(
      [] {
        with(AutoAugment({}, {.fill = {1, 2}}), small_picture());
      },
      {"AutoAugment: fill has 2 numbers for 3 channels"});
}

}  // namespace
}  // namespace tern::data
