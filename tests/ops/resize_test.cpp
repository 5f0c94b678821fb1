// Resizing, sliding blocks and shuffled channels: gradients of both orders against finite differences, and
// what the operator table cannot ask. Values against PyTorch are in operator_table.py.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tern/autograd/gradcheck.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/fold.h"
#include "tern/ops/interpolate.h"
#include "tern/ops/pixel.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/shape.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

struct ResizeRow {
  const char* name;
  Shape input;
  std::function<Tensor(const Tensor&)> function;
};

void PrintTo(const ResizeRow& row, std::ostream* out) { *out << row.name; }

std::function<Tensor(const Tensor&)> resizing(const InterpolateOptions& options) {
  return [options](const Tensor& x) { return interpolate(x, options); };
}

class ResizeGradient : public ::testing::TestWithParam<ResizeRow> {};

TEST_P(ResizeGradient, FiniteDifferencesAgree) {
  Generator generator(3);
  const Tensor x = randn(GetParam().input, {.dtype = float64}, generator).requires_grad_();
  // Squared, so that second derivatives are not 0.
  const auto function = [](const std::vector<Tensor>& inputs) {
    return square(GetParam().function(inputs[0]));
  };
  EXPECT_NO_THROW(gradcheck(function, {x}));
  EXPECT_NO_THROW(gradgradcheck(function, {x}));
}

std::vector<ResizeRow> resize_rows() {
  const Shape signals{2, 2, 4}, images{1, 2, 4, 5}, volumes{1, 2, 2, 3, 2};
  return {
      {"nearest", signals, resizing({.size = {6}})},
      {"linear", signals, resizing({.scale_factor = {1.6}, .mode = "linear"})},
      {"bilinear", images, resizing({.size = {7, 3}, .mode = "bilinear"})},
      {"bilinear_corners", images, resizing({.size = {3, 7}, .mode = "bilinear", .align_corners = true})},
      {"bilinear_antialias", images, resizing({.size = {2, 3}, .mode = "bilinear", .antialias = true})},
      {"bicubic", images, resizing({.scale_factor = {1.7}, .mode = "bicubic"})},
      {"bicubic_antialias", images, resizing({.size = {6, 2}, .mode = "bicubic", .antialias = true})},
      {"area", images, resizing({.size = {3, 2}, .mode = "area"})},
      {"trilinear", volumes, resizing({.size = {3, 2, 3}, .mode = "trilinear"})},
      {"channels_last",
       {1, 4, 5, 3},
       [](const Tensor& x) {
         return interpolate(permute(x, {0, 3, 1, 2}), {.size = {3, 3}, .mode = "bilinear"});
       }},
      {"unfold", images,
       [](const Tensor& x) {
         return unfold(x, {2, 3}, {.padding = {1, 0}});
       }},
      {"fold",
       {1, 8, 12},
       [](const Tensor& x) {
         return fold(x, {4, 5}, 2);
       }},
      {"fold_strided",
       {2, 4, 9},
       [](const Tensor& x) { return fold(x, 5, 2, {.dilation = 2, .padding = 1, .stride = 2}); }},
      {"channel_shuffle", {2, 4, 3}, [](const Tensor& x) { return channel_shuffle(x, 2); }},
  };
}

std::string resize_row_name(const ::testing::TestParamInfo<ResizeRow>& tested) { return tested.param.name; }

INSTANTIATE_TEST_SUITE_P(Rows, ResizeGradient, ::testing::ValuesIn(resize_rows()), resize_row_name);

TEST(Interpolate, RepeatsTheSameBits) {
  for (const char* mode : {"nearest", "bilinear", "bicubic"}) {
    std::vector<double> before;
    for (int run = 0; run < 3; ++run) {
      Tensor x = sin(arange(2 * 3 * 17 * 19)).to(float32).reshape({2, 3, 17, 19}).detach().requires_grad_();
      interpolate(x, {.size = {40, 11}, .mode = mode}).square().sum().backward();
      const std::vector<double> grad = x.grad().to_vector<double>();
      if (run != 0) {
        EXPECT_EQ(grad, before) << mode;
      }
      before = grad;
    }
  }
}

TEST(Interpolate, ResultsAreContiguous) {
  const Tensor x = ones({2, 8, 9, 3}).permute({0, 3, 1, 2});
  for (const int64_t size : {4, 20}) EXPECT_TRUE(interpolate(x, {.size = {size}}).is_contiguous());
}

}  // namespace
}  // namespace tern
