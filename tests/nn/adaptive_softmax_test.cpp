// AdaptiveLogSoftmaxWithLoss against PyTorch's numbers, and its errors.
#include "tern/nn/adaptive_softmax.h"

#include <gtest/gtest.h>

#include "tern/autograd/grad_mode.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/support/expect_error.h"

namespace tern::nn {
namespace {

AdaptiveLogSoftmaxWithLoss layer_of_sines() {
  AdaptiveLogSoftmaxWithLoss layer(8, 20, {4, 10}, {.div_value = 2, .head_bias = true});
  const NoGradGuard guard;
  double first = 0;
  for (Tensor& p : layer.parameters())
    p.copy_(reshape(sin(add(arange(p.numel(), {.dtype = float32}), first++)), p.shape()));
  return layer;
}

// PyTorch 2.15's numbers of the same layer: x = cos(arange(40)).
TEST(AdaptiveSoftmax, LossAndProbabilitiesAsPyTorch) {
  const AdaptiveLogSoftmaxWithLoss layer = layer_of_sines();
  const Tensor x = reshape(cos(arange(40, {.dtype = float32})), {5, 8}).requires_grad_();
  const Tensor target = tensor({0, 5, 19, 3, 12}, {.dtype = int64});
  const auto [output, loss] = layer(x, target);
  EXPECT_TRUE(allclose(output, tensor({-4.14838, -8.696909, -17.257908, -5.999745, -5.47684}), 1e-5, 1e-5));
  EXPECT_NEAR(loss.item<double>(), 8.315956, 1e-4);
  loss.backward();
  EXPECT_TRUE(allclose(narrow(select(x.grad(), 0, 1), 0, 0, 3), tensor({-0.102851, -0.339715, -0.264247}),
                       1e-4, 1e-5));
  const Tensor all = layer.log_prob(x);
  EXPECT_EQ(all.shape(), (Shape{5, 20}));
  EXPECT_TRUE(
      allclose(narrow(select(all, 0, 1), 0, 0, 3), tensor({-6.707258, -3.561757, -0.112554}), 1e-5, 1e-5));
  EXPECT_TRUE(allclose(sum(exp(all), 1), ones({5}), 1e-5, 1e-5));
  EXPECT_EQ(layer.predict(x).to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 3, 0, 1}));
  const auto [one, its_loss] = layer(select(x, 0, 1), select(target, 0, 1));
  EXPECT_EQ(one.dim(), 0);
  EXPECT_NEAR(its_loss.item<double>(), 8.696909, 1e-4);
}

TEST(AdaptiveSoftmax, Errors) {
  for (const std::vector<int64_t>& cutoffs : {std::vector<int64_t>{4, 4}, {0, 3}, {5, 3}, {20}})
    expect_error<ValueError>([&] { AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs); },
                             "unique, positive integers sorted in an increasing order");
  expect_error<ValueError>([] { AdaptiveLogSoftmaxWithLoss(8, 20, {}); }, "at least one integer");
  expect_error<ValueError>([] { AdaptiveLogSoftmaxWithLoss(8, 20, {4}, {.div_value = 0}); },
                           "div_value must be above 0, got 0");
  const AdaptiveLogSoftmaxWithLoss layer(8, 20, {4});
  const auto of = [&](const Shape& shape, const Tensor& target) {
    return [&layer, shape, target] { layer(ones(shape), target); };
  };
  expect_error<ShapeError>(of({3, 8}, zeros({2}, {.dtype = int64})), "same size in the batch dimension");
  expect_error<ShapeError>(of({0, 8}, zeros({0}, {.dtype = int64})), "there are no samples");
  expect_error<DTypeError>(of({1, 8}, zeros({1})), "the target must be int64, got float32");
  expect_error<ValueError>(of({2, 8}, tensor({-1, 20}, {.dtype = int64})),
                           "values in range [-1, 20] were found");
}

}  // namespace
}  // namespace tern::nn
