// Clipping of gradients.
#include <gmock/gmock.h>

#include <limits>

#include "tern/base/parallel.h"
#include "tern/optim/clip_grad.h"
#include "tests/optim/support.h"

namespace tern::optim {
namespace {

using ::testing::HasSubstr;
using namespace tern::testing;

std::vector<Tensor> gradients() {
  std::vector<Tensor> params = {parameter({0, 0, 0}), parameter({0, 0}), parameter({0})};
  give_grad(params[0], {3, 0, -4});
  give_grad(params[1], {12, -1});
  return params;
}

TEST(ClipGradNorm, GivesTheNormOfEveryOrder) {
  struct Row {
    double p, norm;
  };
  for (Row row : {Row{2, std::sqrt(170.0)}, Row{1, 20}, Row{kInfinity, 12}, Row{0, 4},
                  Row{3, std::cbrt(27 + 64 + 1728 + 1.0)}}) {
    std::vector<Tensor> params = gradients();
    Tensor norm = clip_grad_norm_(params, 1e9, {.norm_type = row.p});
    EXPECT_EQ(norm.dim(), 0);
    EXPECT_EQ(norm.dtype(), float32);
    EXPECT_NEAR(norm.item<double>(), row.norm, 1e-5) << "p = " << row.p;
    EXPECT_EQ(params[0].grad().to_vector<float>(), (std::vector<float>{3, 0, -4}));
  }
}

TEST(ClipGradNorm, ScalesToTheNormAskedFor) {
  std::vector<Tensor> params = gradients();
  uint32_t version = params[0].grad().version();
  clip_grad_norm_(params, 2);
  const float c = 2 / (std::sqrt(170.0F) + 1e-6F);
  expect_near(params[0].grad().to_vector<double>(), {3 * c, 0, -4 * c}, 1e-6, 0);
  expect_near(params[1].grad().to_vector<double>(), {12 * c, -1 * c}, 1e-6, 0);
  EXPECT_GT(params[0].grad().version(), version);
  EXPECT_FALSE(params[2].grad().defined());
}

TEST(ClipGradNorm, InTwoParts) {
  std::vector<Tensor> params = gradients();
  const Tensor norm = get_total_norm({params[0].grad(), params[1].grad()});
  EXPECT_EQ(norm.dim(), 0);
  EXPECT_NEAR(norm.item<double>(), std::sqrt(170.0), 1e-5);
  clip_grads_with_norm_(params, 2, norm);
  const float c = 2 / (std::sqrt(170.0F) + 1e-6F);
  expect_near(params[1].grad().to_vector<double>(), {12 * c, -1 * c}, 1e-6, 0);
  EXPECT_EQ(get_total_norm({params[0].grad()}, {.norm_type = 0}).item<double>(), 2);
  EXPECT_EQ(get_total_norm({}).item<double>(), 0);
  const Tensor infinite = parameter({static_cast<float>(kInfinity)}).detach();
  EXPECT_THROW(get_total_norm({infinite}, {.error_if_nonfinite = true}), ValueError);
  EXPECT_THROW(get_total_norm({Tensor()}), ValueError);
  EXPECT_THROW(get_total_norm({norm.to(int64)}), DTypeError);
  EXPECT_THROW(get_total_norm({norm}, {.norm_type = -1}), ValueError);
  EXPECT_THROW(clip_grads_with_norm_(params, -1, norm), ValueError);
  EXPECT_THROW(clip_grads_with_norm_(params, 1, params[0].grad()), ShapeError);
  EXPECT_THROW(clip_grads_with_norm_(params, 1, norm.to(int64)), DTypeError);
}

TEST(ClipGradNorm, MixesDtypes) {
  std::vector<Tensor> params = {parameter({0, 0}), parameter({0}, {}, float64), parameter({0}, {}, float16)};
  give_grad(params[0], {3, 0});
  give_grad(params[1], {4});
  give_grad(params[2], {12});
  Tensor norm = clip_grad_norm_(params, 6.5);
  EXPECT_EQ(norm.dtype(), float64);
  EXPECT_NEAR(norm.item<double>(), 13, 1e-6);
  EXPECT_NEAR(params[1].grad().item<double>(), 2, 1e-6);
  EXPECT_NEAR(params[2].grad().item<double>(), 6, 1e-3);
  EXPECT_EQ(clip_grad_norm_(params, 100, {.norm_type = 0}).item<double>(), 3);
}

TEST(ClipGradNorm, NonFiniteNorms) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<Tensor> params = gradients();
    give_grad(params[1], {bad, 1});
    try {
      clip_grad_norm_(params, 1, {.error_if_nonfinite = true});
      FAIL();
    } catch (const ValueError& error) {
      EXPECT_THAT(error.what(), HasSubstr("for gradients from `parameters` is non-finite"));
    }
    EXPECT_EQ(params[0].grad().to_vector<float>(), (std::vector<float>{3, 0, -4}));
    for (double p : {2.0, 1.0, kInfinity, 3.0})
      EXPECT_FALSE(std::isfinite(clip_grad_norm_(params, kInfinity, {.norm_type = p}).item<double>())) << p;
    clip_grad_norm_(params, 1);
    EXPECT_TRUE(std::isnan(params[1].grad().to_vector<float>()[0]));
  }
}

TEST(ClipGradNorm, LongGradientsAndAnyNumberOfThreads) {
  std::vector<float> values(300001);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(0.1F * static_cast<float>(i));
    sum += static_cast<double>(values[i]) * values[i];
  }
  const int before = num_threads();
  double results[2];
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    Tensor x = parameter(values);
    x.set_grad(x.detach().clone());
    results[threads - 1] = clip_grad_norm_({x}, 1).item<double>();
    EXPECT_NEAR(clip_grad_norm_({x}, 1).item<double>(), 1, 1e-5);
  }
  set_num_threads(before);
  EXPECT_NEAR(results[0], std::sqrt(sum), 1e-4);
  EXPECT_EQ(results[0], results[1]);
}

TEST(ClipGradNorm, NothingToClipAndWrongArguments) {
  EXPECT_EQ(clip_grad_norm_({parameter({1})}, 1).item<double>(), 0);
  EXPECT_EQ(clip_grad_norm_({}, 1).item<double>(), 0);
  EXPECT_THROW(clip_grad_norm_(gradients(), -1), ValueError);
  EXPECT_THROW(clip_grad_norm_(gradients(), 1, {.norm_type = -2}), ValueError);
  EXPECT_THROW(clip_grad_norm_({Tensor()}, 1), ValueError);
}

TEST(ClipGradValue, LimitsEveryElement) {
  std::vector<Tensor> params = gradients();
  Tensor column = parameter({1, 2, 3, 4}, {2, 2});
  column.set_grad(parameter({-9, 1, 9, -1}, {2, 2}).detach().transpose(0, 1));
  params.push_back(column);
  clip_grad_value_(params, 3.5);
  EXPECT_EQ(params[0].grad().to_vector<float>(), (std::vector<float>{3, 0, -3.5F}));
  EXPECT_EQ(params[1].grad().to_vector<float>(), (std::vector<float>{3.5F, -1}));
  EXPECT_EQ(column.grad().to_vector<float>(), (std::vector<float>{-3.5F, 3.5F, 1, -1}));
  EXPECT_THROW(clip_grad_value_(params, -1), ValueError);
}

}  // namespace
}  // namespace tern::optim
