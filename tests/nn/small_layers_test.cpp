// Layers of one operator each: text as PyTorch's, values against PyTorch's, errors.
#include <gtest/gtest.h>

#include "tern/autograd/grad_mode.h"
#include "tern/nn/activation.h"
#include "tern/nn/embedding.h"
#include "tern/nn/functional.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/nn/pool.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/print.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tests/support/expect_error.h"

namespace tern::nn {
namespace {

Tensor cosines(const Shape& shape) {
  return reshape(cos(arange(checked_numel(shape), {.dtype = float32})), shape);
}
template <class M>
M of_sines(M module) {
  const NoGradGuard guard;
  double first = 0;
  for (Tensor& p : module.parameters())
    p.copy_(reshape(sin(add(arange(p.numel(), {.dtype = float32}), first++)), p.shape()));
  return module;
}
void expect_first(const char* what, const Tensor& x, const Tensor& expected) {
  EXPECT_TRUE(allclose(narrow(flatten(x.detach()), 0, 0, expected.numel()), expected, 2e-5, 2e-5))
      << what << ": " << to_string(x);
}

TEST(SmallLayers, TextsAsPyTorch) {
  EXPECT_EQ(Softmin(1).str(), "Softmin(dim=1)");
  EXPECT_EQ(Softmax2d().str(), "Softmax2d()");
  EXPECT_EQ(LocalResponseNorm(3, {.alpha = 1e-3, .beta = 0.5, .k = 2}).str(),
            "LocalResponseNorm(3, alpha=0.001, beta=0.5, k=2.0)");
  EXPECT_EQ(LPPool2d(2, 2).str(), "LPPool2d(norm_type=2, kernel_size=2, stride=None, ceil_mode=False)");
  EXPECT_EQ(LPPool1d(1.5, 2, {.stride = 1}).str(),
            "LPPool1d(norm_type=1.5, kernel_size=2, stride=1, ceil_mode=False)");
  EXPECT_EQ(Bilinear(2, 3, 4, {.bias = false}).str(),
            "Bilinear(in1_features=2, in2_features=3, out_features=4, bias=False)");
  EXPECT_EQ(EmbeddingBag(5, 2, {.mode = BagMode::Sum, .padding_idx = 1}).str(),
            "EmbeddingBag(5, 2, padding_idx=1, mode='sum')");
}

TEST(SmallLayers, ValuesAsPyTorch) {
  const Tensor x = cosines({1, 2, 3, 4});
  expect_first("softmax of channels", Softmax2d()(x), tensor({0.538957, 0.409231, 0.365196, 0.442677}));
  EXPECT_TRUE(allclose(Softmin(1)(x), softmax(neg(x), 1)));
  expect_first("local response", LocalResponseNorm(2, {.alpha = 1, .beta = 0.5, .k = 2})(x),
               tensor({0.632456, 0.36883, -0.28809, -0.627377}));
  expect_first("powers", LPPool2d(2, 2)(x), tensor({1.34151, 1.6259, 1.59009, 1.41753}));
  expect_first("bilinear", of_sines(Bilinear(2, 3, 2))(cosines({2, 2}), cosines({2, 3})),
               tensor({0.988645, 0.861832, 0.880892, 1.1888}));
  const std::pair<BagMode, Tensor> bags[] = {
      {BagMode::Sum, tensor({0.989358, 1.25359, 0., 0., -1.03622, -0.301938})},
      {BagMode::Mean, tensor({0.494679, 0.626795, 0., 0., -0.518109, -0.150969})},
      {BagMode::Max, tensor({0.989358, 0.841471, 0., 0., -0.279415, 0.656987})}};
  const Tensor numbers = tensor({0, 1, 4, 2, 3, 1}, {.dtype = int64}),
               offsets = tensor({0, 3, 3}, {.dtype = int64});
  for (const auto& [mode, expected] : bags) {
    const EmbeddingBag layer = of_sines(EmbeddingBag(5, 2, {.mode = mode, .padding_idx = 1}));
    expect_first(bag_mode_word(mode), layer(numbers, offsets), expected);
  }
}

TEST(SmallLayers, GumbelSoftmax) {
  manual_seed(5);
  const Tensor logits = log(tensor({0.7, 0.2, 0.1})).expand({4000, 3}).contiguous().requires_grad_();
  const Tensor hard = gumbel_softmax(logits, 0.5, /*hard=*/true);
  EXPECT_TRUE(allclose(sum(hard, 1), ones({4000}), 1e-5, 1e-5));
  EXPECT_TRUE(allclose(mean(hard, 0), tensor({0.7, 0.2, 0.1}), 0, 0.03));
  sum(mul(hard, tensor({1.0, 2.0, 3.0}))).backward();
  EXPECT_GT(sum(abs(logits.grad())).item<double>(), 1.0);
  const Tensor soft = gumbel_softmax(logits, 2);
  EXPECT_TRUE(allclose(sum(soft, 1), ones({4000}), 1e-5, 1e-5));
  EXPECT_LT(amax(soft).item<double>(), 1.0);
  expect_error<ValueError>([&] { gumbel_softmax(logits, 0); }, "tau must be above 0, got 0");
  expect_error<DTypeError>([] { gumbel_softmax(ones({3}, {.dtype = int64})); }, "not implemented for int64");
}

TEST(SmallLayers, Errors) {
  expect_error<ShapeError>(
      [] {
        Softmax2d()(ones({2, 3}));
      },
      "Softmax2d: expected input to be 3D or 4D, got 2D");
  expect_error<ValueError>([] { Bilinear(0, 2, 3); }, "Bilinear: in1_features must be at least 1, got 0");
  expect_error<ShapeError>(
      [] {
        Bilinear(2, 3, 1)(ones({4, 2}), ones({5, 3}));
      },
      "bilinear: input batch dimensions do not match at dim 0: got 4 and 5");
  expect_error<ValueError>([] { LocalResponseNorm(0); }, "LocalResponseNorm: size must be at least 1");
  expect_error<ShapeError>([] { LocalResponseNorm(2)(ones({2, 3})); }, "Expected 3D or higher");
  expect_error<ValueError>([] { LPPool2d(0, 2); }, "LPPool2d: norm_type must not be 0");
  expect_error<ValueError>([] { EmbeddingBag(3, 2, {.padding_idx = 3}); },
                           "EmbeddingBag: padding_idx must be within num_embeddings, got 3 of 3");
  const Tensor two_rows = zeros({2, 3}, {.dtype = int64}), start = zeros({1}, {.dtype = int64});
  expect_error<ValueError>([&] { EmbeddingBag(3, 2)(two_rows, start); }, "offsets has to be None");
  expect_error<ShapeError>([&] { EmbeddingBag(3, 2)(select(two_rows, 0, 0)); },
                           "offsets has to be a 1D Tensor");
  expect_error<ValueError>(
      [&] {
        EmbeddingBag(3, 2)(two_rows, Tensor(), ones({2, 3}));
      },
      "only supported for mode='sum'");
  expect_error<ValueError>([] { parse_bag_mode("least"); }, "one of sum, mean or max, got 'least'");
}

}  // namespace
}  // namespace tern::nn
