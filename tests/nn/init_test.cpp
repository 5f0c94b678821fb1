// Initialisation: ranges, moments, gains, and the start of each layer.
#include "tern/nn/init.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tern/core/memory.h"
#include "tern/nn/conv.h"
#include "tern/nn/embedding.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/nn/rnn.h"
#include "tern/nn/transformer.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/matmul.h"
#include "tern/ops/shape.h"

namespace tern::nn {
namespace {

struct Moments {
  double mean = 0, std = 0, low = 0, high = 0;
};

Moments moments(const Tensor& x) {
  std::vector<double> v = x.detach().to_vector<double>();
  Moments m;
  m.low = m.high = v.at(0);
  for (double e : v) {
    m.mean += e / static_cast<double>(v.size());
    m.low = std::min(m.low, e);
    m.high = std::max(m.high, e);
  }
  for (double e : v) m.std += (e - m.mean) * (e - m.mean) / static_cast<double>(v.size());
  m.std = std::sqrt(m.std);
  return m;
}

/// Uniform within `bound`: nothing outside, and the ends are reached.
void expect_uniform(const Tensor& x, double bound) {
  Moments m = moments(x);
  EXPECT_NEAR(m.mean, 0, 0.05 * bound);
  EXPECT_NEAR(m.std, bound / std::sqrt(3), 0.03 * bound);
  EXPECT_GE(m.low, -bound);
  EXPECT_LE(m.high, bound);
  EXPECT_NEAR(m.high, bound, 0.03 * bound);
}

void expect_normal(const Tensor& x, double std) {
  Moments m = moments(x);
  EXPECT_NEAR(m.mean, 0, 0.05 * std);
  EXPECT_NEAR(m.std, std, 0.03 * std);
}

TEST(Init, SimpleOnes) {
  manual_seed(1);
  Tensor x = empty({200, 100});
  EXPECT_TRUE(init::ones_(x).is_same(x));
  EXPECT_EQ(moments(x).low, 1);
  EXPECT_EQ(moments(init::zeros_(x)).high, 0);
  EXPECT_EQ(moments(init::constant_(x, 0.25)).high, 0.25);
  expect_uniform(init::uniform_(x, -2, 2), 2);
  expect_normal(init::normal_(x, 0, 3), 3);
  Tensor e = init::eye_(empty({2, 3}));
  EXPECT_EQ(e.to_vector<float>(), (std::vector<float>{1, 0, 0, 0, 1, 0}));
  EXPECT_THROW(init::eye_(empty({2})), ShapeError);
}

TEST(Init, Gains) {
  EXPECT_EQ(init::calculate_gain("linear"), 1);
  EXPECT_DOUBLE_EQ(init::calculate_gain("tanh"), 5.0 / 3);
  EXPECT_DOUBLE_EQ(init::calculate_gain("relu"), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(init::calculate_gain("leaky_relu"), std::sqrt(2 / 1.0001));
  EXPECT_DOUBLE_EQ(init::calculate_gain("leaky_relu", 0.2), std::sqrt(2 / 1.04));
  EXPECT_DOUBLE_EQ(init::calculate_gain("selu"), 0.75);
  EXPECT_THROW(init::calculate_gain("swish"), ValueError);
}

TEST(Init, XavierAndKaiming) {
  manual_seed(2);
  Tensor x = empty({60, 20, 3, 3});  // fan_in 180, fan_out 540
  EXPECT_EQ(init::fan_in_and_out(x), (std::pair<int64_t, int64_t>(180, 540)));
  expect_uniform(init::xavier_uniform_(x), std::sqrt(6.0 / 720));
  expect_uniform(init::xavier_uniform_(x, 2), 2 * std::sqrt(6.0 / 720));
  expect_normal(init::xavier_normal_(x), std::sqrt(2.0 / 720));
  expect_uniform(init::kaiming_uniform_(x), std::sqrt(6.0 / 180));
  expect_uniform(init::kaiming_uniform_(x, {.a = std::sqrt(5.0)}), std::sqrt(1.0 / 180));
  expect_normal(init::kaiming_normal_(x, {.mode = "fan_out", .nonlinearity = "relu"}), std::sqrt(2.0 / 540));
  EXPECT_THROW(init::kaiming_normal_(x, {.mode = "fan"}), ValueError);
  EXPECT_THROW(init::xavier_normal_(empty({3})), ShapeError);
}

TEST(Init, TruncatedNormal) {
  manual_seed(3);
  Moments m = moments(init::trunc_normal_(empty({300, 100})));
  EXPECT_GE(m.low, -2);
  EXPECT_LE(m.high, 2);
  EXPECT_NEAR(m.mean, 0, 0.02);
  EXPECT_NEAR(m.std, 0.8796, 0.01);  // of the standard normal distribution cut at 2
  m = moments(init::trunc_normal_(empty({300, 100}), 1, 0.5, 1.5, 4));
  EXPECT_GE(m.low, 1.5);
  EXPECT_NEAR(m.mean, 1 + 0.5 * 1.52514, 0.01);  // beyond one standard deviation
  // The mean is 8 standard deviations away, and 30.
  m = moments(init::trunc_normal_(empty({300, 100}), 0, 1, -20, -8));
  EXPECT_LE(m.high, -8);
  EXPECT_NEAR(m.mean, -8.121368, 0.003);
  EXPECT_NEAR(m.std, 0.119687, 0.003);
  m = moments(init::trunc_normal_(empty({300, 100}), 0, 1, 30, 50));
  EXPECT_GE(m.low, 30);
  EXPECT_NEAR(m.mean, 30.033260, 0.001);
  EXPECT_THROW(init::trunc_normal_(empty({2}), 0, 0), ValueError);
}

TEST(Init, SameNumbersOnEveryDevice) {
  using Fill = Tensor (*)(Tensor);
  const Fill fills[] = {
      [](Tensor x) { return init::uniform_(x); }, [](Tensor x) { return init::kaiming_normal_(x); },
      [](Tensor x) { return init::trunc_normal_(x); }, [](Tensor x) { return init::orthogonal_(x); }};
  for (const Fill fill : fills) {
    manual_seed(5);
    const Tensor here = fill(empty({7, 5}));
    manual_seed(5);
    const Tensor on_host = fill(empty({7, 5}, {.device = kCPU}));
    EXPECT_EQ(here.device(), get_default_device());
    EXPECT_EQ(here.to_vector<float>(), on_host.to_vector<float>());
  }
}

TEST(Init, Orthogonal) {
  manual_seed(4);
  for (std::vector<int64_t> shape : {std::vector<int64_t>{5, 8}, {8, 5}, {4, 4}, {3, 2, 2}}) {
    Tensor q = init::orthogonal_(empty(IntArrayRef(shape)), 2).reshape({shape[0], -1});
    Tensor product = shape[0] <= q.size(1) ? matmul(q, q.t()) : matmul(q.t(), q);
    std::vector<double> p = product.to_vector<double>();
    const size_t n = static_cast<size_t>(product.size(0));
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) EXPECT_NEAR(p[i * n + j], i == j ? 4 : 0, 1e-5);
  }
  EXPECT_THROW(init::orthogonal_(empty({3})), ShapeError);
}

TEST(Init, LayersStartAsInPyTorch) {
  manual_seed(5);
  Linear linear(400, 120);
  expect_uniform(linear.weight, 1.0 / 20);
  expect_uniform(Linear(100, 5000).bias, 0.1);
  Conv2d conv(16, 400, {3, 3}, {.groups = 4});
  expect_uniform(conv.weight, 1.0 / 6);
  Embedding embedding(300, 50, {.padding_idx = -1});
  expect_normal(embedding.weight, 1);
  EXPECT_EQ(embedding.weight.detach()[299].to_vector<float>(), std::vector<float>(50, 0));
  manual_seed(6);
  Linear a(3, 3);
  manual_seed(6);
  Linear b(3, 3);
  EXPECT_EQ(a.weight.detach().to_vector<float>(), b.weight.detach().to_vector<float>());
}

TEST(SkipInit, NothingIsDrawnAndConstantsAreThere) {
  manual_seed(3);
  const auto before = default_generator().bytes();
  {
    const init::SkipInitGuard skip;
    const Linear linear(4, 3);
    EXPECT_EQ(linear.weight.shape(), (Shape{3, 4}));
    const Embedding embedding(5, 2, {.padding_idx = 1});
    EXPECT_EQ(embedding.weight.detach().select(0, 1).to_vector<float>(), (std::vector<float>{0, 0}));
    EXPECT_EQ(BatchNorm1d(2).weight.to_vector<float>(), (std::vector<float>{1, 1}));
    LSTM(2, 3);
    Transformer({.d_model = 4, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 1});
    Tensor x = full({2, 3}, 0.5);
    for (const auto& draw :
         {+[](Tensor t) { init::trunc_normal_(t); }, +[](Tensor t) { init::orthogonal_(t); },
          +[](Tensor t) { init::kaiming_normal_(t); }, +[](Tensor t) { init::xavier_uniform_(t); }})
      draw(x);
    EXPECT_TRUE(equal(x, full({2, 3}, 0.5)));
    EXPECT_THROW(init::orthogonal_(zeros({3})), ShapeError);
  }
  EXPECT_EQ(default_generator().bytes(), before);
  Linear(4, 3);
  EXPECT_NE(default_generator().bytes(), before);
}

TEST(SkipInit, GuardsTakeNoteOfWhatIsLeft) {
  std::vector<Storage> outer, inner;
  const Tensor a = zeros({2}), b = zeros({2});
  const init::SkipInitGuard skip(&outer);
  init::uniform_(a);
  {
    const init::SkipInitGuard more(&inner);
    const init::SkipInitGuard plain;
    init::normal_(b.narrow(0, 0, 1));
  }
  EXPECT_EQ(inner, std::vector{b.storage()});
  EXPECT_EQ(outer, (std::vector{a.storage(), b.storage()}));
}

}  // namespace
}  // namespace tern::nn
