// Connectionist temporal classification: PyTorch's numbers for targets that fit, do not fit and are empty,
// and what does not depend on batches and threads. Losses of margins are in the operator table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tern/base/parallel.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/loss.h"
#include "tern/ops/loss_margin.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pointwise;
constexpr double kNoPath = std::numeric_limits<double>::infinity();

MATCHER(Near, "") {
  return std::get<0>(arg) == std::get<1>(arg) || std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-9;
}

/// Scores of 6 steps, 4 samples and 4 classes.
Tensor ctc_scores() {
  return reshape(sin(mul(arange(96, {.dtype = float64}), 1.3)), {6, 4, 4}).requires_grad_();
}
/// Fits, fits, is one step too long, is empty.
const std::vector<int64_t> kSteps{6, 5, 4, 3}, kLabels{3, 1, 3, 0};
Tensor padded_labels() { return tensor({{1, 2, 2}, {3, 0, 0}, {3, 3, 3}, {0, 0, 0}}); }
Tensor joined_labels() { return tensor({1, 2, 2, 3, 3, 3, 3}); }

TEST(CtcLoss, ValuesOfPyTorch) {
  const Tensor x = log_softmax(ctc_scores(), 2);
  const std::vector<double> each{4.7717387339474, 5.370381266512776, kNoPath, 5.072120880937};
  for (const Tensor& targets : {padded_labels(), joined_labels(), padded_labels().to(int32)}) {
    EXPECT_THAT(ctc_loss(x, targets, kSteps, kLabels, {.reduction = Reduction::None}).to_vector<double>(),
                Pointwise(Near(), each));
    EXPECT_EQ(ctc_loss(x, targets, kSteps, kLabels).item<double>(), kNoPath);
    EXPECT_NEAR(ctc_loss(x, targets, kSteps, kLabels, {.zero_infinity = true}).item<double>(),
                3.008270431358061, 1e-9);
    EXPECT_NEAR(ctc_loss(x, targets, tensor(kSteps), tensor(kLabels).to(int32),
                         {.reduction = Reduction::Sum, .zero_infinity = true})
                    .item<double>(),
                15.214240881397176, 1e-9);
  }
  EXPECT_THAT(ctc_loss(x, tensor({{0, 1}, {0, 1}, {0, 1}, {0, 1}}), {6, 6, 6, 6}, {2, 2, 2, 2},
                       {.blank = 3, .reduction = Reduction::None})
                  .to_vector<double>(),
              Pointwise(Near(), std::vector<double>{4.229297233706598, 4.442399144221108, 4.347064925404046,
                                                    4.010172370448091}));
  const Tensor one = ctc_loss(select(x, 1, 0), tensor({2, 1}), {6}, {2}, {.reduction = Reduction::None});
  EXPECT_EQ(one.dim(), 0);
  EXPECT_NEAR(one.item<double>(), 4.8514576496284034, 1e-9);
  EXPECT_THAT(
      ctc_loss(x, zeros({4, 0}, {.dtype = int64}), {6, 0, 1, 6}, {0, 0, 0, 0}, {.reduction = Reduction::None})
          .to_vector<double>()[1],
      0.0);
}

TEST(CtcLoss, GradientsOfPyTorch) {
  const Tensor x = ctc_scores();
  ctc_loss(log_softmax(x, 2), padded_labels(), kSteps, kLabels,
           {.reduction = Reduction::Sum, .zero_infinity = true})
      .backward();
  EXPECT_THAT(
      sum(abs(x.grad()), {0, 2}).to_vector<double>(),
      Pointwise(Near(), std::vector<double>{5.591161461082928, 5.427679509455795, 0.0, 4.641511217373793}));
  EXPECT_THAT(select(select(x.grad(), 0, 2), 0, 0).to_vector<double>(),
              Pointwise(Near(), std::vector<double>{-0.11206220641399899, -0.004726867017534511,
                                                    -0.4404290290624884, 0.5572181024940219}));
  const Tensor past = narrow(select(x.grad(), 0, 4), 0, 2, 2);  // of samples of 4 and 3 steps
  EXPECT_THAT(past.to_vector<double>(), Each(0.0));

  const Tensor logs = log_softmax(ctc_scores().detach(), 2).requires_grad_();
  ctc_loss(logs, padded_labels(), kSteps, kLabels, {.reduction = Reduction::None})
      .backward(ones({4}, {.dtype = float64}));
  EXPECT_THAT(select(select(logs.grad(), 0, 0), 0, 0).to_vector<double>(),
              Pointwise(Near(), std::vector<double>{0.04498745247369165, -0.42048028308400226,
                                                    0.2887936196364472, 0.08669921097386343}));
  const std::vector<double> too_long = select(select(logs.grad(), 1, 2), 1, 0).to_vector<double>();
  for (size_t t = 0; t < 6; ++t) EXPECT_EQ(std::isnan(too_long[t]), t < 4) << t;
}

TEST(CtcLoss, LabelsThatAreNeverEmitted) {
  Tensor logs = log_softmax(ctc_scores().detach(), 2);
  logs = where(eq(arange(4), 2), -kNoPath, logs).requires_grad_();
  ctc_loss(logs, padded_labels(), kSteps, kLabels, {.reduction = Reduction::None, .zero_infinity = true})
      .backward(ones({4}, {.dtype = float64}));
  EXPECT_TRUE(all(isfinite(logs.grad())).item<bool>());
  EXPECT_THAT(select(logs.grad(), 2, 2).to_vector<double>(), Each(0.0));
}

TEST(CtcLoss, SamplesAndThreadsDoNotMatter) {
  const Tensor x = log_softmax(mul(sin(reshape(arange(40 * 9 * 33, {.dtype = float32}), {40, 9, 33})), 3), 2);
  const Tensor targets = add(remainder(mul(reshape(arange(9 * 15), {9, 15}), 7), 32), 1);
  const std::vector<int64_t> steps{40, 39, 38, 40, 33, 35, 31, 40, 40}, labels{15, 14, 1, 0, 7, 15, 15, 2, 3};
  const auto run = [&](const Tensor& given) {
    const Tensor leaf = given.detach().requires_grad_();
    const Tensor loss = ctc_loss(leaf, targets, steps, labels, {.reduction = Reduction::None});
    loss.backward(ones({9}));
    return std::pair(loss.detach(), leaf.grad());
  };
  const int before = num_threads();
  set_num_threads(3);
  const auto [loss, grad] = run(x);
  EXPECT_TRUE(all(isfinite(loss)).item<bool>());
  set_num_threads(1);
  const auto [alone_loss, alone_grad] = run(x);
  set_num_threads(before);
  EXPECT_TRUE(equal(alone_loss, loss) && equal(alone_grad, grad));
  const auto [turned_loss, turned_grad] = run(transpose(contiguous(transpose(x, 0, 1)), 0, 1));
  EXPECT_TRUE(equal(turned_loss, loss) && equal(turned_grad, grad));
  for (const int64_t n : {0, 4, 8}) {
    const auto at = static_cast<size_t>(n);
    const Tensor one = ctc_loss(select(x, 1, n), narrow(select(targets, 0, n), 0, 0, labels[at]), {steps[at]},
                                {labels[at]}, {.reduction = Reduction::None});
    EXPECT_TRUE(equal(one, select(loss, 0, n)));
  }
}

TEST(Losses, MarginsBeyondTheTable) {
  // Where PyTorch overflows.
  const Tensor x = tensor({200.0f, -200.0f}).requires_grad_();
  const Tensor loss = soft_margin_loss(x, tensor({-1.0f, -1.0f}), Reduction::None);
  EXPECT_THAT(loss.to_vector<float>(), ElementsAre(200.0f, 0.0f));
  loss.backward(ones({2}));
  EXPECT_THAT(x.grad().to_vector<float>(), ElementsAre(1.0f, 0.0f));
  const auto city_block = [](const Tensor& a, const Tensor& b) { return sum(abs(sub(a, b)), -1); };
  EXPECT_EQ(triplet_margin_with_distance_loss(
                tensor({{0.0f, 0.0f}}), tensor({{1.0f, 2.0f}}), tensor({{2.0f, 3.0f}}),
                {.distance_function = city_block, .margin = 3, .swap = true, .reduction = Reduction::Sum})
                .item<float>(),
            4.0f);
  const Tensor var = tensor({1.0f, -1.0f}), zero = zeros({2});
  if (var.device().is_cpu()) {
    expect_error<ValueError>([&] { gaussian_nll_loss(zero, zero, var); }, "negative entry");
  } else {
    const Tensor each = gaussian_nll_loss(zero, zero, var, {.reduction = Reduction::None});
    EXPECT_EQ(each[0].item<float>(), 0.0f);
    EXPECT_TRUE(std::isnan(each[1].item<float>()));
  }
}

}  // namespace
}  // namespace tern
