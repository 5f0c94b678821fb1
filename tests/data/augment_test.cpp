// Transforms that blur, erase, turn and map pictures.
#include <cmath>
#include <numeric>
#include <set>

#include "tern/data/transforms.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tests/data/data_testing.h"
#include "tests/data/picture_testing.h"

namespace tern::data {
namespace {

using testing::bytes_with;
using testing::expect_error;
using testing::kHost;
using testing::steps_of;
using testing::with;
using Floats = std::vector<float>;

/// The weighted mean around each pixel, with a weight of its own for each of the neighbours in the plane.
Floats blurred(const Tensor& image, int64_t kernel_width, int64_t kernel_height, double sigma) {
  const Floats in = image.to_vector<float>();
  const int64_t height = image.size(1), width = image.size(2);
  const auto inside = [](int64_t at, int64_t size) {
    while (at < 0 || at >= size) at = at < 0 ? -at : 2 * size - 2 - at;
    return at;
  };
  Floats out;
  for (int64_t c = 0; c < image.size(0); ++c)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        double sum = 0, weights = 0;
        for (int64_t v = -(kernel_height / 2); v <= kernel_height / 2; ++v)
          for (int64_t u = -(kernel_width / 2); u <= kernel_width / 2; ++u) {
            const double weight = std::exp(-static_cast<double>(u * u + v * v) / (2 * sigma * sigma));
            const int64_t at = (c * height + inside(y + v, height)) * width + inside(x + u, width);
            sum += weight * static_cast<double>(in[static_cast<size_t>(at)]);
            weights += weight;
          }
        out.push_back(static_cast<float>(sum / weights));
      }
  return out;
}

TEST(GaussianBlur, MeansOfTheNeighbourhood) {
  const Tensor bytes = steps_of(37, 3, 5, 6), floats = ToFloat()(bytes);
  struct Kernel {
    int64_t width, height;
    double sigma;
  };
  for (const auto& [width, height, sigma] :
       {Kernel{3, 3, 0.8}, {5, 5, 2}, {7, 3, 1.5}, {1, 9, 100}, {1, 1, 1}}) {
    SCOPED_TRACE(width);
    const GaussianBlur blur(width, height, sigma);
    const Floats found = with(blur, floats).to_vector<float>(),
                 wanted = blurred(floats, width, height, sigma);
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-6) << i;
    const Floats of_bytes = blurred(bytes.to(float32), width, height, sigma);
    const Bytes rounded = bytes_with(blur, bytes);
    for (size_t i = 0; i < of_bytes.size(); ++i) EXPECT_NEAR(rounded[i], of_bytes[i], 0.5001) << i;
  }
  // exp(-1/2) = 0.607 and exp(-2) = 0.135 are 0.2442 and 0.0545 of the sum.
  EXPECT_EQ(bytes_with(GaussianBlur(5, 1, 1.0), tensor(Bytes{0, 0, 0, 100, 0, 0, 0}, kHost).view({1, 1, 7})),
            (Bytes{0, 5, 24, 40, 24, 5, 0}));
  EXPECT_EQ(bytes_with(GaussianBlur(3, 1.0), full({1, 4, 4}, 255, {.dtype = uint8, .device = kCPU})),
            Bytes(16, 255));
  EXPECT_TRUE(equal(with(GaussianBlur(3), bytes.transpose(1, 2)),
                    with(GaussianBlur(3), bytes.transpose(1, 2).contiguous())));
}

TEST(GaussianBlur, SigmaIsTheSamples) {
  const Tensor t = ToFloat()(steps_of(37, 1, 5, 6));
  std::set<Floats> seen;
  for (uint64_t sample = 0; sample < 20; ++sample) {
    Random same(1, 0, sample);
    const double sigma = 0.5 + 1.5 * static_cast<double>(same.uniform());
    const Floats found = with(GaussianBlur(5, {0.5, 2.0}), t, sample).to_vector<float>();
    const Floats wanted = blurred(t, 5, 5, sigma);
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-6);
    seen.insert(found);
  }
  EXPECT_EQ(seen.size(), 20u);
}

TEST(GaussianBlur, Errors) {
  const char* odd = "GaussianBlur: kernel_size must be odd and positive, got ";
  expect_error<ValueError>([] { GaussianBlur(4); }, {odd, "got 4"});
  expect_error<ValueError>([] { GaussianBlur(3, 0, 1.0); }, {odd, "got 0"});
  expect_error<ValueError>([] { GaussianBlur(-3); }, {odd, "got -3"});
  expect_error<ValueError>([] { GaussianBlur(3, 0.0); }, {"sigma must be positive", "got 0 to 0"});
  expect_error<ValueError>([] { GaussianBlur(3, {2, 1}); }, {"the smaller bound first, got 2 to 1"});
  expect_error<ValueError>([] { GaussianBlur(3, std::nan("")); }, {"sigma"});
  EXPECT_EQ(with(GaussianBlur(5, 5, 1.0), steps_of(1, 1, 3, 3)).numel(), 9);
  expect_error<ShapeError>([] { with(GaussianBlur(5, 3, 1.0), steps_of(1, 1, 3, 2)); },
                           {"a picture of 2x3 is too small", "a kernel of 5x3"});
  expect_error<ShapeError>([] { with(GaussianBlur(3), zeros({1, 0, 4}, kHost)); }, {"4x0"});
  expect_error<DTypeError>(
      [] {
        with(GaussianBlur(3), zeros({1, 4, 4}, {.dtype = int64, .device = kCPU}));
      },
      {"GaussianBlur", "int64"});
}

TEST(RandomApply, AllOrNothing) {
  const Tensor t = steps_of(1, 1, 2, 2);
  const auto plus_one = [](const Tensor& x) { return add(x, 1); };
  int applied = 0;
  for (uint64_t sample = 0; sample < 1000; ++sample) {
    const uint8_t first = bytes_with(RandomApply({plus_one, RandomApply({plus_one}, 1)}, 0.3), t, sample)[0];
    EXPECT_TRUE(first == 0 || first == 2);
    applied += first / 2;
  }
  EXPECT_NEAR(applied, 300, 50);
  EXPECT_TRUE(with(RandomApply({plus_one}, 0), t).is_same(t));
  expect_error<ValueError>([] { RandomApply({}, 1.5); }, {"RandomApply: p must be 0 to 1, got 1.5"});
}

TEST(RandomErasing, RectanglesOfTheAreaAndProportionAsked) {
  const Tensor t = ones({2, 8, 12}, kHost);
  const RandomErasing erasing({.p = 1, .scale = {8.0 / 96, 8.0 / 96}, .ratio = {0.5, 0.5}, .value = {5, 6}});
  std::set<std::pair<size_t, size_t>> places;
  for (uint64_t sample = 0; sample < 600; ++sample) {
    const Floats found = with(erasing, t, sample).to_vector<float>();
    const auto first = static_cast<size_t>(std::find(found.begin(), found.end(), 5.0f) - found.begin());
    ASSERT_LT(first, 96u);
    Floats wanted(192, 1);
    for (size_t y = 0; y < 2; ++y)
      for (size_t x = 0; x < 4; ++x)
        for (size_t c = 0; c < 2; ++c) wanted[c * 96 + first + y * 12 + x] = c == 0 ? 5 : 6;
    ASSERT_EQ(found, wanted);
    places.emplace(first / 12, first % 12);
  }
  EXPECT_EQ(places.size(), 63u) << "7 x 9 places";
  EXPECT_EQ(t.to_vector<float>(), Floats(192, 1)) << "the picture itself stays";
}

TEST(RandomErasing, SometimesAndWithNoise) {
  const Tensor t = full({1, 8, 8}, 100.0, kHost);
  int erased = 0;
  double sum = 0, squares = 0, count = 0;
  for (uint64_t sample = 0; sample < 1000; ++sample) {
    const Tensor found = with(RandomErasing({.p = 0.2, .random_value = true}), t, sample);
    if (found.is_same(t)) continue;
    ++erased;
    for (const float value : found.to_vector<float>()) {
      if (value == 100) continue;
      sum += static_cast<double>(value);
      squares += static_cast<double>(value * value);
      ++count;
    }
  }
  EXPECT_NEAR(erased, 200, 50);
  EXPECT_NEAR(sum / count, 0, 0.1);
  EXPECT_NEAR(squares / count, 1, 0.15);
  EXPECT_TRUE(with(RandomErasing({.p = 1, .scale = {1, 1}}), t).is_same(t)) << "never all of it";
  const Bytes one =
      bytes_with(RandomErasing({.p = 1, .scale = {0.25, 0.25}, .ratio = {1, 1}, .value = {255}}),
                 zeros({1, 2, 2}, {.dtype = uint8, .device = kCPU}));
  EXPECT_EQ(std::accumulate(one.begin(), one.end(), 0), 255);
  expect_error<ValueError>([] { RandomErasing({.scale = {0.5, 2}}); }, {"scale", "got 0.5 and 2"});
  expect_error<ValueError>([] { RandomErasing({.ratio = {0, 2}}); }, {"ratio", "got 0 and 2"});
  expect_error<ValueError>([] { RandomErasing({.value = {}}); }, {"there is none"});
  expect_error<ValueError>(
      [&] {
        with(RandomErasing({.value = {1, 2}}), t);
      },
      {"value has 2 numbers for 1 channels"});
  expect_error<ValueError>([] { with(RandomErasing({.value = {-1}}), steps_of(1, 1, 2, 2)); },
                           {"value must be 0 to 255 in a picture of uint8, got -1"});
  expect_error<DTypeError>([] { with(RandomErasing({.random_value = true}), steps_of(1, 1, 2, 2)); },
                           {"ToFloat"});
}

TEST(RandomRotation, CounterClockwiseByWholeTurns) {
  const Tensor t = steps_of(1, 1, 3, 3);
  EXPECT_EQ(bytes_with(RandomRotation({90, 90}), t), (Bytes{2, 5, 8, 1, 4, 7, 0, 3, 6}));
  EXPECT_EQ(bytes_with(RandomRotation({180, 180}), t), (Bytes{8, 7, 6, 5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(bytes_with(RandomRotation(0), t), t.to_vector<uint8_t>());
  const Tensor wide = with(RandomRotation({-90, -90}, {.expand = true}), steps_of(1, 1, 2, 4));
  EXPECT_EQ(wide.shape(), (Shape{1, 4, 2}));
  EXPECT_EQ(wide.to_vector<uint8_t>(), (Bytes{4, 0, 5, 1, 6, 2, 7, 3}));
}

// What torch's affine_grid and grid_sample give with torchvision's matrices.
TEST(RandomRotation, SameAsTorchvision) {
  const Tensor t = steps_of(20, 1, 3, 4);
  const AngleRange degrees{30, 30};
  EXPECT_EQ(bytes_with(RandomRotation(degrees, {.interpolation = Sampling::kBilinear, .fill = {100}}), t),
            (Bytes{64, 36, 79, 94, 24, 81, 139, 196, 74, 141, 159, 92}));
  const Floats found =
      with(RandomRotation(degrees, {.interpolation = Sampling::kBilinear, .fill = {100}}), t.to(float32))
          .to_vector<float>();
  const Floats wanted{63.669f, 36.092f,  79.378f, 94.132f,  24.019f,  81.34f,
                      138.66f, 195.981f, 73.772f, 140.622f, 159.024f, 91.972f};
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-3) << i;
  const Tensor large =
      with(RandomRotation(degrees, {.interpolation = Sampling::kBilinear, .expand = true, .fill = {7}}), t);
  EXPECT_EQ(large.shape(), (Shape{1, 5, 6}));
  EXPECT_EQ(large.to_vector<uint8_t>(), (Bytes{7,   7,  7, 19, 8,   7,   7,  6, 25, 79, 66, 7, 5, 24, 81, 139,
                                               196, 19, 7, 46, 141, 148, 35, 7, 7,  12, 47, 7, 7, 7}));
  EXPECT_EQ(bytes_with(RandomRotation(degrees, {.center = {{0, 0}}, .fill = {7}}), t),
            (Bytes{0, 100, 100, 200, 7, 160, 180, 7, 7, 160, 7, 7}));
}

TEST(RandomRotation, AnglesComeFromTheSample) {
  const Tensor t = steps_of(1, 1, 9, 9);
  std::set<Bytes> seen;
  for (uint64_t sample = 0; sample < 50; ++sample) {
    Random same(1, 0, sample);
    const double angle = -40 + 80 * static_cast<double>(same.uniform());
    const Bytes found = bytes_with(RandomRotation(40), t, sample);
    EXPECT_EQ(found, bytes_with(RandomRotation({angle, angle}), t));
    seen.insert(found);
  }
  EXPECT_GT(seen.size(), 20u);
}

TEST(RandomRotation, Errors) {
  expect_error<ValueError>([] { RandomRotation(-5); }, {"degrees", "got 5 to -5"});
  expect_error<ValueError>(
      [] {
        RandomRotation(5, {.expand = true, .center = {{0, 0}}});
      },
      {"leave center out"});
  expect_error<ValueError>([] { RandomRotation(5, {.fill = {}}); }, {"fill", "there is none"});
  expect_error<ValueError>(
      [] {
        with(RandomRotation(5, {.fill = {1, 2}}), steps_of(1, 3, 2, 2));
      },
      {"fill has 2 numbers for 3 channels"});
  expect_error<ValueError>([] { with(RandomRotation(5, {.fill = {256}}), steps_of(1, 1, 2, 2)); },
                           {"got 256"});
  EXPECT_EQ(with(RandomRotation(5, {.expand = true}), zeros({1, 0, 3}, kHost)).numel(), 0);
}

/// A sample that RandomAffine moves so far with translate = {0.5, 0.5} in a picture of 3x4.
uint64_t sample_that_moves(double x, double y) {
  for (uint64_t sample = 0;; ++sample) {
    Random random(1, 0, sample);
    random.uniform();  // the angle
    const double dx = -2 + 4 * static_cast<double>(random.uniform()),
                 dy = -1.5 + 3 * static_cast<double>(random.uniform());
    if (std::nearbyint(dx) == x && std::nearbyint(dy) == y) return sample;
  }
}

TEST(RandomAffine, SameAsTorchvision) {
  const Tensor t = steps_of(20, 1, 3, 4);
  const uint64_t sample = sample_that_moves(1, -1);
  EXPECT_EQ(bytes_with(RandomAffine(0, {.translate = {0.5, 0.5}}), t, sample),
            (Bytes{0, 80, 100, 120, 0, 160, 180, 200, 0, 0, 0, 0}));
  RandomAffineOptions options{
      .translate = {0.5, 0.5}, .scale = {1.3, 1.3}, .shear = {10, 10}, .shear_y = {-5, -5}, .fill = {50}};
  options.center = {{1, 2}};
  EXPECT_EQ(bytes_with(RandomAffine({20, 20}, options), t, sample),
            (Bytes{50, 80, 100, 100, 160, 160, 180, 120, 50, 50, 180, 200}));
  options.center = {};
  options.interpolation = Sampling::kBilinear;
  EXPECT_EQ(bytes_with(RandomAffine({20, 20}, options), t, sample),
            (Bytes{110, 129, 116, 104, 64, 126, 180, 167, 50, 47, 66, 135}));
  EXPECT_EQ(bytes_with(RandomAffine(0, {.translate = {0.5, 0.5}, .fill = {5, 6}}), steps_of(1, 2, 3, 4),
                       sample_that_moves(2, 0)),
            (Bytes{5, 5, 0, 1, 5, 5, 4, 5, 5, 5, 8, 9, 6, 6, 12, 13, 6, 6, 16, 17, 6, 6, 20, 21}));
}

TEST(RandomAffine, Errors) {
  expect_error<ValueError>([] { RandomAffine(-1); }, {"RandomAffine: degrees"});
  expect_error<ValueError>([] { RandomAffine(0, {.translate = {0, 2}}); }, {"translate", "got 0 and 2"});
  expect_error<ValueError>([] { RandomAffine(0, {.scale = {0, 1}}); }, {"scale", "got 0 and 1"});
  expect_error<ValueError>([] { RandomAffine(0, {.shear = 90}); }, {"shear", "got -90 to 90"});
}

}  // namespace
}  // namespace tern::data
