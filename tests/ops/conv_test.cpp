// Convolutions: every option against plain loops, "same" padding, transposed, gradients of both orders,
// errors.
#include "tern/ops/conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tern/autograd/engine.h"
#include "tern/autograd/gradcheck.h"
#include "tern/base/error.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/ops/reduce_testing.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using namespace tern::testing;
using ::testing::HasSubstr;
using In = std::vector<Tensor>;

/// Convolution of padded images by loops over the kernel: each tap is a strided view times a weight.
Tensor plain(const Tensor& x_given, const Tensor& w, Size2 stride, Size2 padding, Size2 dilation,
             int64_t groups) {
  const int64_t n = x_given.size(0), c = x_given.size(1), h = x_given.size(2), width = x_given.size(3);
  Tensor x = zeros({n, c, h + 2 * padding.h, width + 2 * padding.w}, {.dtype = float64});
  Tensor inside = narrow(narrow(x, 2, padding.h, h), 3, padding.w, width);
  copy_(inside, x_given);
  const int64_t out_h = (x.size(2) - dilation.h * (w.size(2) - 1) - 1) / stride.h + 1;
  const int64_t out_w = (x.size(3) - dilation.w * (w.size(3) - 1) - 1) / stride.w + 1;
  const int64_t group_out = w.size(0) / groups, group_in = w.size(1);
  std::vector<Tensor> parts;
  for (int64_t g = 0; g < groups; ++g) {
    Tensor y = zeros({n, group_out, out_h, out_w}, {.dtype = float64});
    for (int64_t i = 0; i < w.size(2); ++i)
      for (int64_t j = 0; j < w.size(3); ++j) {
        const Tensor rows =
            slice(narrow(x, 2, i * dilation.h, (out_h - 1) * stride.h + 1), 2, 0, {}, stride.h);
        const Tensor taps =
            slice(narrow(rows, 3, j * dilation.w, (out_w - 1) * stride.w + 1), 3, 0, {}, stride.w);
        const Tensor image = unsqueeze(narrow(taps, 1, g * group_in, group_in), 1);
        const Tensor weight =
            reshape(to(select(select(narrow(w, 0, g * group_out, group_out), 3, j), 2, i), float64),
                    {group_out, group_in, 1, 1});
        y.add_(sum(mul(image, weight), 2));
      }
    parts.push_back(y);
  }
  return cat(parts, 1);
}

/// conv2d_relu and its gradients of a float32 convolution, computed in `dtype`.
In relu_and_gradients(DType dtype, const Tensor& x_given, const Tensor& w_given, const Tensor& b_given,
                      const Conv2dOptions& o) {
  In leaves;
  for (const Tensor& given : {x_given, w_given, b_given})
    leaves.push_back(to(given, dtype).clone().requires_grad_());
  const Tensor y = conv2d_relu(leaves[0], leaves[1], leaves[2], o);
  mul(y, ragged(y.shape(), dtype).to(y.device())).sum().backward();
  return {y.detach(), leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
}

TEST(Conv2d, FewChannelsOfEverySize) {
  struct Case {
    Shape x, w;
    Size2 padding = 0;
  };
  const char* const names[] = {"result", "input's gradient", "weight's gradient", "bias's gradient"};
  for (const Case& c :
       {Case{{5, 1, 28, 28}, {6, 1, 5, 5}, 2}, Case{{5, 6, 14, 14}, {16, 6, 5, 5}},
        Case{{2, 3, 40, 71}, {8, 3, 3, 3}, 1},  // several bands of rows
        Case{{300, 1, 9, 9}, {5, 1, 5, 5}, 2},  // several images for a block that sums gradients
        Case{{2, 16, 20, 21}, {6, 16, 7, 7}, 3},
        Case{{3, 4, 6, 5}, {13, 4, 3, 5}, {2, 4}},  // as much padding as the kernel has room for
        Case{{3, 4, 6, 7}, {5, 4, 1, 3}, {1, 3}},   // more padding than that
        Case{{2, 2, 1, 3}, {1, 2, 1, 3}},           // one place
        Case{{1, 2, 3, 1500}, {3, 2, 3, 3}, 1},     // rows that are longer than a block
        Case{{1, 32, 9, 9}, {22, 32, 3, 3}, 1}}) {  // the most weights
    const Tensor x = ragged(c.x), w = ragged(c.w), b = ragged({c.w[0]});
    const In wanted = relu_and_gradients(float64, x.cpu(), w.cpu(), b.cpu(), {.padding = c.padding});
    const In got = on_cpu(relu_and_gradients(float32, x, w, b, {.padding = c.padding}));
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double largest = wanted[i].abs().max().item<double>();
      EXPECT_TRUE(allclose(to(got[i], float64), wanted[i], 0, 1e-6 * std::max(largest, 1.0)))
          << names[i] << " of " << to_string(c.x) << " by " << to_string(c.w);
    }
  }
}

TEST(Conv2d, ReluKeepsNan) {
  const Tensor x = ragged({1, 1, 4, 4}), w = ones({1, 1, 3, 3});
  x[0][0][0][0].fill_(std::numeric_limits<float>::quiet_NaN());
  const Tensor y = conv2d_relu(x, w);
  EXPECT_TRUE(std::isnan(y[0][0][0][0].item<float>()));
  EXPECT_FALSE(std::isnan(y[0][0][1][1].item<float>()));
}

TEST(Conv2d, EveryOption) {
  struct Case {
    Shape x, w;
    Conv2dOptions o;
  };
  for (const Case& c : {Case{{2, 3, 6, 5}, {4, 3, 3, 2}, {}}, Case{{2, 1, 28, 28}, {6, 1, 5, 5}, {}},
                        Case{{1, 6, 12, 12}, {16, 6, 5, 5}, {}},
                        Case{{2, 4, 7, 6},
                             {6, 2, 3, 2},
                             {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2}},
                        Case{{3, 5, 4, 4}, {5, 1, 3, 3}, {.padding = 1, .groups = 5}},
                        Case{{2, 3, 5, 5}, {2, 3, 1, 1}, {.stride = 2}}}) {
    const Tensor x = ragged(c.x), w = ragged(c.w), b = ragged({c.w[0]});
    const Tensor wanted =
        add(plain(x, w, c.o.stride, c.o.padding.size, c.o.dilation, c.o.groups), reshape(b, {-1, 1, 1}));
    EXPECT_TRUE(allclose(to(conv2d(x, w, b, c.o), float64), wanted, 1e-5, 1e-5)) << to_string(c.x);
    EXPECT_TRUE(allclose(conv2d(to(x, float64), to(w, float64), to(b, float64), c.o), wanted, 1e-12, 1e-12))
        << to_string(c.x);
    EXPECT_TRUE(allclose(to(conv2d(to(x, bfloat16), to(w, bfloat16), to(b, bfloat16), c.o), float64), wanted,
                         3e-2, 0.3))
        << to_string(c.x);
    const Tensor turned = transpose(contiguous(transpose(x, 1, 3)), 1, 3);
    EXPECT_TRUE(allclose(conv2d(turned, w, b, c.o), conv2d(x, w, b, c.o)));
    EXPECT_TRUE(allclose(conv2d(x[0], w, b, c.o), conv2d(x, w, b, c.o)[0], 1e-5, 1e-5));
  }
}

TEST(Conv2d, NothingToDo) {
  EXPECT_EQ(conv2d(ones({0, 4, 8, 8}), ones({5, 4, 4, 4})).shape(), (Shape{0, 5, 5, 5}));
  const Tensor y = conv2d(ones({1, 0, 8, 8}), ones({5, 0, 4, 4}), arange(5, {.dtype = float32}));
  EXPECT_TRUE(equal(y, expand(reshape(arange(5, {.dtype = float32}), {5, 1, 1}), {1, 5, 5, 5})));
  Tensor w = ones({5, 4, 4, 4}, {.requires_grad = true});
  sum(conv2d(ones({0, 4, 8, 8}), w)).backward();
  EXPECT_TRUE(equal(w.grad(), zeros({5, 4, 4, 4})));
}

TEST(Conv2d, SameAndValidPadding) {
  const Tensor x = ragged({1, 2, 6, 5});
  for (int64_t k : {1, 2, 3, 4}) {
    const Tensor w = ragged({3, 2, k, k});
    const Tensor y = conv2d(x, w, {}, {.padding = "same"});
    ASSERT_EQ(y.shape(), (Shape{1, 3, 6, 5}));
    Tensor padded = zeros({1, 2, 6 + k - 1, 5 + k - 1});
    Tensor inside = narrow(narrow(padded, 2, (k - 1) / 2, 6), 3, (k - 1) / 2, 5);
    copy_(inside, x);
    EXPECT_TRUE(allclose(y, conv2d(padded, w), 1e-5, 1e-5)) << k;
  }
  EXPECT_TRUE(
      equal(conv2d(x, ragged({3, 2, 2, 2}), {}, {.padding = "valid"}), conv2d(x, ragged({3, 2, 2, 2}))));
}

TEST(Conv1d, IsAFlatConvolution) {
  const Tensor x = ragged({2, 4, 9}), w = ragged({6, 2, 3}), b = ragged({6});
  const Tensor wanted = squeeze(
      conv2d(unsqueeze(x, 2), unsqueeze(w, 2), b, {.stride = {1, 2}, .padding = {0, 1}, .groups = 2}), 2);
  EXPECT_TRUE(equal(conv1d(x, w, b, {.stride = 2, .padding = 1, .groups = 2}), wanted));
  EXPECT_EQ(conv1d(x[0], w, b, {.groups = 2}).shape(), (Shape{6, 7}));
}

TEST(ConvTranspose2d, IsTheGradient) {
  const Tensor g = ragged({2, 4, 3, 4}), w = ragged({4, 3, 3, 2});
  const ConvTranspose2dOptions o{.stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 2}};
  const Tensor y = conv_transpose2d(g, w, {}, o);
  ASSERT_EQ(y.shape(), (Shape{2, 3, 6, 13}));
  Tensor x = zeros(y.shape(), {.requires_grad = true});
  backward({conv2d(x, w, {}, {.stride = o.stride, .padding = o.padding})}, {g});
  EXPECT_TRUE(allclose(y, x.grad()));
  const Tensor b = ragged({3});
  EXPECT_TRUE(allclose(conv_transpose2d(g, w, b, o), add(y, reshape(b, {3, 1, 1}))));
}

/// Values are PyTorch's.
TEST(ConvTranspose2d, OutputPaddingOfAStrideAndMore) {
  const ConvTranspose2dOptions o{
      .stride = {1, 2}, .padding = {1, 1}, .output_padding = {2, 3}, .dilation = {3, 4}};
  const Tensor x = reshape(tensor({1.0, 2.0, 3.0, 4.0}), {1, 1, 2, 2});
  const Tensor w = reshape(tensor({1.0, 2.0, 3.0, 4.0}), {1, 1, 2, 2}), b = tensor({0.5});
  const Tensor y = conv_transpose2d(x, w, b, o);
  ASSERT_EQ(y.shape(), (Shape{1, 1, 5, 8}));
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{0.5, 4.5,  0.5, 6.5,  0.5, 8.5,  0.5, 0.5,  //
                                                        0.5, 0.5,  0.5, 0.5,  0.5, 0.5,  0.5, 0.5,  //
                                                        0.5, 6.5,  0.5, 4.5,  0.5, 8.5,  0.5, 0.5,  //
                                                        0.5, 12.5, 0.5, 12.5, 0.5, 16.5, 0.5, 0.5,  //
                                                        0.5, 0.5,  0.5, 0.5,  0.5, 0.5,  0.5, 0.5}));
  auto f = [&](const In& in) { return conv_transpose2d(in[0], in[1], in[2], o); };
  gradcheck(f, {leaf({2, 2, 2, 2}), leaf({2, 1, 2, 2}), leaf({1})});
  gradgradcheck(f, {leaf({1, 2, 2, 2}), leaf({2, 1, 2, 2}), leaf({1})});
}

TEST(Conv, Gradients) {
  const Conv2dOptions odd{.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2};
  auto plain_conv = [](const In& in) { return conv2d(in[0], in[1], in[2]); };
  auto odd_conv = [&](const In& in) { return conv2d(in[0], in[1], in[2], odd); };
  gradcheck(plain_conv, {leaf({2, 2, 4, 3}), leaf({3, 2, 2, 2}), leaf({3})});
  gradgradcheck(plain_conv, {leaf({2, 2, 4, 3}), leaf({3, 2, 2, 2}), leaf({3})});
  gradcheck(odd_conv, {leaf({1, 2, 4, 3}), leaf({4, 1, 2, 2}), leaf({4})});
  gradgradcheck(odd_conv, {leaf({1, 2, 4, 3}), leaf({4, 1, 2, 2}), leaf({4})});
  gradcheck([](const In& in) { return conv2d(in[0], in[1], {}, {.padding = "same"}); },
            {leaf({1, 1, 4, 3}), leaf({1, 1, 2, 2})});
  gradgradcheck(
      [](const In& in) { return conv_transpose2d(in[0], in[1], in[2], {.stride = 2, .output_padding = 1}); },
      {leaf({1, 2, 2, 2}), leaf({2, 2, 2, 2}), leaf({2})});
  gradcheck([](const In& in) { return conv1d(in[0], in[1], in[2], {.padding = 1}); },
            {leaf({2, 2, 5}), leaf({3, 2, 3}), leaf({3})});
}

TEST(ConvErrors, InPyTorchsWords) {
  expect_error<ShapeError>(
      [] {
        conv2d(ones({2, 3, 28, 28}), ones({6, 1, 5, 5}));
      },
      "Given groups=1, weight of size [6, 1, 5, 5], expected input[2, 3, 28, 28] to have 1 channels, but got "
      "3 channels instead");
  expect_error<ShapeError>(
      [] {
        conv2d(ones({2, 3, 4, 4}), ones({6, 3, 5, 5}));
      },
      "Calculated padded input size per channel: (4 x 4). Kernel size: (5 x 5). Kernel size can't be greater "
      "than actual input size");
  expect_error<ShapeError>(
      [] {
        conv2d(ones({1, 4, 0, 8}), ones({5, 4, 1, 1}));
      },
      "Calculated padded input size per channel: (0 x 8)");
  expect_error<ShapeError>(
      [] {
        conv2d(ones({4, 4}), ones({6, 3, 5, 5}));
      },
      "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [4, 4]");
  expect_error<ShapeError>(
      [] {
        conv2d(ones({1, 3, 8, 8}), ones({6, 3, 5}));
      },
      "weight must be a 4-D tensor");
  expect_error<ShapeError>(
      [] {
        conv2d(ones({1, 3, 8, 8}), ones({6, 3, 5, 5}), ones({5}));
      },
      "Given weight of size [6, 3, 5, 5], expected bias to be 1-dimensional with 6 elements, but got bias of "
      "size [5] instead");
  expect_error<ShapeError>(
      [] {
        conv2d(ones({1, 4, 8, 8}), ones({5, 2, 5, 5}), {}, {.groups = 2});
      },
      "divisible by 2 at dimension 0");
  expect_error<ValueError>(
      [] {
        conv2d(ones({1, 4, 8, 8}), ones({5, 4, 5, 5}), {}, {.stride = 0});
      },
      "non-positive stride is not supported");
  expect_error<ValueError>(
      [] {
        conv2d(ones({1, 4, 8, 8}), ones({5, 4, 5, 5}), {}, {.padding = -1});
      },
      "negative padding is not supported");
  expect_error<ValueError>(
      [] {
        conv2d(ones({1, 4, 8, 8}), ones({5, 4, 5, 5}), {}, {.dilation = 0});
      },
      "dilation should be greater than zero");
  expect_error<ValueError>(
      [] {
        conv2d(ones({1, 4, 8, 8}), ones({5, 4, 5, 5}), {}, {.groups = 0});
      },
      "non-positive groups");
  expect_error<ValueError>(
      [] {
        conv2d(ones({1, 4, 8, 8}), ones({5, 4, 4, 4}), {}, {.stride = 2, .padding = "same"});
      },
      "padding='same' is not supported for strided convolutions");
  expect_error<ValueError>(
      [] {
        conv2d(ones({1, 4, 8, 8}), ones({5, 4, 4, 4}), {}, {.padding = "full"});
      },
      "Invalid padding string 'full'");
  expect_error<DTypeError>(
      [] {
        conv2d(ones({1, 4, 8, 8}), ones({5, 4, 4, 4}, {.dtype = float64}));
      },
      "Input type (float32) and weight type (float64) should be the same");
  expect_error<DTypeError>(
      [] {
        conv2d(ones({1, 4, 8, 8}, {.dtype = int64}), ones({5, 4, 4, 4}, {.dtype = int64}));
      },
      "not implemented for int64");
  expect_error<ShapeError>(
      [] {
        conv1d(ones({4}), ones({5, 4, 4}));
      },
      "Expected 2D (unbatched) or 3D (batched) input to conv1d");
  expect_error<ShapeError>(
      [] {
        conv_transpose2d(ones({1, 3, 2, 2}), ones({4, 3, 2, 2}));
      },
      "to have 4 channels, but got 3 channels");
  expect_error<ValueError>(
      [] {
        conv_transpose2d(ones({1, 4, 2, 2}), ones({4, 3, 2, 2}), {}, {.output_padding = 1});
      },
      "output padding must be smaller than either stride or dilation");
}

}  // namespace
}  // namespace tern
