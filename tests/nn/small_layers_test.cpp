// Layers of one operator each: text as PyTorch's, values against PyTorch's, errors.
#include <gtest/gtest.h>

#include "tern/autograd/grad_mode.h"
#include "tern/nn/activation.h"
#include "tern/nn/embedding.h"
#include "tern/nn/functional.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/nn/pad.h"
#include "tern/nn/pool.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
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
            "EmbeddingBag(5, 2, mode='sum', padding_idx=1)");
  EXPECT_EQ(EmbeddingBag(5, 2, {.max_norm = 1.5, .norm_type = 1, .scale_grad_by_freq = true}).str(),
            "EmbeddingBag(5, 2, max_norm=1.5, norm_type=1.0, scale_grad_by_freq=True, mode='mean')");
  EXPECT_EQ(Embedding(5, 2, {.padding_idx = -1, .max_norm = 2}).str(),
            "Embedding(5, 2, padding_idx=4, max_norm=2.0)");
  EXPECT_EQ(RReLU(0.25, 0.5, true).str(), "RReLU(lower=0.25, upper=0.5, inplace=True)");
  EXPECT_EQ(MaxUnpool1d(3, {.stride = 2, .padding = 1}).str(),
            "MaxUnpool1d(kernel_size=(3,), stride=(2,), padding=(1,))");
  EXPECT_EQ(MaxUnpool3d({1, 2, 2}).str(),
            "MaxUnpool3d(kernel_size=(1, 2, 2), stride=(1, 2, 2), padding=(0, 0, 0))");
  EXPECT_EQ(ZeroPad3d({1, 2, 3, 4, 5, 6}).str(), "ZeroPad3d((1, 2, 3, 4, 5, 6))");
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

TEST(SmallLayers, RandomSlopesAreDrawnInTrainingAndTheirMeanStandsForThem) {
  manual_seed(6);
  RReLU layer(0.2, 0.6);
  const Tensor x = reshape(linspace(-2, 2, 1000), {10, 100}).requires_grad_();
  const Tensor y = layer(x), slopes = div(y.detach(), x.detach());
  sum(y).backward();
  EXPECT_TRUE(allclose(x.grad(), slopes, 1e-5, 1e-5));
  const Tensor negative = narrow(slopes, 0, 0, 5);
  EXPECT_GE(amin(negative).item<double>(), 0.2 - 1e-6);
  EXPECT_LE(amax(negative).item<double>(), 0.6 + 1e-6);
  EXPECT_NEAR(mean(negative).item<double>(), 0.4, 0.03);
  EXPECT_TRUE(allclose(narrow(slopes, 0, 5, 5), ones({5, 100})));
  layer.eval();
  EXPECT_TRUE(equal(layer(x), leaky_relu(x, 0.4)));
  EXPECT_FALSE(equal(rrelu(x, 0.2, 0.6, true, Generator(1)), rrelu(x, 0.2, 0.6, true, Generator(2))));
  expect_error<ValueError>([] { RReLU(0.5, 0.2); }, "lower must not be greater than upper (got 0.5 and 0.2)");
  expect_error<DTypeError>([] { rrelu(ones({2}, {.dtype = int64}), 0.1, 0.3, true); }, "for int64");
}

/// Pools, spreads the maxima again, and compares with the input where it was largest.
template <int N>
void expect_unpooled(const Shape& shape, int64_t kernel) {
  SCOPED_TRACE(N);
  const Tensor x = cosines(shape).requires_grad_();
  const MaxPool<N> pool(kernel, {.return_indices = true});
  const auto [y, places] = pool.forward_with_indices(x);
  const Tensor back = MaxUnpool<N>(kernel)(y, places, shape);
  EXPECT_EQ(back.shape(), shape);
  EXPECT_TRUE(allclose(where(ne(back, 0), x, 0), back));
  EXPECT_EQ(sum(ne(back, 0)).template item<int64_t>(), y.numel());
  sum(mul(back, 3)).backward();
  EXPECT_TRUE(allclose(x.grad(), where(ne(back, 0), full({}, 3.0), 0.0)));
  expect_error<ValueError>([&] { pool(x); }, "return_indices is set: call forward_with_indices");
}

TEST(SmallLayers, MaximaGoBackToTheirPlaces) {
  expect_unpooled<1>({2, 3, 7}, 2);
  expect_unpooled<2>({2, 3, 5, 7}, 2);
  expect_unpooled<3>({2, 3, 5, 4, 7}, 2);
  const auto [y, places] = AdaptiveMaxPool3d(2).forward_with_indices(cosines({1, 4, 4, 4}));
  EXPECT_TRUE(equal(flatten(y), take(cosines({1, 4, 4, 4}), flatten(places))));
  const Tensor one = ones({1, 1, 1});
  expect_error<IndexError>(
      [&] {
        const Tensor spread = MaxUnpool1d(2)(one, full({1, 1, 1}, 2, {.dtype = int64}));
        spread.to(kCPU);
      },
      "max_unpool1d: index 2 is out of bounds");
  expect_error<ValueError>(
      [&] {
        MaxUnpool1d(2)(one, zeros({1, 1, 1}, {.dtype = int64}), Shape{5});
      },
      "invalid output_size");
  expect_error<DTypeError>([&] { MaxUnpool1d(2)(one, one); }, "should be type int64");
  expect_error<ValueError>([] { MaxUnpool2d(0); }, "MaxUnpool2d: kernel_size must be at least 1");
}

TEST(SmallLayers, EmbeddingsKeepTheNormsOfTheRowsInUse) {
  const Tensor table = tensor({{3., 4.}, {0.3, 0.4}, {6., 8.}, {30., 40.}}, {.dtype = float32});
  const Tensor numbers = tensor({{0, 1}, {2, 2}}, {.dtype = int64});
  const Tensor wanted = tensor({{0.6, 0.8}, {0.3, 0.4}, {0.6, 0.8}, {30., 40.}}, {.dtype = float32});
  const Embedding layer =
      Embedding::from_pretrained(clone(table), /*freeze=*/false, {.max_norm = 1, .scale_grad_by_freq = true});
  sum(layer(numbers)).backward();
  EXPECT_TRUE(allclose(layer.weight, wanted));
  EXPECT_TRUE(
      allclose(layer.weight.grad(), tensor({{1., 1.}, {1., 1.}, {1., 1.}, {0., 0.}}, {.dtype = float32})));
  const EmbeddingBag bags = EmbeddingBag::from_pretrained(clone(table), true, {.max_norm = 1});
  EXPECT_TRUE(allclose(bags(numbers), tensor({{0.45, 0.6}, {0.6, 0.8}}, {.dtype = float32})));
  EXPECT_FALSE(bags.weight.requires_grad());
  EXPECT_TRUE(allclose(bags.weight, wanted));
  Tensor weight = clone(table).requires_grad_();
  expect_error<AutogradError>([&] { embedding_renorm_(weight, numbers, 1); }, "give weight.detach()");
  expect_error<ValueError>([] { Embedding(3, 2, {.max_norm = -1}); },
                           "max_norm must not be negative, got -1");
  expect_error<ValueError>([] { Embedding(3, 2, {.norm_type = 0}); }, "norm_type must be above 0, got 0");
  expect_error<ValueError>([] { EmbeddingBag(3, 2, {.mode = BagMode::Max, .scale_grad_by_freq = true}); },
                           "max mode does not support scaling");
  expect_error<ShapeError>([] { Embedding::from_pretrained(ones({3})); },
                           "expected to be 2-dimensional, got [3]");
}

TEST(SmallLayers, PaddingOfVolumes) {
  const Tensor x = cosines({1, 1, 3, 3, 3});
  const std::vector<int64_t> sides{1, 0, 2, 1, 0, 2};
  EXPECT_TRUE(equal(ZeroPad3d({1, 0, 2, 1, 0, 2})(x), pad(x, sides)));
  EXPECT_TRUE(equal(ConstantPad3d(1, 2.5)(x), pad(x, {1, 1, 1, 1, 1, 1}, "constant", 2.5)));
  EXPECT_TRUE(equal(ReflectionPad3d({1, 0, 2, 1, 0, 2})(x), pad(x, sides, "reflect")));
  EXPECT_TRUE(equal(ReplicationPad3d({1, 0, 2, 1, 0, 2})(x), pad(x, sides, "replicate")));
  EXPECT_TRUE(equal(CircularPad3d({1, 0, 2, 1, 0, 2})(x), pad(x, sides, "circular")));
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
