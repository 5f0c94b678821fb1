// Pad, crops in fives and tens, and transforms in random order.
#include <set>

#include "tern/data/data_loader.h"
#include "tern/data/image_tensors.h"
#include "tern/data/transforms.h"
#include "tern/ops/pointwise.h"
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

TEST(Pad, SameAsTorchvision) {
  const Tensor t = picture_of({1, 2, 3, 4, 5, 6}, 1, 2, 3);
  struct Case {
    Padding padding;
    PadOptions options;
    Bytes expected;
  };
  const Case cases[] = {
      {{1, 1, 2, 0}, {.fill = {9}}, {9, 9, 9, 9, 9, 9, 9, 1, 2, 3, 9, 9, 9, 4, 5, 6, 9, 9}},
      {{1, 1, 2, 0},
       {.padding_mode = PaddingMode::kEdge},
       {1, 1, 2, 3, 3, 3, 1, 1, 2, 3, 3, 3, 4, 4, 5, 6, 6, 6}},
      {{1, 1, 2, 0},
       {.padding_mode = PaddingMode::kReflect},
       {5, 4, 5, 6, 5, 4, 2, 1, 2, 3, 2, 1, 5, 4, 5, 6, 5, 4}},
      {{1, 1, 2, 0},
       {.padding_mode = PaddingMode::kSymmetric},
       {1, 1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 4, 4, 5, 6, 6, 5}},
      // Again and again, of PIL's pictures.
      {{4, 0, 5, 3},
       {.padding_mode = PaddingMode::kReflect},
       {1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2, 4, 5, 6, 5, 4, 5, 6, 5, 4, 5, 6, 5, 1, 2, 3, 2, 1, 2,
        3, 2, 1, 2, 3, 2, 4, 5, 6, 5, 4, 5, 6, 5, 4, 5, 6, 5, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2}},
      {{4, 0, 5, 3},
       {.padding_mode = PaddingMode::kSymmetric},
       {3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 2, 6, 6, 5, 4, 4, 5, 6, 6, 5, 4, 4, 5, 6, 6, 5, 4, 4, 5,
        6, 6, 5, 4, 4, 5, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 2}},
  };
  for (const Case& c : cases) {
    const Pad pad(c.padding, c.options);
    EXPECT_EQ(bytes_with(pad, t), c.expected);
    EXPECT_EQ(bytes_with(pad, t.transpose(1, 2).contiguous().transpose(1, 2)), c.expected);
    EXPECT_EQ(with(pad, t.to(float32)).to(uint8).to_vector<uint8_t>(), c.expected);
  }
  EXPECT_EQ(with(Pad({2, 1}), t).shape(), (Shape{1, 4, 7}));
  EXPECT_EQ(bytes_with(Pad(1, {.fill = {7, 8}}), picture_of({1, 2}, 2, 1, 1)),
            (Bytes{7, 7, 7, 7, 1, 7, 7, 7, 7, 8, 8, 8, 8, 2, 8, 8, 8, 8}));
  EXPECT_EQ(bytes_with(Pad({2, 0}, {.padding_mode = PaddingMode::kReflect}), picture_of({5}, 1, 1, 1)),
            (Bytes{5, 5, 5, 5, 5}));
}

TEST(Pad, Errors) {
  expect_error<ValueError>([] { Pad({0, -1}); }, {"Pad: padding must be 0 to 2^20, got -1"});
  expect_error<ValueError>([] { Pad(1, {.fill = {}}); }, {"Pad: fill", "there is none"});
  expect_error<ValueError>(
      [] {
        with(Pad(1, {.fill = {1, 2}}), steps_of(1, 3, 2, 2));
      },
      {"Pad: fill has 2 numbers for 3 channels"});
  EXPECT_EQ(with(Pad(1), zeros({1, 0, 2}, kHost)).shape(), (Shape{1, 2, 4}));
  expect_error<ShapeError>(
      [] {
        with(Pad(1, {.padding_mode = PaddingMode::kEdge}), zeros({1, 0, 2}, kHost));
      },
      {"Pad: the picture is empty", "[1, 0, 2]"});
}

TEST(FiveCrop, CornersAndMiddle) {
  const Tensor t = steps_of(1, 1, 4, 5);
  const Tensor five = with(FiveCrop(2, 3), t);
  EXPECT_EQ(five.shape(), (Shape{5, 1, 2, 3}));
  EXPECT_EQ(five.to_vector<uint8_t>(), (Bytes{0,  1,  2,  5,  6,  7,   // upper left
                                              2,  3,  4,  7,  8,  9,   // upper right
                                              10, 11, 12, 15, 16, 17,  // lower left
                                              12, 13, 14, 17, 18, 19,  // lower right
                                              6,  7,  8,  11, 12, 13}));
  EXPECT_EQ(with(Compose(FiveCrop(4), ToFloat()), t).dtype(), DType::Float32);
  expect_error<ValueError>([&] { with(FiveCrop(5), t); }, {"FiveCrop: a crop of 5x5", "picture of 4x5"});
  expect_error<ValueError>([] { FiveCrop(0); }, {"FiveCrop: a side must be 1 to 2^20 pixels, got 0"});
}

TEST(TenCrop, TheFlippedPictureToo) {
  const Tensor t = steps_of(1, 2, 4, 5);
  for (const bool vertical : {false, true}) {
    const Tensor ten = with(TenCrop(2, 3, {.vertical_flip = vertical}), t);
    EXPECT_EQ(ten.shape(), (Shape{10, 2, 2, 3}));
    const Transform flip = vertical ? Transform(RandomVerticalFlip(1)) : Transform(RandomHorizontalFlip(1));
    Bytes expected = bytes_with(FiveCrop(2, 3), t);
    const Bytes flipped = bytes_with(FiveCrop(2, 3), with(flip, t));
    expected.insert(expected.end(), flipped.begin(), flipped.end());
    EXPECT_EQ(ten.to_vector<uint8_t>(), expected);
  }
  EXPECT_EQ(with(TenCrop(3), t).shape(), (Shape{10, 2, 3, 3}));
  expect_error<ValueError>([&] { with(TenCrop(5), t); }, {"TenCrop: a crop of 5x5"});
}

TEST(FiveCrop, SetsNormaliseAndBatchTheStack) {
  const ImageTensors set(steps_of(1, 4, 4, 4).unsqueeze(1), zeros({4}, {.dtype = int64, .device = kCPU}),
                         {"a"}, {.normalize = true, .mean = {0.5}, .std = {0.5}, .transform = FiveCrop(2)});
  DataLoader loader(set, {.batch_size = 4});
  for (auto& [x, y] : loader) {
    EXPECT_EQ(x.shape(), (Shape{4, 5, 1, 2, 2}));
    EXPECT_FLOAT_EQ(x.to_vector<float>()[0], -1);
  }
}

TEST(RandomChoice, OneOfThemByItsProbability) {
  const Tensor t = steps_of(1, 1, 1, 1);
  const auto plus = [](int n) { return [n](const Tensor& x) { return add(x, n); }; };
  const RandomChoice even({plus(0), plus(1), plus(2)}), uneven({plus(0), plus(1), plus(2)}, {1, 0, 3});
  std::array<int, 3> counts{}, uneven_counts{};
  for (uint64_t sample = 0; sample < 1000; ++sample) {
    ++counts[bytes_with(even, t, sample)[0]];
    ++uneven_counts[bytes_with(uneven, t, sample)[0]];
  }
  for (const int count : counts) EXPECT_NEAR(count, 333, 50);
  EXPECT_NEAR(uneven_counts[0], 250, 50);
  EXPECT_EQ(uneven_counts[1], 0);
  const char* choice = "RandomChoice: ";
  expect_error<ValueError>([] { RandomChoice({}, {}); }, {choice, "no transforms"});
  expect_error<ValueError>([&] { RandomChoice({plus(0)}, {1, 2}); }, {choice, "2 probabilities for 1"});
  expect_error<ValueError>([&] { RandomChoice({plus(0), plus(1)}, {1, -1}); }, {choice, "got -1"});
  expect_error<ValueError>([&] { RandomChoice({plus(0), plus(1)}, {0, 0}); }, {choice, "more than 0"});
}

TEST(RandomOrder, EveryOrderComes) {
  const auto append = [](int digit) { return [digit](const Tensor& x) { return add(mul(x, 4), digit); }; };
  const RandomOrder order({append(1), append(2), append(3)});
  std::set<uint8_t> seen;
  for (uint64_t sample = 0; sample < 100; ++sample)
    seen.insert(bytes_with(order, steps_of(1, 1, 1, 1), sample)[0]);
  EXPECT_EQ(seen,
            (std::set<uint8_t>{16 + 8 + 3, 16 + 12 + 2, 32 + 4 + 3, 32 + 12 + 1, 48 + 4 + 2, 48 + 8 + 1}));
}

}  // namespace
}  // namespace tern::data
