// MultiheadAttention beside numbers of PyTorch 2.15, its forms beside each other, names, texts and errors.
// Whole models are in tests/train/module_roundtrip.py.
#include "tern/nn/attention.h"

#include <gmock/gmock.h>

#include "tern/ops/attention.h"
#include "tern/ops/autocast.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/index.h"
#include "tern/ops/random.h"
#include "tern/ops/shape.h"
#include "tests/nn/attention_numbers.h"
#include "tests/support/expect_error.h"

namespace tern::nn {
namespace {

using formulas::causal_mask;
using formulas::expect_near;
using formulas::gradient_sums;
using formulas::numbers;
using formulas::parameter_names;
using formulas::set_weights;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const AttentionMasks kWithoutWeights{.need_weights = false};

/// The last of three keys of the first of two sequences is hidden.
Tensor padding() { return tensor({{false, false, true}, {false, false, false}}); }

TEST(MultiheadAttention, GivesWhatPyTorchGives) {
  MultiheadAttention layer(4, 2);
  set_weights(layer);
  const Tensor x = numbers({3, 2, 4}, 2);
  const std::vector<double> expected{-0.934556, -0.266329,  -0.611881, -0.163604, -0.290247, -1.11961,
                                     0.351769,  -1.12627,   -0.9786,   -0.216349, -0.662023, -0.119096,
                                     -0.25835,  -1.15523,   0.38699,   -1.15703,  -0.998592, -0.1861,
                                     -0.699033, -0.0796012, -0.240469, -1.1792,   0.414277,  -1.18448};
  auto [y, weights] = layer(x, x, x);
  expect_near(y, expected);
  expect_near(weights,
              {0.258476, 0.317158, 0.424366, 0.149582, 0.236984, 0.613435, 0.108301, 0.196763, 0.694936,
               0.229309, 0.317107, 0.453585, 0.119745, 0.252528, 0.627727, 0.103963, 0.238093, 0.657944});
  expect_near(gradient_sums(layer, y), {-0.274072, -0.68999, 1.00328, -1.5402});
  auto [fast, none] = layer(x, x, x, kWithoutWeights);
  EXPECT_FALSE(none.defined());
  expect_near(fast, expected);
  expect_near(gradient_sums(layer, fast), {-0.274072, -0.68999, 1.00328, -1.5402});
}

TEST(MultiheadAttention, HidesWhatMasksHide) {
  MultiheadAttention layer(4, 2, {.batch_first = true});
  set_weights(layer);
  const Tensor x = numbers({2, 3, 4}, 2);
  AttentionMasks masks{
      .key_padding_mask = padding(), .attn_mask = causal_mask(3), .average_attn_weights = false};
  const std::vector<double> expected{-0.707401, -0.511718, -0.376616, -0.361562, -0.767805, -0.527193,
                                     -0.287049, -0.51487,  -0.437859, -0.96048,  0.199511,  -0.998478,
                                     -0.224324, -1.224,    0.482556,  -1.26834,  -1.03104,  -0.434978,
                                     -0.197586, -0.775674, -0.299398, -0.954142, 0.0491057, -0.721385};
  auto [y, weights] = layer(x, x, x, masks);
  expect_near(y, expected);
  expect_near(weights, {1, 0, 0, 0.803887, 0.196113, 0, 0.0944239, 0.905576, 0,
                        1, 0, 0, 0.497639, 0.502361, 0, 0.0963315, 0.903669, 0,
                        1, 0, 0, 0.149723, 0.850277, 0, 0.244397,  0.112704, 0.642899,
                        1, 0, 0, 0.884034, 0.115966, 0, 0.128018,  0.49932,  0.372661});
  expect_near(gradient_sums(layer, y), {0.304572, -0.679128, -0.155835, -1.5402});
  masks.need_weights = false;
  const Tensor fast = layer(x, x, x, masks).first;
  expect_near(fast, expected);
  expect_near(gradient_sums(layer, fast), {0.304572, -0.679128, -0.155835, -1.5402});
  // The same masks as floats, and one for each head.
  const double hidden = -std::numeric_limits<double>::infinity();
  masks.attn_mask = masked_fill(zeros({3, 3}), causal_mask(3), hidden);
  expect_near(layer(x, x, x, masks).first, expected);
  masks.attn_mask = causal_mask(3).expand({4, 3, 3});
  expect_near(layer(x, x, x, masks).first, expected);
  layer.eval();
  NoGradGuard no_grad;
  expect_near(layer(x, x, x, masks).first, expected);
}

TEST(MultiheadAttention, TakesKeysAndValuesOfOtherSizes) {
  MultiheadAttention layer(4, 2, {.add_bias_kv = true, .add_zero_attn = true, .kdim = 3, .vdim = 5});
  EXPECT_THAT(parameter_names(layer),
              ElementsAre("q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", "bias_k",
                          "bias_v", "out_proj.weight", "out_proj.bias"));
  set_weights(layer);
  const Tensor query = numbers({3, 2, 4}, 2), key = numbers({3, 2, 3}, 1), value = numbers({3, 2, 5}, 0.5);
  AttentionMasks masks{.key_padding_mask = padding(), .attn_mask = numbers({4, 3, 3}, 0.2)};
  const std::vector<double> expected{0.30515,   0.568163,  -0.017745, -0.483972, 0.163029,   0.878693,
                                     -0.4608,   0.0404111, 0.180112,  0.659372,  -0.0645853, -0.486913,
                                     0.308346,  0.786641,  -0.432651, 0.0794167, 0.426041,   0.446666,
                                     0.0903194, -0.566116, 0.520865,  0.428365,  0.0299821,  -0.434113};
  auto [y, weights] = layer(query, key, value, masks);
  expect_near(y, expected);
  expect_near(weights, {0.296302, 0.275127, 0,         0.225843, 0.202728, 0.569773,  0.152746, 0,
                        0.134407, 0.143073, 0.28715,   0.143752, 0,        0.268939,  0.30016,  0.172572,
                        0.131203, 0.383123, 0.174691,  0.138411, 0.446796, 0.0546684, 0.120208, 0.221779,
                        0.15655,  0.152591, 0.0365775, 0.193538, 0.362052, 0.255241});
  expect_near(gradient_sums(layer, y),
              {0.356288, 0.10916, -0.293949, -0.0734641, -0.0274123, 0.262851, 1.08653, -1.5402});
  masks.need_weights = false;
  const Tensor fast = layer(query, key, value, masks).first;
  expect_near(fast, expected);
  expect_near(gradient_sums(layer, fast),
              {0.356288, 0.10916, -0.293949, -0.0734641, -0.0274123, 0.262851, 1.08653, -1.5402});
}

TEST(MultiheadAttention, TakesOneSequence) {
  MultiheadAttention layer(4, 2, {.bias = false});
  EXPECT_THAT(parameter_names(layer), ElementsAre("in_proj_weight", "out_proj.weight"));
  set_weights(layer);
  const Tensor query = numbers({3, 4}, 2), key = numbers({2, 4}, 1);
  expect_near(layer(query, key, key, kWithoutWeights).first,
              {-0.157291, 0.145839, -0.117535, 0.0756494, 0.0721893, 0.0047846, -0.0812056, 0.148243,
               0.0178865, -0.124524, 0.216772, -0.28397});
  auto [y, weights] = layer(query, key, key);
  EXPECT_THAT(y.shape(), ElementsAre(3, 4));
  EXPECT_THAT(weights.shape(), ElementsAre(3, 2));
  const Tensor hidden = tensor({false, true});
  auto [masked, one] = layer(query, key, key, {.key_padding_mask = hidden, .average_attn_weights = false});
  EXPECT_THAT(one.shape(), ElementsAre(2, 3, 2));
  expect_near(one, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0});
}

TEST(MultiheadAttention, ACausalHintNeedNotReadTheMask) {
  MultiheadAttention layer(4, 2);
  set_weights(layer);
  const Tensor x = numbers({5, 2, 4}, 2);
  AttentionMasks masks{.need_weights = false, .attn_mask = causal_mask(5)};
  const std::vector<double> expected = layer(x, x, x, masks).first.detach().to_vector<double>();
  masks.is_causal = true;
  expect_near(layer(x, x, x, masks).first, expected);
  masks.need_weights = true;
  expect_near(layer(x, x, x, masks).first, expected);
}

TEST(MultiheadAttention, RowsThatSeeNothingAreZeroOrNaN) {
  MultiheadAttention layer(4, 2, {.batch_first = true});
  set_weights(layer);
  const Tensor x = numbers({2, 3, 4}, 2), hidden = tensor({{true, true, true}, {false, false, false}});
  const Tensor y = layer(x, x, x, {.key_padding_mask = hidden, .need_weights = false}).first;
  const std::vector<double> bias = layer.out_proj.bias.detach().to_vector<double>();
  expect_near(y[0][1], bias);
  EXPECT_TRUE(isnan(layer(x, x, x, {.key_padding_mask = hidden}).first[0]).all().item<bool>());
}

TEST(MultiheadAttention, DrawsAsPyTorchDoes) {
  if (!get_default_device().is_cpu()) GTEST_SKIP() << "PyTorch's numbers are for tensors on the CPU";
  manual_seed(0, RandomEngine::MersenneTwister);
  MultiheadAttention layer(4, 2, {.add_bias_kv = true});
  std::vector<double> sums;
  for (const auto& [name, tensor] : layer.state_dict())
    sums.push_back(sum(mul(tensor, numbers(tensor.shape(), 3))).item<double>());
  expect_near(sums, {-1.0167902, 0, 0.49657136, 0.1483711, 1.8114249, 0});
  manual_seed(0);
}

TEST(MultiheadAttention, DropsWeightsInTraining) {
  manual_seed(1);
  MultiheadAttention layer(8, 2, {.dropout = 0.5});
  const Tensor x = randn({20, 3, 8});
  manual_seed(5);
  auto [y, weights] = layer(x, x, x, {.average_attn_weights = false});
  const double dropped = eq(weights, 0).to(float32).mean().item<double>();
  EXPECT_NEAR(dropped, 0.5, 0.05);
  manual_seed(5);
  const Tensor fast = layer(x, x, x, kWithoutWeights).first;
  EXPECT_TRUE(allclose(fast, y, 1e-4, 1e-5));
  const std::vector<double> expected = gradient_sums(layer, y);
  expect_near(gradient_sums(layer, fast), expected);
  layer.eval();
  EXPECT_FALSE(eq(layer(x, x, x).second, 0).any().item<bool>());
}

TEST(MultiheadAttention, ObeysAutocast) {
  MultiheadAttention layer(8, 2, {.add_bias_kv = true}), plain(8, 2);
  const Tensor x = numbers({3, 2, 8}, 2);
  const AutocastGuard autocast({.device_type = get_default_device().type, .dtype = bfloat16});
  for (MultiheadAttention* each : {&layer, &plain}) {
    const Tensor y = each->forward(x, x, x, kWithoutWeights).first;
    EXPECT_EQ(y.dtype(), bfloat16);
    y.sum().backward();
    EXPECT_EQ(each->in_proj_weight.grad().dtype(), float32);
    EXPECT_EQ(each->forward(x, x, x).first.dtype(), bfloat16);
  }
}

TEST(MultiheadAttention, IsCopiedAndPrintedAsALayer) {
  MultiheadAttention layer(4, 2, {.dropout = 0.25});
  EXPECT_EQ(layer.str(),
            "MultiheadAttention(\n"
            "  (out_proj): NonDynamicallyQuantizableLinear(in_features=4, out_features=4, bias=True)\n)");
  const MultiheadAttention copy = clone(layer);
  EXPECT_EQ(copy.dropout, 0.25);
  EXPECT_TRUE(allclose(copy.in_proj_weight, layer.in_proj_weight));
  EXPECT_FALSE(copy.in_proj_weight.is_same(layer.in_proj_weight));
  EXPECT_EQ(MultiheadAttention(4, 2, {.dtype = float64}).in_proj_weight.dtype(), float64);
}

TEST(MultiheadAttention, RefusesWrongArguments) {
  EXPECT_THAT(message_of([] { MultiheadAttention(4, 3); }),
              HasSubstr("embed_dim must be divisible by num_heads"));
  EXPECT_THAT(message_of([] { MultiheadAttention(4, 0); }), HasSubstr("must be greater than 0"));
  EXPECT_THAT(message_of([] { MultiheadAttention(4, 2, {.dropout = 2}); }),
              HasSubstr("between 0 and 1, but got 2"));
  MultiheadAttention layer(4, 2);
  const Tensor x = numbers({3, 2, 4}, 2), flat = numbers({3, 4}, 2), wide = numbers({3, 2, 5}, 2);
  EXPECT_THAT(message_of([&] { layer(x, flat, flat); }),
              HasSubstr("expected key and value to be 3-D but found 2-D"));
  EXPECT_THAT(message_of([&] { layer(x[0][0], x, x); }), HasSubstr("received 1-D query tensor"));
  EXPECT_THAT(message_of([&] { layer(wide, x, x); }),
              HasSubstr("was expecting embedding dimension of 4, but got 5"));
  EXPECT_THAT(message_of([&] { layer(x, wide, x); }), HasSubstr("must have 4 and 4 features, got 5 and 4"));
  EXPECT_THAT(message_of([&] { layer(x, numbers({2, 2, 4}, 1), x); }), HasSubstr("batch dims do not match"));
  EXPECT_THAT(message_of([&] { layer(x, x, x, {.attn_mask = causal_mask(2)}); }),
              HasSubstr("The shape of the 2D attn_mask is [2, 2], but should be [3, 3]."));
  EXPECT_THAT(message_of([&] {
                layer(x, x, x, {.attn_mask = causal_mask(3).expand({2, 3, 3})});
              }),
              HasSubstr("The shape of the 3D attn_mask is [2, 3, 3], but should be [4, 3, 3]."));
  EXPECT_THAT(message_of([&] { layer(x, x, x, {.key_padding_mask = causal_mask(3)}); }),
              HasSubstr("The shape of the key_padding_mask is [3, 3], but should be [2, 3]."));
  EXPECT_THAT(message_of([&] {
                layer(x, x, x, {.attn_mask = ones({3, 3}, {.dtype = int64})});
              }),
              HasSubstr("only bool and floating types of attn_mask are supported"));
  EXPECT_THAT(message_of([&] { layer(x, x, x, {.is_causal = true}); }),
              HasSubstr("Need attn_mask if specifying the is_causal hint"));
}

}  // namespace
}  // namespace tern::nn
