// Pooling: every option against plain loops over windows, indices, gradients of both orders, errors.
#include "tern/ops/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tern/autograd/engine.h"
#include "tern/autograd/gradcheck.h"
#include "tern/base/error.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/ops/reduce_testing.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using namespace tern::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using In = std::vector<Tensor>;

/// Distinct values, so that every window has one maximum.
Tensor distinct(IntArrayRef shape, DType dtype = float32) {
  const int64_t numel = checked_numel(shape);
  return to(reshape(remainder(mul(arange(numel), 7919), 10007), shape), dtype);
}
Tensor distinct_leaf(IntArrayRef shape) { return distinct(shape, float64).requires_grad_(); }

/// One output of the windows that start at every `step`: f(values inside the image, size of the window with
/// padding).
std::vector<double> windows(const Tensor& x, int64_t out_h, int64_t out_w, Size2 kernel, Size2 step,
                            Size2 padding, Size2 dilation,
                            const std::function<double(const std::vector<double>&, int64_t)>& f) {
  const std::vector<double> in = to(x, float64).to_vector<double>();
  const int64_t h = x.size(-2), w = x.size(-1);
  std::vector<double> out;
  for (int64_t plane = 0; plane < x.numel() / (h * w); ++plane)
    for (int64_t i = 0; i < out_h; ++i)
      for (int64_t j = 0; j < out_w; ++j) {
        std::vector<double> values;
        int64_t size = 0;
        for (int64_t a = 0; a < kernel.h; ++a)
          for (int64_t b = 0; b < kernel.w; ++b) {
            const int64_t y = i * step.h - padding.h + a * dilation.h,
                          z = j * step.w - padding.w + b * dilation.w;
            if (y < h + padding.h && z < w + padding.w) ++size;
            if (y >= 0 && y < h && z >= 0 && z < w)
              values.push_back(in[static_cast<size_t>((plane * h + y) * w + z)]);
          }
        out.push_back(f(values, size));
      }
  return out;
}
double largest(const std::vector<double>& values, int64_t) {
  return *std::max_element(values.begin(), values.end());
}
double total(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return sum;
}
void expect_values(const Tensor& got, const std::vector<double>& wanted) {
  const std::vector<double> values = to(got, float64).to_vector<double>();
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(values[i], wanted[i], 1e-5 * (1 + std::abs(wanted[i]))) << i;
}

TEST(MaxPool2d, EveryOption) {
  const Tensor x = distinct({2, 3, 7, 6});
  for (const Tensor& layout : {x, transpose(contiguous(transpose(x, 1, 3)), 1, 3)}) {
    expect_values(max_pool2d(layout, {.kernel_size = 2}), windows(x, 3, 3, 2, 2, 0, 1, largest));
    expect_values(max_pool2d(layout, {.kernel_size = 2, .ceil_mode = true}),
                  windows(x, 4, 3, 2, 2, 0, 1, largest));
    expect_values(
        max_pool2d(layout,
                   {.kernel_size = {3, 2}, .stride = Size2(2, 1), .padding = {1, 0}, .dilation = {1, 2}}),
        windows(x, 4, 4, {3, 2}, {2, 1}, {1, 0}, {1, 2}, largest));
  }
  for (DType dtype : {float64, float16, int64, uint8})
    EXPECT_TRUE(equal(max_pool2d(to(remainder(x, 200), dtype), {.kernel_size = 2}),
                      to(max_pool2d(remainder(x, 200), {.kernel_size = 2}), dtype)));
  EXPECT_EQ(max_pool2d(x[0], {.kernel_size = 3}).shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(max_pool2d(zeros({0, 3, 4, 4}), {.kernel_size = 2}).shape(), (Shape{0, 3, 2, 2}));
  EXPECT_TRUE(std::isnan(max_pool2d(tensor({{{1.0, kNan}, {2.0, 3.0}}}), {.kernel_size = 2}).item<float>()));
}

TEST(MaxPool2d, IndicesPointAtTheMaxima) {
  const Tensor x = distinct({2, 3, 7, 6});
  const auto [y, at] = max_pool2d_with_indices(x, {.kernel_size = 3, .stride = Size2(2), .padding = 1});
  EXPECT_EQ(at.dtype(), int64);
  EXPECT_TRUE(equal(reshape(gather(flatten(x, 2), 2, flatten(at, 2)), y.shape()), y));
  const auto [z, places] = adaptive_max_pool2d_with_indices(x, {3, 4});
  EXPECT_TRUE(equal(reshape(gather(flatten(x, 2), 2, flatten(places, 2)), z.shape()), z));
}

// Kernels for windows of 2 by 2 side by side: odd sizes, ties, NaN, and images that begin at an odd element.
TEST(MaxPool2d, Halving) {
  for (DType dtype : {float32, float64, float16, bfloat16})
    for (int64_t h : {4, 5})
      for (int64_t w : {6, 7}) {
        const Tensor numbers = remainder(arange(6 * h * w), 5);
        const Tensor x =
            reshape(narrow(to(cat({zeros({1}), numbers}), dtype), 0, 1, 6 * h * w), {2, 3, h, w});
        const Tensor leaf = x.detach().requires_grad_();
        const auto [y, at] = max_pool2d_with_indices(leaf, {.kernel_size = 2});
        const auto [integers, first] =
            max_pool2d_with_indices(reshape(numbers, x.shape()), {.kernel_size = 2});
        EXPECT_TRUE(equal(y, to(integers, dtype)));
        EXPECT_TRUE(equal(at, first));
        const Tensor g = to(reshape(arange(1, y.numel() + 1), y.shape()), dtype);
        y.backward(g);
        const Tensor spread =
            scatter(zeros({2, 3, h * w}, {.dtype = dtype}), 2, flatten(at, 2), flatten(g, 2));
        EXPECT_TRUE(equal(leaf.grad(), reshape(spread, x.shape())));
      }
  const Tensor nans = tensor({{{1.0, kNan, kNan, 2.0}, {kNan, 3.0, 4.0, 5.0}}});
  EXPECT_THAT(max_pool2d_with_indices(nans, {.kernel_size = 2}).second.to_vector<int64_t>(),
              ElementsAre(4, 2));
}

TEST(AvgPool2d, EveryOption) {
  const Tensor x = distinct({2, 3, 7, 6});
  auto mean_inside = [](const std::vector<double>& v, int64_t) {
    return total(v) / static_cast<double>(v.size());
  };
  auto mean_padded = [](const std::vector<double>& v, int64_t size) {
    return total(v) / static_cast<double>(size);
  };
  expect_values(avg_pool2d(x, {.kernel_size = 2}), windows(x, 3, 3, 2, 2, 0, 1, mean_inside));
  expect_values(avg_pool2d(x, {.kernel_size = 3, .stride = Size2(2), .padding = 1}),
                windows(x, 4, 3, 3, 2, 1, 1, mean_padded));
  expect_values(
      avg_pool2d(x, {.kernel_size = 3, .stride = Size2(2), .padding = 1, .count_include_pad = false}),
      windows(x, 4, 3, 3, 2, 1, 1, mean_inside));
  expect_values(avg_pool2d(x, {.kernel_size = 3, .divisor_override = 5}),
                windows(x, 2, 2, 3, 3, 0, 1, [](const auto& v, int64_t) { return total(v) / 5; }));
  EXPECT_EQ(avg_pool2d(ones({1, 4, 4}, {.dtype = int64}), {.kernel_size = 2}).dtype(), int64);
}

TEST(AdaptivePool, PartsOfTheImage) {
  const Tensor x = distinct({2, 3, 7, 6});
  EXPECT_TRUE(allclose(adaptive_avg_pool2d(x, 1), mean(x, {2, 3}, /*keepdim=*/true)));
  EXPECT_TRUE(equal(adaptive_max_pool2d(x, 1), amax(x, {2, 3}, /*keepdim=*/true)));
  EXPECT_TRUE(equal(adaptive_avg_pool2d(x, {7, 6}), x));
  EXPECT_TRUE(equal(adaptive_avg_pool2d(x, {-1, -1}), x));
  const Tensor y = adaptive_avg_pool2d(x, {3, 4});
  ASSERT_EQ(y.shape(), (Shape{2, 3, 3, 4}));
  EXPECT_FLOAT_EQ(y[1][2][1][3].item<float>(), mean(narrow(narrow(x[1][2], 0, 2, 3), 1, 4, 2)).item<float>());
}

TEST(Pool1d, IsFlatPooling) {
  const Tensor x = distinct({2, 3, 9}), image = unsqueeze(x, 2);
  EXPECT_TRUE(equal(
      max_pool1d(x, {.kernel_size = 3, .stride = 2, .padding = 1}),
      squeeze(max_pool2d(image, {.kernel_size = {1, 3}, .stride = Size2(1, 2), .padding = {0, 1}}), 2)));
  EXPECT_TRUE(equal(avg_pool1d(x, {.kernel_size = 3, .padding = 1}),
                    squeeze(avg_pool2d(image, {.kernel_size = {1, 3}, .padding = {0, 1}}), 2)));
  EXPECT_TRUE(equal(adaptive_avg_pool1d(x, 4), squeeze(adaptive_avg_pool2d(image, {1, 4}), 2)));
  EXPECT_TRUE(
      equal(adaptive_max_pool1d(x[0], 4), squeeze(adaptive_max_pool2d(unsqueeze(x[0], 1), {1, 4}), 1)));
}

TEST(Pool, GradientOfOverlappingWindows) {
  Tensor x = tensor({{{1.0, 5.0, 2.0}, {3.0, 4.0, 0.0}}}).requires_grad_();
  sum(max_pool2d(x, {.kernel_size = 2, .stride = Size2(1)})).backward();
  EXPECT_THAT(x.grad().to_vector<float>(), ElementsAre(0, 2, 0, 0, 0, 0));
}

TEST(Pool, Gradients) {
  const GradcheckOptions steps{.eps = 1e-3};
  const MaxPool2dOptions max{.kernel_size = 3, .stride = Size2(2), .padding = 1, .ceil_mode = true};
  const AvgPool2dOptions avg{
      .kernel_size = 3, .stride = Size2(2), .padding = 1, .ceil_mode = true, .count_include_pad = false};
  auto check = [&](const std::function<Tensor(const In&)>& f, IntArrayRef shape) {
    gradcheck(f, {distinct_leaf(shape)}, steps);
    gradgradcheck([&](const In& in) { return square(f(in)); }, {distinct_leaf(shape)}, steps);
  };
  check([&](const In& in) { return max_pool2d(in[0], max); }, {2, 2, 5, 6});
  check([&](const In& in) { return avg_pool2d(in[0], avg); }, {2, 2, 5, 6});
  check([&](const In& in) { return adaptive_avg_pool2d(in[0], {2, 3}); }, {2, 2, 5, 4});
  check([&](const In& in) { return adaptive_max_pool2d(in[0], {2, 3}); }, {2, 2, 5, 4});
  check([&](const In& in) { return max_pool1d(in[0], {.kernel_size = 2}); }, {2, 6});
}

TEST(PoolErrors, InPyTorchsWords) {
  const Tensor x = ones({1, 4, 8, 8});
  expect_error<ShapeError>(
      [&] { max_pool2d(x, {.kernel_size = 9}); },
      "Given input size: (4x8x8). Calculated output size: (4x0x0). Output size is too small");
  expect_error<ShapeError>(
      [&] {
        max_pool2d(ones({8, 8}), {.kernel_size = 2});
      },
      "Expected 3D or 4D (batch mode) tensor, but got [8, 8]");
  expect_error<ValueError>([&] { max_pool2d(x, {.kernel_size = 2, .padding = 2}); },
                           "pad should be at most half of effective kernel size");
  expect_error<ValueError>([&] { max_pool2d(x, {}); }, "kernel size should be greater than zero");
  expect_error<ValueError>([&] { max_pool2d(x, {.kernel_size = 2, .stride = Size2(-1)}); },
                           "stride should be greater than zero, but got dH: -1 dW: -1");
  expect_error<ValueError>([&] { max_pool2d(x, {.kernel_size = 2, .dilation = 0}); },
                           "dilation should be greater than zero");
  expect_error<DTypeError>([&] { max_pool2d(gt(x, 0), {.kernel_size = 2}); }, "not implemented for bool");
  expect_error<DTypeError>([&] { avg_pool2d(to(x, int32), {.kernel_size = 2}); },
                           "not implemented for int32");
  expect_error<ValueError>([&] { avg_pool2d(x, {.kernel_size = 2, .divisor_override = 0}); },
                           "divisor must be not zero");
  expect_error<ShapeError>(
      [&] {
        adaptive_avg_pool2d(ones({1, 4, 0, 8}), 2);
      },
      "with dimension 2 being empty");
  expect_error<ValueError>([&] { adaptive_avg_pool2d(x, {2, -3}); }, "greater than or equal to 0");
  expect_error<ShapeError>([&] { max_pool1d(ones({4}), {.kernel_size = 2}); },
                           "Expected 2D or 3D (batch mode) tensor");
}

}  // namespace
}  // namespace tern
