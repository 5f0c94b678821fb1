// Padding, pixel shuffle, instance norm, dropout of channels and distances: gradients against finite
// differences, and what the operator table cannot ask. Values against PyTorch are in operator_table.py.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tern/autograd/engine.h"
#include "tern/autograd/gradcheck.h"
#include "tern/ops/compare.h"
#include "tern/ops/conv.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/distance.h"
#include "tern/ops/norm.h"
#include "tern/ops/pad.h"
#include "tern/ops/pixel.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using Tensors = std::vector<Tensor>;

struct ImageRow {
  const char* name;
  std::vector<Shape> inputs;
  std::function<Tensor(const Tensors&)> function;
};

void PrintTo(const ImageRow& row, std::ostream* out) { *out << row.name; }

/// Squared, so that second derivatives are not 0.
std::function<Tensor(const Tensors&)> squared_pad(std::vector<int64_t> padding, const char* mode) {
  return [padding, mode](const Tensors& x) { return square(pad(x[0], padding, mode)); };
}

const Shape kRows3{2, 3, 4}, kMaps{2, 2, 5, 6}, kVolumes{1, 2, 2, 3, 2};

class ImageGradient : public ::testing::TestWithParam<ImageRow> {};

TEST_P(ImageGradient, FiniteDifferencesAgree) {
  Generator generator(3);
  Tensors inputs;
  for (const Shape& shape : GetParam().inputs)
    inputs.push_back(randn(shape, {.dtype = float64}, generator).requires_grad_());
  EXPECT_NO_THROW(gradcheck(GetParam().function, inputs));
  EXPECT_NO_THROW(gradgradcheck(GetParam().function, inputs));
}

std::vector<ImageRow> image_rows() {
  return {
      {"constant",
       {kRows3},
       [](const Tensors& x) {
         return square(pad(x[0], {1, -1, 0, 2}, "constant", 0.5));
       }},
      {"cut", {kRows3}, squared_pad({-1, -1}, "constant")},
      {"reflect", {kRows3}, squared_pad({3, 2}, "reflect")},
      {"reflect_image", {kMaps}, squared_pad({3, 2, 1, 4}, "reflect")},
      {"reflect_cut", {kMaps}, squared_pad({-1, 2, 2, -2}, "reflect")},
      {"reflect_volume", {kVolumes}, squared_pad({1, 1, 2, 0, 1, 0}, "reflect")},
      {"replicate", {kRows3}, squared_pad({0, 5}, "replicate")},
      {"replicate_image", {kMaps}, squared_pad({3, 2, 1, 4}, "replicate")},
      {"circular", {kRows3}, squared_pad({4, 3}, "circular")},
      {"circular_image", {kMaps}, squared_pad({3, 2, -1, 4}, "circular")},
      {"pixel_shuffle", {{2, 8, 2, 3}}, [](const Tensors& x) { return square(pixel_shuffle(x[0], 2)); }},
      {"pixel_unshuffle", {{2, 4, 6}}, [](const Tensors& x) { return square(pixel_unshuffle(x[0], 2)); }},
      {"conv_transpose1d",
       {{2, 2, 5}, {2, 3, 3}, {3}},
       [](const Tensors& x) {
         return conv_transpose1d(x[0], x[1], x[2], {.stride = 2, .padding = 1, .output_padding = 1});
       }},
      {"instance_norm",
       {kMaps, {2}, {2}},
       [](const Tensors& x) { return instance_norm(x[0], {}, {}, x[1], x[2]); }},
      {"instance_norm_tracked",
       {kMaps, {2}, {2}},
       [](const Tensors& x) {
         return instance_norm(x[0], zeros({2}, {.dtype = float64}), ones({2}, {.dtype = float64}), x[1],
                              x[2]);
       }},
      {"instance_norm_running",
       {kMaps, {2}, {2}},
       [](const Tensors& x) {
         return instance_norm(x[0], zeros({2}, {.dtype = float64}), ones({2}, {.dtype = float64}), x[1], x[2],
                              /*use_input_stats=*/false);
       }},
      {"dropout1d", {kRows3}, [](const Tensors& x) { return dropout1d(x[0], 0.5, true, Generator(1)); }},
      {"dropout2d", {kMaps}, [](const Tensors& x) { return dropout2d(x[0], 0.5, true, Generator(1)); }},
      {"normalize", {{3, 4}}, [](const Tensors& x) { return normalize(x[0]); }},
      {"normalize_p", {{3, 4}}, [](const Tensors& x) { return normalize(x[0], 3, 0); }},
      {"cosine_similarity", {{3, 4}, {3, 4}}, [](const Tensors& x) { return cosine_similarity(x[0], x[1]); }},
      {"cosine_similarity_broadcast",
       {{3, 1, 4}, {2, 1}},
       [](const Tensors& x) { return cosine_similarity(x[0], x[1], -1); }},
      {"pairwise_distance",
       {{3, 4}, {4}},
       [](const Tensors& x) { return pairwise_distance(x[0], x[1], 2, 1e-6, /*keepdim=*/true); }},
  };
}

std::string image_row_name(const ::testing::TestParamInfo<ImageRow>& tested) { return tested.param.name; }

INSTANTIATE_TEST_SUITE_P(Rows, ImageGradient, ::testing::ValuesIn(image_rows()), image_row_name);

TEST(Pad, RefusesWhatPyTorchRefuses) {
  const Tensor x = zeros({2, 3, 5});
  expect_error<ShapeError>([&] { pad(x, {1}); }, "pad: Padding length must be divisible by 2, got [1]");
  expect_error<ShapeError>(
      [&] {
        pad(x, {1, 1, 1, 1, 1, 1, 1, 1});
      },
      "padding length 8 and input of dimension 3");
  expect_error<ShapeError>(
      [&] {
        pad(x, {-3, -3});
      },
      "The input size 5, plus negative padding -3 and -3, resulted in a negative output "
      "size, which is invalid. Check dimension 2 of your input.");
  expect_error<ShapeError>(
      [&] {
        pad(x, {5, 0}, "reflect");
      },
      "Padding size should be less than the corresponding input dimension, but got: padding "
      "(5, 0) at dimension 2 of input [2, 3, 5]");
  expect_error<ShapeError>([&] { pad(x, {6, 0}, "circular"); }, "wrapping around more than once");
  expect_error<ShapeError>(
      [&] {
        pad(zeros({5}), {1, 1}, "reflect");
      },
      "Padding size 2 is not supported for 1D input tensor");
  expect_error<ShapeError>(
      [&] {
        pad(zeros({2, 0, 5}), {1, 1}, "replicate");
      },
      "Expected 2D or 3D (batch mode) tensor with possibly 0 batch size");
  expect_error<ShapeError>([&] { pad(x, {-3, -2}, "replicate"); }, "Calculated output size: 0");
  expect_error<ShapeError>([&] { pad(x, {int64_t{1} << 62, 1}); }, "more than a size can be");
  expect_error<ShapeError>([&] { pad(x, {int64_t{1} << 60, 1, int64_t{1} << 60, 1}); }, "pad: ");
  expect_error<ValueError>([&] { pad(x, {1, 1}, "mirror"); }, "pad: Unrecognised padding mode mirror");
  expect_error<ValueError>(
      [&] {
        pad(x, {1, 1}, "reflect", 1);
      },
      "Padding mode \"reflect\" doesn't take in value argument");
}

TEST(Pad, GivesStorageOfItsOwn) {
  const Tensor x = arange(6).to(float32).view({1, 2, 3});
  for (const char* mode : {"constant", "reflect", "replicate", "circular"})
    for (const std::vector<int64_t>& padding : {std::vector<int64_t>{0, 0}, {-1, 0}, {-1, 1}, {1, 1}}) {
      const Tensor y = pad(x, padding, mode);
      EXPECT_NE(y.storage(), x.storage()) << mode;
      EXPECT_TRUE(y.is_contiguous()) << mode;
    }
}

TEST(Pad, KeepsLargeIntegers) {
  const int64_t large = (int64_t{1} << 60) + 1;
  EXPECT_EQ(pad(zeros({1}, {.dtype = int64}), {0, 1}, "constant", large)[1].item<int64_t>(), large);
}

TEST(PixelShuffle, RefusesWrongSizes) {
  expect_error<ShapeError>(
      [] {
        pixel_shuffle(zeros({3, 2, 2}), 2);
      },
      "input.size(-3)=3 is not divisible by 4");
  expect_error<ShapeError>([] { pixel_shuffle(zeros({2, 2}), 1); }, "at least 3 dimensions");
  expect_error<ValueError>(
      [] {
        pixel_shuffle(zeros({4, 2, 2}), 0);
      },
      "a positive upscale_factor, but got 0");
  expect_error<ShapeError>(
      [] {
        pixel_unshuffle(zeros({1, 3, 2}), 2);
      },
      "expects height to be divisible by downscale_factor, but input.size(-2)=3");
  expect_error<ShapeError>([] { pixel_unshuffle(zeros({1, 2, 3}), 2); }, "expects width");
}

TEST(InstanceNorm, RefusesWrongArguments) {
  const Tensor x = zeros({2, 3, 4});
  expect_error<ValueError>(
      [] {
        instance_norm(zeros({2, 3, 1}));
      },
      "Expected more than 1 spatial element when training, got input size [2, 3, 1]");
  expect_error<ShapeError>([&] { instance_norm(x, {}, {}, ones({2})); },
                           "weight should contain 3 elements, one for each channel, not shape [2]");
  expect_error<ValueError>([&] { instance_norm(x, {}, {}, {}, {}, /*use_input_stats=*/false); },
                           "Expected running_mean and running_var to be defined");
  expect_error<ValueError>([&] { instance_norm(x, zeros({3})); }, "must be given together");
}

TEST(InstanceNorm, AnEmptyBatchKeepsTheStatistics) {
  const Tensor mean = zeros({3}), var = ones({3});
  EXPECT_EQ(instance_norm(zeros({0, 3, 4}), mean, var).shape(), (Shape{0, 3, 4}));
  EXPECT_EQ(mean.to_vector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(var.to_vector<float>(), (std::vector<float>{1, 1, 1}));
}

TEST(DropoutOfChannels, DropsThemWhole) {
  manual_seed(8);
  const Tensor x = full({40, 50, 2, 3}, 2.0).requires_grad_();
  const Tensor y = dropout2d(x, 0.25);
  const Tensor planes = y.detach().view({2000, 6});
  EXPECT_TRUE(equal(amax(planes, 1), amin(planes, 1)));
  double kept = 0;
  for (const float v : amax(planes, 1).to_vector<float>()) {
    ASSERT_TRUE(v == 0.0f || std::abs(v - 2 / 0.75) < 1e-6) << v;
    kept += v != 0;
  }
  EXPECT_NEAR(kept / 2000, 0.75, 0.05);
  sum(y).backward();
  EXPECT_TRUE(allclose(x.grad() * 2.0, y.detach()));
  EXPECT_TRUE(dropout2d(x, 0.25, /*training=*/false).is_same(x));
}

TEST(DropoutOfChannels, DrawsOneNumberForEachChannel) {
  const Tensor one = dropout2d(ones({5, 7, 2, 2}), 0.5, true, Generator(4)),
               two = dropout1d(ones({5, 7, 3}), 0.5, true, Generator(4)),
               flat = dropout(ones({5, 7}), 0.5, true, Generator(4)),
               unbatched = dropout1d(ones({35, 3}), 0.5, true, Generator(4));
  EXPECT_TRUE(equal(amax(one, {2, 3}), flat));
  EXPECT_TRUE(equal(amax(two, 2), flat));
  EXPECT_TRUE(equal(amax(unbatched, 1).view({5, 7}), flat));
  expect_error<ShapeError>([] { dropout1d(ones({3})); },
                           "dropout1d: Expected 2D or 3D input, but received a 1D");
  expect_error<ShapeError>([] { dropout2d(ones({3})); }, "at least 2 dimensions");
}

TEST(Cosine, ComputesWithOneCopyOfWhatIsBroadcast) {
  Generator generator(1);
  const Tensor a = randn({30, 1, 8}, {}, generator), b = randn({20, 8}, {}, generator);
  const Tensor all = cosine_similarity(a, b, -1);
  EXPECT_EQ(all.shape(), (Shape{30, 20}));
  EXPECT_TRUE(allclose(all, cosine_similarity(expand(a, {30, 20, 8}), expand(b, {30, 20, 8}), 2)));
  EXPECT_EQ(cosine_similarity(zeros({2, 3}), ones({2, 3})).to_vector<float>(), (std::vector<float>{0, 0}));
}

}  // namespace
}  // namespace tern
