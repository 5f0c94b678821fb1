// Layers and stacks of transformers beside numbers of PyTorch 2.15, names, texts and errors. Whole models are
// in tests/train/module_roundtrip.py.
#include "tern/nn/transformer.h"

#include <gmock/gmock.h>

#include "tern/ops/activation.h"
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

const TransformerLayerOptions kSmall{.dim_feedforward = 6, .dropout = 0};

TEST(TransformerEncoderLayer, GivesWhatPyTorchGives) {
  TransformerEncoderLayer layer(4, 2, kSmall);
  set_weights(layer);
  const Tensor x = numbers({3, 2, 4}, 2);
  const std::vector<double> expected{-1.04065, 0.200165,  0.591487,  0.766579,  -0.719986, -0.389349,
                                     0.601143, 0.565821,  -0.968789, 0.153337,  0.598451,  0.793265,
                                     -0.75364, -0.342515, 0.605302,  0.592743,  -0.851148, -0.238715,
                                     0.608424, 0.622023,  -0.818549, -0.202949, 0.612575,  0.67523};
  const Tensor y = layer(x);
  expect_near(y, expected);
  expect_near(gradient_sums(layer, y), {-0.490855, -1.38127, 0.939647, -0.139977, -0.393566, -0.0971463,
                                        0.689647, 0.260375, -0.959895, 0.618859, -0.750193, -1.5402});
  layer.eval();
  NoGradGuard no_grad;
  expect_near(layer(x), expected);
}

TEST(TransformerEncoderLayer, NormalisesFirstAndTakesMasks) {
  TransformerLayerOptions options = kSmall;
  options.activation = "gelu";
  options.batch_first = options.norm_first = true;
  TransformerEncoderLayer layer(4, 2, options);
  set_weights(layer);
  const Tensor x = numbers({2, 3, 4}, 2);
  EncoderMasks masks{.mask = causal_mask(3),
                     .src_key_padding_mask = tensor({{false, false, true}, {false, false, false}})};
  const std::vector<double> expected{1.41387,   0.101576,  -0.702976, -1.67467, -0.629198, -0.780022,
                                     -0.471701, -0.752705, 1.53953,   0.48865,  0.115393,  -1.31525,
                                     -0.471307, -1.10944,  -1.04105,  -1.38007, 1.09004,   0.628657,
                                     0.630656,  -0.783152, 0.150147,  -1.14017, -1.29354,  -1.80387};
  const Tensor y = layer(x, masks);
  expect_near(y, expected);
  expect_near(gradient_sums(layer, y), {-0.115747, -0.855525, -0.63731, -1.50952, -0.0533565, 0.552331,
                                        -0.465121, -1.5402, 0.225321, -0.314962, -0.0364093, -0.481172});
  masks.is_causal = true;
  layer.eval();
  NoGradGuard no_grad;
  expect_near(layer(x, masks), expected);
}

TEST(TransformerEncoder, StacksCopiesOfALayer) {
  TransformerEncoder encoder(TransformerEncoderLayer(4, 2, kSmall), 2, LayerNorm(4));
  EXPECT_FALSE(encoder.layers[0].linear1.weight.is_same(encoder.layers[1].linear1.weight));
  EXPECT_EQ(encoder.layers[0].linear1.weight.detach().to_vector<float>(),
            encoder.layers[1].linear1.weight.detach().to_vector<float>());
  set_weights(encoder);
  const Tensor y = encoder(numbers({3, 2, 4}, 2), {.mask = causal_mask(3), .is_causal = true});
  expect_near(y, {0.560101, 0.398813, 1.14145, 0.505848, 0.568644, 0.451453, 1.121,   0.494777,
                  0.559781, 0.396897, 1.14154, 0.506815, 0.567877, 0.446445, 1.12359, 0.495523,
                  0.564641, 0.425927, 1.1326,  0.499497, 0.566166, 0.43551,  1.12888, 0.497268});
  expect_near(gradient_sums(encoder, y),
              {0.0105695,  -0.0229028, -0.0372753, 0.00368123, 0.0482489,   0.0575609,  -0.0256787,
               -0.0317707, 0.177708,   -0.0961641, -0.0757728, -0.00809266, -0.121165,  -0.0925962,
               0.102705,   0.0496752,  -0.183515,  0.0926815,  0.366408,    -0.0608914, -0.239198,
               -0.169236,  -0.0989621, 0.070158,   -1.32579,   -1.5402});
  const TransformerEncoder plain(TransformerEncoderLayer(4, 2, kSmall), 1);
  EXPECT_THAT(parameter_names(plain),
              ElementsAre("layers.0.self_attn.in_proj_weight", "layers.0.self_attn.in_proj_bias",
                          "layers.0.self_attn.out_proj.weight", "layers.0.self_attn.out_proj.bias",
                          "layers.0.linear1.weight", "layers.0.linear1.bias", "layers.0.linear2.weight",
                          "layers.0.linear2.bias", "layers.0.norm1.weight", "layers.0.norm1.bias",
                          "layers.0.norm2.weight", "layers.0.norm2.bias"));
  EXPECT_THAT(plain(numbers({3, 4}, 2)).shape(), ElementsAre(3, 4));
}

TEST(TransformerDecoderLayer, GivesWhatPyTorchGives) {
  TransformerDecoderLayer layer(4, 2, kSmall);
  set_weights(layer);
  const Tensor hidden = tensor({{false, false, false, false, false}, {false, true, false, false, true}});
  const Tensor y =
      layer(numbers({3, 2, 4}, 2), numbers({5, 2, 4}, 1),
            {.tgt_mask = causal_mask(3), .memory_key_padding_mask = hidden, .tgt_is_causal = true});
  expect_near(y, {-0.523102, 0.382653, 0.535558, 0.805427, -0.615197, 0.270323, 0.606248, 0.791495,
                  -0.489371, 0.38981,  0.522644, 0.808701, -0.628387, 0.274618, 0.607284, 0.789852,
                  -0.473732, 0.373277, 0.526133, 0.810233, -0.611269, 0.308184, 0.590161, 0.793615});
  expect_near(gradient_sums(layer, y), {-0.112137, 0.380976, 0.0402042, -0.0331961, 0.0303515, -0.183647,
                                        -0.248762, 0.0561559, 0.126954, -0.0337333, 0.0228187, 0.217863,
                                        0.336754, 0.0640059, -0.740272, 0.369113, -0.323041, -1.5402});
}

TEST(Transformer, GivesWhatPyTorchGives) {
  TransformerOptions options{
      .d_model = 4, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 2, .layer = kSmall};
  options.layer.norm_first = true;
  Transformer net(options);
  set_weights(net);
  const Tensor y = net(numbers({5, 2, 4}, 1), numbers({3, 2, 4}, 2),
                       {.tgt_mask = Transformer::generate_square_subsequent_mask(3)});
  expect_near(y, {1.27787, 0.112242,  -0.193318,  -0.537287, 0.91539, -0.627773, 0.272346,   -0.314554,
                  1.26604, 0.0262953, -0.0865918, -0.543896, 1.0637,  -0.55587,  0.137982,   -0.35533,
                  1.17777, -0.360447, 0.139909,   -0.46709,  1.20796, -0.356588, 0.00505334, -0.433658});
  expect_near(
      gradient_sums(net, y),
      {0.100653,  -0.17702,   -0.286637,   0.218513,   -0.130676, -0.323033, -0.38413,  0.198869,  -0.013683,
       -0.066258, -0.0659541, -0.079811,   -0.508802,  0.779559,  0.187707,  -0.284521, 0.401203,  -0.0997361,
       -0.251321, 0.711647,   -0.474755,   -0.0988766, 0.319487,  -0.728307, -0.798685, 0.0790147, -0.151301,
       0.244767,  0.00149442, 0.00650706,  -0.237596,  -0.573529, -0.219328, 0.428641,  0.432952,  0.124045,
       0.056477,  0.409743,   -0.505354,   0.123147,   0.246666,  -0.720245, 0.555368,  0.10032,   -0.246094,
       0.124051,  0.00176563, -0.00353098, 0.329914,   -0.313391, 1.39378,   -1.5402});
}

TEST(Transformer, DrawsAsPyTorchDoes) {
  if (!get_default_device().is_cpu()) GTEST_SKIP() << "PyTorch's numbers are for tensors on the CPU";
  manual_seed(0, RandomEngine::MersenneTwister);
  Transformer net({.d_model = 4,
                   .nhead = 2,
                   .num_encoder_layers = 1,
                   .num_decoder_layers = 1,
                   .layer = {.dim_feedforward = 6}});
  std::vector<double> sums;
  for (const auto& [name, tensor] : net.state_dict())
    sums.push_back(sum(mul(tensor, numbers(tensor.shape(), 3))).item<double>());
  expect_near(sums, {3.5348005,  0,          -1.2381352, 0,          -1.5926007,  0.62918079, -0.59395397,
                     0.46621576, -2.2661328, 0,          -2.2661328, 0,           -2.2661328, 0,
                     -2.3418708, 0,          1.4400554,  0,          1.7108675,   0,          -0.035785139,
                     0,          0.78307188, 0.20556128, -2.0138404, -0.22247942, -2.2661328, 0,
                     -2.2661328, 0,          -2.2661328, 0,          -2.2661328,  0});
  manual_seed(0);
}

TEST(TransformerEncoder, PrintsAsPyTorchDoes) {
  const TransformerEncoder encoder(TransformerEncoderLayer(4, 2, {.dim_feedforward = 6}), 2, LayerNorm(4));
  EXPECT_EQ(encoder.str(), R"(TransformerEncoder(
  (layers): ModuleList(
    (0-1): 2 x TransformerEncoderLayer(
      (self_attn): MultiheadAttention(
        (out_proj): NonDynamicallyQuantizableLinear(in_features=4, out_features=4, bias=True)
      )
      (linear1): Linear(in_features=4, out_features=6, bias=True)
      (dropout): Dropout(p=0.1, inplace=False)
      (linear2): Linear(in_features=6, out_features=4, bias=True)
      (norm1): LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)
      (norm2): LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)
      (dropout1): Dropout(p=0.1, inplace=False)
      (dropout2): Dropout(p=0.1, inplace=False)
    )
  )
  (norm): LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)
))");
}

TEST(Transformer, DropsOutInTrainingOnly) {
  manual_seed(0);
  TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 16, .dropout = 0.3});
  const Tensor x = numbers({5, 2, 8}, 2);
  const std::vector<float> one = layer(x).detach().to_vector<float>(),
                           two = layer(x).detach().to_vector<float>();
  EXPECT_NE(one, two);
  layer.eval();
  EXPECT_EQ(layer(x).detach().to_vector<float>(), layer(x).detach().to_vector<float>());
}

TEST(Transformer, RefusesWrongArguments) {
  EXPECT_THAT(message_of([] { TransformerEncoderLayer(4, 3); }),
              HasSubstr("embed_dim must be divisible by num_heads"));
  EXPECT_THAT(message_of([] { TransformerEncoderLayer(4, 2, {.activation = "tanh"}); }),
              HasSubstr("activation should be relu/gelu, not tanh"));
  EXPECT_THAT(message_of([] { TransformerEncoder(TransformerEncoderLayer(4, 2, kSmall), -1); }),
              HasSubstr("num_layers must be at least 0"));
  const Transformer net(
      {.d_model = 4, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 1, .layer = kSmall});
  EXPECT_THAT(message_of([&] {
                net(numbers({5, 2, 4}, 1), numbers({5, 3, 4}, 1));
              }),
              HasSubstr("the batch number of src and tgt must be equal"));
  EXPECT_THAT(message_of([&] {
                net(numbers({5, 2, 4}, 1), numbers({5, 2, 5}, 1));
              }),
              HasSubstr("the feature number of src and tgt must be equal to d_model"));
  EXPECT_THAT(message_of([&] {
                net(numbers({5, 2, 4}, 1), numbers({5, 2, 4}, 1), {.src_mask = causal_mask(3)});
              }),
              HasSubstr("Transformer.encoder.layers.0.self_attn (MultiheadAttention): "));
}

}  // namespace
}  // namespace tern::nn
