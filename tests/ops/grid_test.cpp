// Readings of images and volumes by grids: gradients against finite differences, and what the operator table
// cannot ask. Values against PyTorch are in operator_table.py.
#include "tern/ops/grid.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tern/autograd/engine.h"
#include "tern/autograd/gradcheck.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

constexpr const char* kModes[] = {"bilinear", "nearest", "bicubic"};
constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};

Tensor places(const Shape& shape, double most, uint64_t seed) {
  Tensor grid = empty(shape, {.dtype = float64});
  uniform_(grid, -most, most, Generator(seed));
  return grid;
}

TEST(GridSample, FiniteDifferencesAgree) {
  for (const char* mode : kModes)
    for (const char* padding : kPaddings)
      for (const bool corners : {false, true}) {
        SCOPED_TRACE(std::string(mode) + " " + padding);
        const GridSampleOptions options{.mode = mode, .padding_mode = padding, .align_corners = corners};
        const auto function = [&](const std::vector<Tensor>& in) {
          return square(grid_sample(in[0], in[1], options));
        };
        Generator generator(3);
        const Tensor images = randn({2, 3, 4, 5}, {.dtype = float64}, generator).requires_grad_();
        const Tensor volumes = randn({1, 2, 2, 3, 4}, {.dtype = float64}, generator).requires_grad_();
        EXPECT_NO_THROW(gradcheck(function, {images, places({2, 3, 2, 2}, 1.3, 1).requires_grad_()}));
        EXPECT_NO_THROW(gradcheck(function, {volumes, places({1, 2, 2, 1, 3}, 1.3, 2).requires_grad_()}));
      }
}

TEST(GridSample, SecondDerivativesAreRefused) {
  const Tensor x = randn({1, 2, 3, 4}).requires_grad_(),
               grid = to(places({1, 2, 2, 2}, 1, 1), float32).requires_grad_();
  const std::vector<Tensor> first = grad({sum(grid_sample(x, grid))}, {x, grid}, {}, {.create_graph = true});
  for (const Tensor& each : first)
    expect_error<NotImplementedError>([&] { sum(each).backward({}, /*retain_graph=*/true); },
                                      "grid_sample: second derivatives are not implemented");
}

TEST(GridSample, RepeatsTheSameBits) {
  for (const Shape& shape : {Shape{2, 3, 9, 11}, Shape{2, 19, 9, 11}})
    for (const char* mode : kModes) {
      std::vector<double> before;
      for (int run = 0; run < 3; ++run) {
        Tensor x = sin(arange(2 * shape[1] * 99)).to(float32).reshape(shape).detach().requires_grad_();
        // Most places meet at the border.
        const Tensor grid = to(places({2, 30, 20, 2}, 5, 4), float32);
        grid_sample(x, grid, {.mode = mode, .padding_mode = "border"}).square().sum().backward();
        const std::vector<double> gradient = x.grad().to_vector<double>();
        if (run != 0) {
          EXPECT_EQ(gradient, before) << mode;
        }
        before = gradient;
      }
    }
}

/// What PyTorch's CPU reads outside for is without a gradient.
TEST(GridSample, PlacesThatAreNoNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* padding : {"border", "reflection"}) {
    const Tensor x = arange(12, {.dtype = float64}).reshape({1, 1, 3, 4}).detach().requires_grad_();
    const Tensor grid =
        tensor({nan, 0.0}, {.dtype = float64}).reshape({1, 1, 1, 2}).detach().requires_grad_();
    const Tensor y = grid_sample(x, grid, {.padding_mode = padding});
    EXPECT_EQ(y.to_vector<double>(), std::vector<double>{4});
    y.backward(ones_like(y));
    EXPECT_EQ(grid.grad().to_vector<double>()[0], 0);
    EXPECT_EQ(sum(x.grad()).item<double>(), 1);
  }
}

TEST(GridSample, NothingIsReadAtNoPlaces) {
  const Tensor x = randn({2, 3, 4, 5}).requires_grad_(), none = zeros({2, 0, 3, 2}).requires_grad_();
  sum(grid_sample(x, none)).backward();
  EXPECT_EQ(sum(abs(x.grad())).item<double>(), 0);
  EXPECT_EQ(none.grad().shape(), none.shape());
  const Tensor empty_x = zeros({2, 0, 4, 5}).requires_grad_(), grid = zeros({2, 3, 3, 2}).requires_grad_();
  const Tensor y = grid_sample(empty_x, grid);
  EXPECT_EQ(y.shape(), Shape({2, 0, 3, 3}));
  sum(y).backward();
  EXPECT_EQ(sum(abs(grid.grad())).item<double>(), 0);
}

}  // namespace
}  // namespace tern
