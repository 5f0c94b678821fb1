// Transforms that bend pictures: RandomPerspective and ElasticTransform. The bytes are torchvision's, for the
// corners and the moves that the sample draws.
#include "tern/data/warp.h"

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

TEST(PerspectiveCoefficients, LeadFromEndToStart) {
  const Corners start = {{{0, 0}, {7, 0}, {7, 5}, {0, 5}}}, end = {{{1, 0}, {6, 1}, {7, 5}, {0, 4}}};
  const std::array<double, 8> found = perspective_coefficients(start, end);
  // torchvision's _get_perspective_coeffs
  const std::array<double, 8> expected = {1.2015056610107422,   0.30037641525268555, -1.2015056610107422,
                                          -0.3274780511856079,  1.6373902559280396,  0.3274780511856079,
                                          -0.03212045133113861, 0.09385194629430771};
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(found[i], expected[i], 1e-7) << i;
  const std::array<double, 8> same = perspective_coefficients(start, start);
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(same[i], i == 0 || i == 4 ? 1 : 0, 1e-15) << i;
  Corners large = start, moved = end;
  for (auto* corners : {&large, &moved})
    for (auto& corner : *corners)
      for (double& place : corner) place *= 1e5;
  EXPECT_NEAR(perspective_coefficients(large, moved)[7], 0.09385194629430771 / 1e5, 1e-12);
  const Corners line = {{{0, 0}, {2, 2}, {4, 4}, {0, 5}}};
  expect_error<ValueError>([&] { perspective_coefficients(start, line); },
                           {"perspective_coefficients: no map"});
  expect_error<ValueError>([&] { perspective_coefficients({}, end); }, {"no map"});
}

TEST(RandomPerspective, SameAsTorchvision) {
  const Tensor t = steps_of(37, 1, 5, 6);
  EXPECT_EQ(bytes_with(RandomPerspective({.distortion_scale = 0.8, .p = 1}), t, 1),
            (Bytes{26, 55, 103, 139, 162, 18,  52, 59, 53, 100, 140, 41, 0,  191, 78,
                   51, 96, 62,  0,   107, 193, 86, 48, 74, 0,   0,   0,  24, 25,  47}));
  EXPECT_EQ(bytes_with(RandomPerspective({.p = 1, .fill = {100}}), t, 2),
            (Bytes{84,  37, 62,  100, 100, 100, 93,  194, 97, 58, 104, 100, 96,  172, 201,
                   143, 51, 100, 98,  149, 170, 198, 186, 54, 97, 131, 133, 115, 94,  100}));
  EXPECT_EQ(
      bytes_with(RandomPerspective(
                     {.distortion_scale = 0.8, .p = 1, .interpolation = Sampling::kNearest, .fill = {7}}),
                 t, 3),
      (Bytes{7,  7,  74, 117, 117, 7,   7,  7,  6,  46, 83,  83,  7,   188, 228,
             46, 46, 83, 7,   191, 228, 12, 12, 49, 7,  157, 231, 231, 12,  12}));
}

TEST(RandomPerspective, SometimesAndOfAnySize) {
  const Tensor t = steps_of(37, 3, 5, 6);
  EXPECT_EQ(bytes_with(RandomPerspective({.distortion_scale = 0, .p = 1}), t), t.to_vector<uint8_t>());
  int changed = 0;
  std::set<Bytes> seen;
  for (uint64_t sample = 0; sample < 300; ++sample) {
    const Tensor found = with(RandomPerspective({.distortion_scale = 1, .p = 0.3}), t, sample);
    changed += found.is_same(t) ? 0 : 1;
    seen.insert(found.to_vector<uint8_t>());
  }
  EXPECT_NEAR(changed, 90, 25);
  EXPECT_GT(seen.size(), 30u);
  const Tensor thin = steps_of(37, 1, 5, 1);
  EXPECT_TRUE(with(RandomPerspective({.p = 1}), thin).is_same(thin));
  EXPECT_EQ(with(RandomPerspective({.p = 1}), zeros({1, 0, 3}, kHost)).numel(), 0);
}

TEST(RandomPerspective, Errors) {
  expect_error<ValueError>([] { RandomPerspective({.distortion_scale = 1.5}); },
                           {"distortion_scale", "got 1.5"});
  expect_error<ValueError>([] { RandomPerspective({.p = -1}); }, {"RandomPerspective: p", "got -1"});
  expect_error<ValueError>([] { RandomPerspective({.fill = {}}); }, {"RandomPerspective: fill"});
  expect_error<ValueError>([] { with(RandomPerspective({.p = 0, .fill = {300}}), steps_of(1, 1, 2, 2)); },
                           {"RandomPerspective: fill must be 0 to 255", "got 300"});
}

TEST(ElasticTransform, SameAsTorchvision) {
  const Tensor t = steps_of(37, 1, 4, 5);
  EXPECT_EQ(bytes_with(ElasticTransform({.alpha = {6, 4}, .sigma = {0.5, 0.8}}), t, 1),
            (Bytes{0, 20, 30, 3, 106, 9, 119, 112, 81, 4, 181, 174, 124, 145, 0, 27, 22, 119, 0, 0}));
  EXPECT_EQ(
      bytes_with(ElasticTransform({.alpha = 3, .sigma = 0, .fill = {100}}), t, 2),
      (Bytes{66, 119, 100, 59, 82, 196, 196, 43, 52, 61, 120, 218, 202, 182, 90, 163, 81, 169, 167, 164}));
  EXPECT_EQ(bytes_with(ElasticTransform(
                           {.alpha = 5, .sigma = 0.6, .interpolation = Sampling::kNearest, .fill = {7}}),
                       t, 3),
            (Bytes{222, 74, 40, 40, 40, 114, 151, 188, 77, 148, 7, 80, 80, 188, 40, 7, 43, 43, 117, 191}));
}

TEST(ElasticTransform, OfAnySize) {
  const Tensor t = steps_of(37, 3, 4, 5);
  EXPECT_EQ(bytes_with(ElasticTransform({.alpha = 0}), t), t.to_vector<uint8_t>());
  EXPECT_NE(bytes_with(ElasticTransform(), t, 1), bytes_with(ElasticTransform(), t, 2));
  EXPECT_EQ(with(ElasticTransform(), ToFloat()(t)).shape(), t.shape());
  EXPECT_EQ(with(ElasticTransform(), zeros({1, 0, 3}, kHost)).numel(), 0);
}

TEST(ElasticTransform, Errors) {
  expect_error<ValueError>([] { ElasticTransform({.alpha = std::nan("")}); }, {"alpha must be finite"});
  expect_error<ValueError>([] { ElasticTransform({.sigma = {0, 1}}); }, {"sigma", "0 for both, got 0 and 1"});
  expect_error<ValueError>([] { ElasticTransform({.sigma = -1}); }, {"got -1 and -1"});
  expect_error<ValueError>([] { ElasticTransform({.sigma = 1e9}); }, {"at most 10000"});
  expect_error<ValueError>([] { ElasticTransform({.fill = {}}); }, {"ElasticTransform: fill"});
}

}  // namespace
}  // namespace tern::data
