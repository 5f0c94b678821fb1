// Transforms of pictures as tensors.
#include "tern/data/transforms.h"

#include <cmath>
#include <numeric>
#include <set>

#include "tern/ops/creation.h"
#include "tests/data/data_testing.h"

namespace tern::data {
namespace {

using testing::expect_error;
using Floats = std::vector<float>;

const TensorOptions kOnHost{.device = kCPU};

/// uint8 [channels, height, width] with 0, 1, 2, ...
Tensor counting(int64_t channels, int64_t height, int64_t width) {
  Bytes bytes(static_cast<size_t>(channels * height * width));
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  return tensor(bytes, kOnHost).view({channels, height, width});
}

Bytes bytes_of(const Tensor& t) { return t.to_vector<uint8_t>(); }

TEST(ImageToTensor, PlanesAndBack) {
  const Tensor t = counting(3, 2, 2);
  EXPECT_EQ(t.shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(bytes_of(t), (Bytes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  const Image image = tensor_to_image(t);
  EXPECT_EQ(image.pixels, (Bytes{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(tensor_to_image(tensor({{0.0f, 0.5f}, {1.0f, 7.0f}, {-1.0f, std::nanf("")}}, kOnHost)).pixels,
            (Bytes{0, 128, 255, 255, 0, 0}));
  expect_error<ShapeError>(
      [] {
        tensor_to_image(zeros({2, 4, 4}, kOnHost));
      },
      {"tensor_to_image", "[2, 4, 4]"});
  expect_error<DTypeError>(
      [] {
        tensor_to_image(zeros({4, 4}, {.dtype = int64, .device = kCPU}));
      },
      {"tensor_to_image", "int64"});
}

TEST(Transform, EmptyOnesChangeNothing) {
  Random random(0, 0, 0);
  const Tensor x = counting(1, 2, 2);
  Tensor (*none)(const Tensor&) = nullptr;
  for (const Transform& empty :
       {Transform(), Transform(none), Transform(std::function<Tensor(const Tensor&)>()),
        Transform(std::function<Tensor(Tensor)>()),
        Transform(std::function<Tensor(const Tensor&, Random&)>())}) {
    EXPECT_FALSE(empty);
    EXPECT_TRUE(empty(x, random).is_same(x));
    EXPECT_TRUE(Compose(empty, Transform())(x, random).is_same(x));
  }
}

TEST(ToFloatAndNormalize, SameAsTorchvision) {
  Random random(0, 0, 0);
  const Compose steps(ToFloat(), Normalize({0.1307}, {0.3081}));
  const Tensor x = steps(tensor(Bytes{0, 1, 128, 255}, kOnHost).view({1, 2, 2}), random);
  EXPECT_EQ(x.dtype(), DType::Float32);
  // torch: ((b.float() / 255) - 0.1307) / 0.3081
  const Floats expected = {-0.42421296f, -0.41148472f, 1.2050011f, 2.8214867f};
  for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(x.to_vector<float>()[i], expected[i]);
  const Tensor rgb = Normalize({0, 1, 2}, {1, 2, 4})(full({3, 1, 1}, 6.0, kOnHost));
  EXPECT_EQ(rgb.to_vector<float>(), (Floats{6, 2.5f, 1}));
}

TEST(Normalize, Errors) {
  expect_error<ValueError>([] { Normalize({0.5}, {}); }, {"got 1 and 0"});
  expect_error<ValueError>([] { Normalize({0.5}, {0}); }, {"std not 0"});
  expect_error<ValueError>(
      [] {
        Normalize({0, 1}, {1, 1})(zeros({3, 2, 2}, kOnHost));
      },
      {"2 means for 3 channels"});
  expect_error<DTypeError>([] { Normalize({0}, {1})(counting(1, 2, 2)); },
                           {"expects float32, got uint8", "ToFloat"});
  expect_error<ShapeError>(
      [] {
        Normalize({0}, {1})(zeros({2, 2}, kOnHost));
      },
      {"[channels, height, width]", "[2, 2]"});
}

TEST(Resize, SidesAndValues) {
  const Tensor t = counting(1, 4, 6);
  EXPECT_EQ(Resize(2)(t).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(Resize(3, 5)(t).shape(), (Shape{1, 3, 5}));
  EXPECT_EQ(Resize(2)(counting(3, 6, 4)).shape(), (Shape{3, 3, 2}));
  EXPECT_EQ(bytes_of(Resize(2, 3, Interpolation::kArea)(t)), (Bytes{4, 6, 8, 16, 18, 20}));
  EXPECT_EQ(Resize(2, 3, Interpolation::kArea)(ToFloat()(t)).dtype(), DType::Float32);
  EXPECT_EQ(bytes_of(Resize(4, 6)(t)), bytes_of(t));
  // Views with strides work too.
  EXPECT_EQ(bytes_of(Resize(6, 4)(t.transpose(1, 2))), bytes_of(t.transpose(1, 2).contiguous()));
  expect_error<ValueError>([] { Resize(0); }, {"Resize", "got 0"});
  expect_error<ShapeError>([] { Resize(3)(zeros({1, 0, 4}, kOnHost)); }, {"empty"});
  expect_error<DTypeError>(
      [] {
        Resize(3)(zeros({1, 4, 4}, {.dtype = int64, .device = kCPU}));
      },
      {"Resize", "int64"});
}

TEST(CenterCrop, MiddleOrPadding) {
  const Tensor t = counting(1, 4, 4);
  EXPECT_EQ(bytes_of(CenterCrop(2)(t)), (Bytes{5, 6, 9, 10}));
  EXPECT_EQ(bytes_of(CenterCrop(1, 4)(t)), (Bytes{8, 9, 10, 11}));
  EXPECT_EQ(bytes_of(CenterCrop(4, 6)(counting(1, 1, 2))),
            (Bytes{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(RandomCrop, EveryPlaceComes) {
  const Tensor t = counting(1, 4, 4);
  std::set<Bytes> seen;
  for (uint64_t i = 0; i < 300; ++i) {
    Random random(1, 0, i);
    const Tensor crop = RandomCrop(2, /*padding=*/1)(t, random);
    EXPECT_EQ(crop.shape(), (Shape{1, 2, 2}));
    seen.insert(bytes_of(crop));
  }
  EXPECT_EQ(seen.size(), 25u) << "5 x 5 places";
  EXPECT_TRUE(seen.contains(Bytes{0, 0, 0, 0}));
  EXPECT_TRUE(seen.contains(Bytes{15, 0, 0, 0}));
  Random random(0, 0, 0);
  EXPECT_EQ(bytes_of(RandomCrop(4)(t, random)), bytes_of(t));
  expect_error<ValueError>([&] { RandomCrop(7, 1)(t, random); }, {"crop of 7x7", "4x4 with padding 1"});
  expect_error<ValueError>([] { RandomCrop(2, -1); }, {"padding"});
}

TEST(RandomHorizontalFlip, MirrorsHalfTheTime) {
  const Tensor t = counting(2, 2, 3);
  const Bytes mirrored = {2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9};
  int flips = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    Random random(1, 0, i);
    const Bytes result = bytes_of(RandomHorizontalFlip()(t, random));
    EXPECT_TRUE(result == mirrored || result == bytes_of(t));
    flips += result == mirrored ? 1 : 0;
  }
  EXPECT_NEAR(flips, 500, 60);
  Random random(0, 0, 0);
  EXPECT_EQ(bytes_of(RandomHorizontalFlip(1.0)(t, random)), mirrored);
  EXPECT_EQ(bytes_of(RandomHorizontalFlip(0.0)(t, random)), bytes_of(t));
  EXPECT_THROW(RandomHorizontalFlip(1.5), ValueError);
}

TEST(RandomVerticalFlip, TurnsHalfTheTime) {
  const Tensor t = counting(2, 3, 2);
  const Bytes turned = {4, 5, 2, 3, 0, 1, 10, 11, 8, 9, 6, 7};
  int flips = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    Random random(1, 0, i);
    const Bytes result = bytes_of(RandomVerticalFlip()(t, random));
    EXPECT_TRUE(result == turned || result == bytes_of(t));
    flips += result == turned ? 1 : 0;
  }
  EXPECT_NEAR(flips, 500, 60);
  Random random(0, 0, 0);
  EXPECT_EQ(bytes_of(RandomVerticalFlip(1.0)(t, random)), turned);
  EXPECT_EQ(RandomVerticalFlip(1.0)(ToFloat()(t), random).shape(), t.shape());
  EXPECT_EQ(RandomVerticalFlip(1.0)(zeros({1, 3, 0}, kOnHost), random).numel(), 0);
  expect_error<ValueError>([] { RandomVerticalFlip(-0.5); }, {"p must be 0 to 1"});
}

TEST(RandomResizedCrop, PiecesOfTheAreaAndProportionAsked) {
  // The picture's numbers are their place, so that a piece of the size asked tells where it is from.
  const Tensor t = counting(1, 8, 12);
  std::set<Bytes> seen;
  for (uint64_t i = 0; i < 600; ++i) {
    Random random(1, 0, i), again(1, 0, i);
    const RandomResizedCrop crop(4, {.scale = {16.0 / 96, 16.0 / 96}, .ratio = {1, 1}});
    const Bytes piece = bytes_of(crop(t, random));
    for (size_t k = 1; k < 16; ++k) EXPECT_EQ(piece[k] - piece[0], static_cast<int>(k / 4 * 12 + k % 4));
    EXPECT_EQ(bytes_of(crop(t, again)), piece);
    seen.insert(piece);
  }
  EXPECT_EQ(seen.size(), 45u) << "5 x 9 places";
  Random random(0, 0, 0);
  EXPECT_EQ(RandomResizedCrop(5, 7)(t, random).shape(), (Shape{1, 5, 7}));
  // Nothing fits: the largest square in the middle.
  EXPECT_EQ(bytes_of(RandomResizedCrop(8, {.scale = {1, 1}, .ratio = {1, 1}})(t, random)),
            bytes_of(CenterCrop(8)(t)));
  EXPECT_EQ(bytes_of(RandomResizedCrop(8, {.scale = {1, 1}, .ratio = {1, 1}})(t.transpose(1, 2), random)),
            bytes_of(CenterCrop(8)(t.transpose(1, 2))));
  expect_error<ValueError>([] { RandomResizedCrop(4, {.scale = {0, 1}}); }, {"scale", "got 0 and 1"});
  expect_error<ValueError>([] { RandomResizedCrop(4, {.ratio = {2, 1}}); }, {"ratio", "got 2 and 1"});
  expect_error<ValueError>([] { RandomResizedCrop(0); }, {"Resize", "got 0"});
  expect_error<ShapeError>([&] { RandomResizedCrop(4)(zeros({1, 0, 4}, kOnHost), random); }, {"empty"});
}

TEST(Grayscale, Luma) {
  const Tensor t = image_to_tensor({1, 2, 3, {255, 0, 0, 10, 20, 30}});
  EXPECT_EQ(bytes_of(Grayscale()(t)), (Bytes{76, 18}));
  EXPECT_EQ(bytes_of(Grayscale(3)(t)), (Bytes{76, 18, 76, 18, 76, 18}));
  EXPECT_NEAR(Grayscale()(ToFloat()(t)).to_vector<float>()[0], 0.299f, 1e-6);
  EXPECT_THROW(Grayscale(2), ValueError);
  EXPECT_THROW(Grayscale()(counting(2, 2, 2)), ShapeError);
}

TEST(RandomGrayscale, SomeOfTheTime) {
  const Tensor t = counting(3, 1, 2);
  const Bytes gray = bytes_of(Grayscale(3)(t));
  int grays = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    Random random(1, 0, i);
    const Bytes result = bytes_of(RandomGrayscale(0.2)(t, random));
    EXPECT_TRUE(result == gray || result == bytes_of(t));
    grays += result == gray ? 1 : 0;
  }
  EXPECT_NEAR(grays, 200, 50);
  Random random(0, 0, 0);
  EXPECT_EQ(RandomGrayscale(1)(counting(1, 2, 2), random).shape(), (Shape{1, 2, 2}));
  expect_error<ValueError>([] { RandomGrayscale(1.5); }, {"RandomGrayscale", "p must be 0 to 1, got 1.5"});
  expect_error<ShapeError>([&] { RandomGrayscale()(counting(2, 2, 2), random); },
                           {"RandomGrayscale", "1 or 3 channels, got [2, 2, 2]"});
}

TEST(ColorJitter, FormulasOfTorchvision) {
  // Two pixels, (200, 100, 50) of hue 20 degrees and (10, 20, 30) of 210; their greys are 124.18 and 18.149.
  const Tensor t = tensor(Bytes{200, 10, 100, 20, 50, 30}, kOnHost).view({3, 1, 2});
  struct Case {
    const char* name;
    ColorJitterOptions options;
    Bytes expected;
  };
  const Case cases[] = {
      {"nothing", {}, {200, 10, 100, 20, 50, 30}},
      {"brightness 0.5", {.brightness = {0.5, 0.5}}, {100, 5, 50, 10, 25, 15}},
      {"brightness 1.5", {.brightness = {1.5, 1.5}}, {255, 15, 150, 30, 75, 45}},
      {"contrast 0", {.contrast = {0, 0}}, {71, 71, 71, 71, 71, 71}},
      {"contrast 0.5", {.contrast = {0.5, 0.5}}, {135, 40, 85, 45, 60, 50}},
      {"contrast 2", {.contrast = {2, 2}}, {255, 0, 129, 0, 29, 0}},
      {"saturation 0", {.saturation = {0, 0}}, {124, 18, 124, 18, 124, 18}},
      {"saturation 0.5", {.saturation = {0.5, 0.5}}, {162, 14, 112, 19, 87, 24}},
      {"saturation 2", {.saturation = {2, 2}}, {255, 2, 76, 22, 0, 42}},
      {"hue 1/2", {.hue = {0.5, 0.5}}, {50, 30, 150, 20, 200, 10}},
      {"hue -1/2", {.hue = {-0.5, -0.5}}, {50, 30, 150, 20, 200, 10}},
      {"hue 1/4", {.hue = {0.25, 0.25}}, {75, 30, 200, 10, 50, 30}},
  };
  for (const Case& c : cases) {
    Random random(0, 0, 0);
    EXPECT_EQ(bytes_of(ColorJitter(c.options)(t, random)), c.expected) << c.name;
    const Floats floats = ColorJitter(c.options)(ToFloat()(t), random).to_vector<float>();
    for (size_t i = 0; i < floats.size(); ++i) EXPECT_NEAR(floats[i] * 255, c.expected[i], 1.1) << c.name;
  }
  EXPECT_EQ(t.to_vector<uint8_t>()[0], 200) << "the picture itself is left alone";

  Random random(0, 0, 0);
  const Tensor gray = tensor(Bytes{100, 50}, kOnHost).view({1, 1, 2});
  EXPECT_EQ(bytes_of(ColorJitter({.saturation = {3, 3}, .hue = {0.3, 0.3}})(gray, random)), bytes_of(gray));
  EXPECT_EQ(bytes_of(ColorJitter({.contrast = {2, 2}})(gray, random)), (Bytes{125, 25}));
  EXPECT_EQ(ColorJitter({.contrast = 0.5})(zeros({3, 0, 4}, kOnHost), random).numel(), 0);
}

TEST(ColorJitter, FactorsAreUniformAndTheOrderIsRandom) {
  const Tensor half = full({1, 1, 1}, 0.5, kOnHost);
  double sum = 0, least = 2, most = 0;
  std::set<float> orders;
  for (uint64_t i = 0; i < 2000; ++i) {
    Random random(1, 0, i), again(1, 0, i), other(2, 0, i);
    const ColorJitter jitter({.brightness = 0.4});
    const float factor = jitter(half, random).item<float>() / 0.5f;
    EXPECT_EQ(jitter(half, again).item<float>() / 0.5f, factor);
    sum += factor;
    least = std::min<double>(least, factor);
    most = std::max<double>(most, factor);
    // Brightness clips before or after the contrast, which leaves a single pixel as it is but for that.
    const Tensor pair = tensor({0.25f, 0.75f}, kOnHost).view({1, 1, 2});
    const ColorJitter both({.brightness = {2, 2}, .contrast = {0.5, 0.5}});
    orders.insert(both(pair, other).to_vector<float>()[0]);
  }
  EXPECT_NEAR(sum / 2000, 1, 0.02);
  EXPECT_NEAR(least, 0.6, 0.01);
  EXPECT_NEAR(most, 1.4, 0.01);
  EXPECT_EQ(orders, (std::set<float>{0.625f, 0.75f})) << "brightness first, contrast first";
}

TEST(ColorJitter, Errors) {
  expect_error<ValueError>([] { ColorJitter({.brightness = -0.5}); },
                           {"brightness", "not negative, got -0.5"});
  expect_error<ValueError>([] { ColorJitter({.contrast = {-1, 1}}); }, {"contrast", "got -1 to 1"});
  expect_error<ValueError>([] { ColorJitter({.saturation = {2, 1}}); }, {"saturation", "got 2 to 1"});
  expect_error<ValueError>([] { ColorJitter({.hue = 0.6}); }, {"hue", "-0.5 to 0.5", "got -0.6 to 0.6"});
  Random random(0, 0, 0);
  expect_error<ShapeError>([&] { ColorJitter({})(counting(2, 2, 2), random); }, {"ColorJitter", "[2, 2, 2]"});
}

TEST(Transform, AnyCallable) {
  Random random(3, 0, 0);
  const Tensor t = zeros({1, 2, 2}, kOnHost);
  EXPECT_TRUE(Transform()(t, random).is_same(t));
  EXPECT_FALSE(Transform());
  const Transform one = [](const Tensor&) { return ones({1}); };
  EXPECT_EQ(one(t, random).numel(), 1);
  const Transform with_random = [](const Tensor&, Random& r) { return full({1}, r.uniform()); };
  Random same(3, 0, 0);
  EXPECT_EQ(with_random(t, random).item<float>(), same.uniform());
  EXPECT_EQ(Compose(std::vector<Transform>{one, with_random, Compose(one)})(t, random).item<float>(), 1.0f);
}

}  // namespace
}  // namespace tern::data
