// The layers: the text that they print, that options reach the operators, and errors. Values of the operators
// are tested in tests/ops.
#include <gmock/gmock.h>

#include <cmath>

#include "tern/autograd/grad_mode.h"
#include "tern/nn/activation.h"
#include "tern/nn/conv.h"
#include "tern/nn/distance.h"
#include "tern/nn/dropout.h"
#include "tern/nn/embedding.h"
#include "tern/nn/functional.h"
#include "tern/nn/linear.h"
#include "tern/nn/loss.h"
#include "tern/nn/models.h"
#include "tern/nn/norm.h"
#include "tern/nn/pad.h"
#include "tern/nn/pool.h"
#include "tern/nn/reshape.h"
#include "tern/nn/upsample.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/optim/adam.h"
#include "tests/support/expect_error.h"

namespace tern::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Layers, PrintAsPyTorchDoes) {
  EXPECT_EQ(Linear(20, 256).str(), "Linear(in_features=20, out_features=256, bias=True)");
  EXPECT_EQ(Linear(2, 3, {.bias = false}).str(), "Linear(in_features=2, out_features=3, bias=False)");
  EXPECT_EQ(Conv2d(1, 6, 5, {.padding = 2}).str(),
            "Conv2d(1, 6, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2))");
  EXPECT_EQ(
      Conv2d(4, 6, {3, 5}, {.stride = 2, .padding = 1, .dilation = 2, .groups = 2, .bias = false}).str(),
      "Conv2d(4, 6, kernel_size=(3, 5), stride=(2, 2), padding=(1, 1), dilation=(2, 2), groups=2, "
      "bias=False)");
  EXPECT_EQ(Conv2d(1, 1, 3, {.padding = "same"}).str(),
            "Conv2d(1, 1, kernel_size=(3, 3), stride=(1, 1), padding=same)");
  EXPECT_EQ(Conv2d(1, 1, 3, {.bias = false, .padding_mode = "reflect"}).str(),
            "Conv2d(1, 1, kernel_size=(3, 3), stride=(1, 1), bias=False, padding_mode=reflect)");
  EXPECT_EQ(Conv2d(1, 1, 3, {.padding = "valid"}).str(),
            "Conv2d(1, 1, kernel_size=(3, 3), stride=(1, 1), padding=valid)");
  EXPECT_EQ(Conv1d(16, 33, 3, {.stride = 2}).str(), "Conv1d(16, 33, kernel_size=(3,), stride=(2,))");
  EXPECT_EQ(ConvTranspose2d(4, 2, 3, {.stride = 2, .output_padding = 1}).str(),
            "ConvTranspose2d(4, 2, kernel_size=(3, 3), stride=(2, 2), output_padding=(1, 1))");
  EXPECT_EQ(MaxPool2d(2).str(), "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)");
  EXPECT_EQ(MaxPool2d({2, 3}, {.stride = Size2(1), .padding = {0, 1}}).str(),
            "MaxPool2d(kernel_size=(2, 3), stride=1, padding=(0, 1), dilation=1, ceil_mode=False)");
  EXPECT_EQ(AvgPool2d(2).str(), "AvgPool2d(kernel_size=2, stride=2, padding=0)");
  EXPECT_EQ(MaxPool1d(2).str(), "MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)");
  EXPECT_EQ(AvgPool1d(2).str(), "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))");
  EXPECT_EQ(AdaptiveAvgPool2d(1).str(), "AdaptiveAvgPool2d(output_size=1)");
  EXPECT_EQ(AdaptiveAvgPool2d({-1, 7}).str(), "AdaptiveAvgPool2d(output_size=(None, 7))");
  EXPECT_EQ(AdaptiveAvgPool2d({1, 1}).str(), "AdaptiveAvgPool2d(output_size=(1, 1))");
  EXPECT_EQ(AvgPool2d({2, 2}).str(), "AvgPool2d(kernel_size=(2, 2), stride=(2, 2), padding=0)");
  EXPECT_EQ(AdaptiveMaxPool2d({3, 4}).str(), "AdaptiveMaxPool2d(output_size=(3, 4))");
  EXPECT_EQ(BatchNorm2d(16).str(),
            "BatchNorm2d(16, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)");
  EXPECT_EQ(BatchNorm1d(3, {.momentum = std::nullopt, .affine = false}).str(),
            "BatchNorm1d(3, eps=1e-05, momentum=None, affine=False, bias=False, track_running_stats=True)");
  EXPECT_EQ(LayerNorm(10).str(), "LayerNorm((10,), eps=1e-05, elementwise_affine=True, bias=True)");
  EXPECT_EQ(LayerNorm({2, 3}, {.elementwise_affine = false}).str(),
            "LayerNorm((2, 3), eps=1e-05, elementwise_affine=False, bias=False)");
  EXPECT_EQ(GroupNorm(3, 6).str(), "GroupNorm(3, 6, eps=1e-05, affine=True, bias=True)");
  EXPECT_EQ(RMSNorm(3).str(), "RMSNorm((3,), eps=None, elementwise_affine=True)");
  EXPECT_EQ(Dropout(0.25).str(), "Dropout(p=0.25, inplace=False)");
  EXPECT_EQ(Dropout(0.25, /*inplace=*/true).str(), "Dropout(p=0.25, inplace=True)");
  EXPECT_EQ(Embedding(10, 3).str(), "Embedding(10, 3)");
  EXPECT_EQ(Embedding(10, 3, {.padding_idx = -1}).str(), "Embedding(10, 3, padding_idx=9)");
  EXPECT_EQ(ReLU().str(), "ReLU()");
  EXPECT_EQ(ReLU(/*inplace=*/true).str(), "ReLU(inplace=True)");
  EXPECT_EQ(SiLU(/*inplace=*/true).str(), "SiLU(inplace=True)");
  EXPECT_EQ(LeakyReLU(0.5, /*inplace=*/true).str(), "LeakyReLU(negative_slope=0.5, inplace=True)");
  EXPECT_EQ(ELU(2, /*inplace=*/true).str(), "ELU(alpha=2.0, inplace=True)");
  EXPECT_EQ(LeakyReLU().str(), "LeakyReLU(negative_slope=0.01)");
  EXPECT_EQ(ELU().str(), "ELU(alpha=1.0)");
  EXPECT_EQ(GELU("tanh").str(), "GELU(approximate='tanh')");
  EXPECT_EQ(ReLU6(/*inplace=*/true).str(), "ReLU6(inplace=True)");
  EXPECT_EQ(Hardtanh(-2, 2.5, /*inplace=*/true).str(), "Hardtanh(min_val=-2.0, max_val=2.5, inplace=True)");
  EXPECT_EQ(Hardswish(/*inplace=*/true).str(), "Hardswish()");
  EXPECT_EQ(Hardsigmoid().str(), "Hardsigmoid()");
  EXPECT_EQ(Mish(/*inplace=*/true).str(), "Mish(inplace=True)");
  EXPECT_EQ(SELU().str(), "SELU()");
  EXPECT_EQ(CELU(2, /*inplace=*/true).str(), "CELU(alpha=2.0, inplace=True)");
  EXPECT_EQ(Softshrink().str(), "Softshrink(0.5)");
  EXPECT_EQ(Hardshrink(0.25).str(), "Hardshrink(0.25)");
  EXPECT_EQ(Threshold(0.1, 20).str(), "Threshold(threshold=0.1, value=20.0)");
  EXPECT_EQ(GLU(1).str(), "GLU(dim=1)");
  EXPECT_EQ(PReLU(3).str(), "PReLU(num_parameters=3)");
  EXPECT_EQ(Softplus().str(), "Softplus(beta=1.0, threshold=20.0)");
  EXPECT_EQ(Softmax(1).str(), "Softmax(dim=1)");
  EXPECT_EQ(LogSoftmax(-1).str(), "LogSoftmax(dim=-1)");
  EXPECT_EQ(Flatten().str(), "Flatten(start_dim=1, end_dim=-1)");
  EXPECT_EQ(Unflatten(1, {2, 5}).str(), "Unflatten(dim=1, unflattened_size=(2, 5))");
  EXPECT_EQ(Identity().str(), "Identity()");
  EXPECT_EQ(
      ConvTranspose1d(4, 6, 3, {.stride = 2, .output_padding = 1, .groups = 2, .bias = false}).str(),
      "ConvTranspose1d(4, 6, kernel_size=(3,), stride=(2,), output_padding=(1,), groups=2, bias=False)");
  EXPECT_EQ(AdaptiveAvgPool1d(3).str(), "AdaptiveAvgPool1d(output_size=3)");
  EXPECT_EQ(AdaptiveMaxPool1d(-1).str(), "AdaptiveMaxPool1d(output_size=None)");
  EXPECT_EQ(
      InstanceNorm2d(3).str(),
      "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)");
  EXPECT_EQ(InstanceNorm1d(3, {.momentum = std::nullopt, .affine = true, .track_running_stats = true}).str(),
            "InstanceNorm1d(3, eps=1e-05, momentum=None, affine=True, bias=True, track_running_stats=True)");
  EXPECT_EQ(Dropout1d().str(), "Dropout1d(p=0.5, inplace=False)");
  EXPECT_EQ(Dropout2d(0.2, /*inplace=*/true).str(), "Dropout2d(p=0.2, inplace=True)");
  EXPECT_EQ(ZeroPad1d(1).str(), "ZeroPad1d((1, 1))");
  EXPECT_EQ(ZeroPad2d({1, 2, 3, 4}).str(), "ZeroPad2d((1, 2, 3, 4))");
  EXPECT_EQ(ConstantPad1d(2, 3).str(), "ConstantPad1d(padding=(2, 2), value=3)");
  EXPECT_EQ(ConstantPad2d(1, 3.5).str(), "ConstantPad2d(padding=(1, 1, 1, 1), value=3.5)");
  EXPECT_EQ(ReflectionPad1d({1, 2}).str(), "ReflectionPad1d((1, 2))");
  EXPECT_EQ(ReplicationPad2d(1).str(), "ReplicationPad2d((1, 1, 1, 1))");
  EXPECT_EQ(CircularPad1d(1).str(), "CircularPad1d((1, 1))");
  EXPECT_EQ(PixelShuffle(2).str(), "PixelShuffle(upscale_factor=2)");
  EXPECT_EQ(PixelUnshuffle(3).str(), "PixelUnshuffle(downscale_factor=3)");
  EXPECT_EQ(ChannelShuffle(2).str(), "ChannelShuffle(groups=2)");
  EXPECT_EQ(Unfold({2, 3}, {.padding = 1}).str(),
            "Unfold(kernel_size=(2, 3), dilation=1, padding=1, stride=1)");
  EXPECT_EQ(Fold({4, 5}, 2, {.dilation = 2, .stride = {1, 3}}).str(),
            "Fold(output_size=(4, 5), kernel_size=2, dilation=2, padding=0, stride=(1, 3))");
  EXPECT_EQ(Upsample({.scale_factor = {2}}).str(), "Upsample(scale_factor=2.0, mode='nearest')");
  EXPECT_EQ(Upsample({.size = {4, 5}, .mode = "bicubic"}).str(), "Upsample(size=(4, 5), mode='bicubic')");
  EXPECT_EQ(UpsamplingNearest2d({.size = {7}}).str(), "UpsamplingNearest2d(size=7, mode='nearest')");
  EXPECT_EQ(UpsamplingBilinear2d({.scale_factor = {2, 1.5}}).str(),
            "UpsamplingBilinear2d(scale_factor=(2.0, 1.5), mode='bilinear')");
  EXPECT_EQ(CosineSimilarity().str(), "CosineSimilarity()");
  EXPECT_EQ(PairwiseDistance().str(), "PairwiseDistance()");
  EXPECT_EQ(KLDivLoss().str(), "KLDivLoss()");
  EXPECT_EQ(CrossEntropyLoss().str(), "CrossEntropyLoss()");
  EXPECT_EQ(MSELoss().str(), "MSELoss()");
}

void expect_same(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_EQ(a.detach().to_vector<double>(), b.detach().to_vector<double>());
}

TEST(Layers, PassTheirOptionsOn) {
  manual_seed(0);
  Tensor x = randn({2, 4, 8, 8}), rows = randn({2, 4, 8});
  Conv2d conv(4, 6, {3, 5}, {.stride = 2, .padding = {1, 0}, .dilation = {1, 1}, .groups = 2});
  expect_same(conv(x), conv2d(x, conv.weight, conv.bias, {.stride = 2, .padding = {1, 0}, .groups = 2}));
  EXPECT_THAT(conv.weight.shape(), ElementsAre(6, 2, 3, 5));
  Conv1d conv1(4, 6, 3, {.stride = 2, .padding = 1});
  expect_same(conv1(rows), conv1d(rows, conv1.weight, conv1.bias, {.stride = 2, .padding = 1}));
  ConvTranspose2d up(4, 3, 2, {.stride = 2});
  expect_same(up(x), conv_transpose2d(x, up.weight, up.bias, {.stride = 2}));
  EXPECT_THAT(up(x).shape(), ElementsAre(2, 3, 16, 16));
  expect_same(MaxPool2d(3, {.stride = Size2(1), .padding = 1})(x),
              max_pool2d(x, {.kernel_size = 3, .stride = Size2(1), .padding = 1}));
  expect_same(AvgPool2d(3, {.padding = 1, .count_include_pad = false})(x),
              avg_pool2d(x, {.kernel_size = 3, .padding = 1, .count_include_pad = false}));
  expect_same(MaxPool1d(2)(rows), max_pool1d(rows, {.kernel_size = 2}));
  expect_same(AvgPool1d(2)(rows), avg_pool1d(rows, {.kernel_size = 2}));
  expect_same(AdaptiveAvgPool2d({2, 3})(x), adaptive_avg_pool2d(x, {2, 3}));
  expect_same(AdaptiveMaxPool2d(2)(x), adaptive_max_pool2d(x, 2));
  ConvTranspose1d up1(4, 6, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2});
  expect_same(up1(rows), conv_transpose1d(rows, up1.weight, up1.bias,
                                          {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2}));
  EXPECT_THAT(up1.weight.shape(), ElementsAre(4, 3, 3));
  expect_same(AdaptiveAvgPool1d(3)(rows), adaptive_avg_pool1d(rows, 3));
  expect_same(AdaptiveMaxPool1d(-1)(rows), rows);
  expect_same(InstanceNorm2d(4, {.eps = 0.5})(x), instance_norm(x, {}, {}, {}, {}, true, 0.1, 0.5));
  expect_same(ZeroPad1d(1)(rows), pad(rows, {1, 1}));
  expect_same(ZeroPad2d({1, 2, 3, 4})(x), pad(x, {1, 2, 3, 4}));
  expect_same(ConstantPad1d({1, 2}, 3.5)(rows), pad(rows, {1, 2}, "constant", 3.5));
  expect_same(ConstantPad2d(1, 3.5)(x), pad(x, {1, 1, 1, 1}, "constant", 3.5));
  expect_same(ReflectionPad1d({1, 2})(rows), pad(rows, {1, 2}, "reflect"));
  expect_same(ReflectionPad2d({1, 2, 3, 4})(x), pad(x, {1, 2, 3, 4}, "reflect"));
  expect_same(ReplicationPad1d({1, 2})(rows), pad(rows, {1, 2}, "replicate"));
  expect_same(ReplicationPad2d({1, 2, 3, 4})(x), pad(x, {1, 2, 3, 4}, "replicate"));
  expect_same(CircularPad1d({1, 2})(rows), pad(rows, {1, 2}, "circular"));
  expect_same(CircularPad2d({1, 2, 3, 4})(x), pad(x, {1, 2, 3, 4}, "circular"));
  expect_same(PixelShuffle(2)(x), pixel_shuffle(x, 2));
  expect_same(PixelUnshuffle(2)(x), pixel_unshuffle(x, 2));
  expect_same(ChannelShuffle(2)(x), channel_shuffle(x, 2));
  expect_same(Unfold(3, {.stride = 2})(x), unfold(x, 3, {.stride = 2}));
  expect_same(Fold({8, 2}, 1)(x.flatten(2).slice(2, 0, 16)), fold(x.flatten(2).slice(2, 0, 16), {8, 2}, 1));
  expect_same(Upsample({.scale_factor = {1.3}, .mode = "linear", .recompute_scale_factor = true})(rows),
              interpolate(rows, {.size = {10}, .mode = "linear"}));
  expect_same(UpsamplingNearest2d({.size = {3, 9}})(x), interpolate(x, {.size = {3, 9}}));
  expect_same(UpsamplingBilinear2d({.scale_factor = {2}})(x),
              interpolate(x, {.scale_factor = {2}, .mode = "bilinear", .align_corners = true}));
  expect_same(CosineSimilarity(2, 0.5)(x, x * 2), cosine_similarity(x, x * 2, 2, 0.5));
  expect_same(PairwiseDistance(1, 0.5, /*keepdim=*/true)(x, x * 2),
              pairwise_distance(x, x * 2, 1, 0.5, true));
  expect_same(LayerNorm({8, 8}, {.eps = 0.5})(x), layer_norm(x, {8, 8}, {}, {}, 0.5));
  expect_same(GroupNorm(2, 4, {.eps = 0.5})(x), group_norm(x, 2, {}, {}, 0.5));
  expect_same(RMSNorm(8, {.eps = 0.5})(x), rms_norm(x, {8}, {}, 0.5));
  expect_same(LeakyReLU(0.3)(x), leaky_relu(x, 0.3));
  expect_same(ELU(0.3)(x), elu(x, 0.3));
  expect_same(GELU("tanh")(x), gelu(x, "tanh"));
  expect_same(Softplus(2, 3)(x), softplus(x, 2, 3));
  expect_same(Softmax(1)(x), softmax(x, 1));
  expect_same(LogSoftmax(-1)(x), log_softmax(x, -1));
  expect_same(SiLU()(x), silu(x));
  expect_same(ReLU6()(x), relu6(x));
  expect_same(Hardtanh(-0.5, 0.25)(x), hardtanh(x, -0.5, 0.25));
  expect_same(Hardswish()(x), hardswish(x));
  expect_same(Hardsigmoid()(x), hardsigmoid(x));
  expect_same(Mish()(x), mish(x));
  expect_same(SELU()(x), selu(x));
  expect_same(CELU(0.5)(x), celu(x, 0.5));
  expect_same(Softsign()(x), softsign(x));
  expect_same(Tanhshrink()(x), tanhshrink(x));
  expect_same(Hardshrink(0.3)(x), hardshrink(x, 0.3));
  expect_same(Softshrink(0.3)(x), softshrink(x, 0.3));
  expect_same(Threshold(0.2, -3)(x), threshold(x, 0.2, -3));
  expect_same(GLU(1)(x), glu(x, 1));
  expect_same(PReLU(4, {.init = 0.5})(x), leaky_relu(x, 0.5));
  expect_same(Sigmoid()(x), sigmoid(x));
  expect_same(Tanh()(x), tanh(x));
  expect_same(LogSigmoid()(x), logsigmoid(x));
  EXPECT_THAT(Flatten()(x).shape(), ElementsAre(2, 256));
  EXPECT_THAT(Unflatten(1, {2, -1})(x).shape(), ElementsAre(2, 2, 2, 8, 8));
  EXPECT_TRUE(Identity()(x).is_same(x));
  Linear wide(3, 2, {.dtype = float64});
  EXPECT_EQ(wide(ones({1, 3}, {.dtype = float64})).dtype(), float64);
}

TEST(Layers, LossesPassTheirOptionsOn) {
  manual_seed(0);
  Tensor x = randn({4, 3}), y = tensor({0, 2, 1, 2}), w = tensor({1.0, 2.0, 3.0}), z = randn({4, 3}),
         p = sigmoid(x), t = sigmoid(z);
  expect_same(
      CrossEntropyLoss({.weight = w, .ignore_index = 1, .reduction = Reduction::Sum, .label_smoothing = 0.1})(
          x, y),
      cross_entropy(x, y,
                    {.weight = w, .ignore_index = 1, .reduction = Reduction::Sum, .label_smoothing = 0.1}));
  Tensor logs = log_softmax(x, 1);
  expect_same(NLLLoss({.weight = w})(logs, y), nll_loss(logs, y, {.weight = w}));
  expect_same(MSELoss(Reduction::Sum)(x, z), mse_loss(x, z, Reduction::Sum));
  expect_same(L1Loss(Reduction::None)(x, z), l1_loss(x, z, Reduction::None));
  expect_same(SmoothL1Loss({.beta = 0.5})(x, z), smooth_l1_loss(x, z, {.beta = 0.5}));
  expect_same(HuberLoss({.delta = 0.5})(x, z), huber_loss(x, z, {.delta = 0.5}));
  expect_same(BCELoss({.weight = w})(p, t), binary_cross_entropy(p, t, {.weight = w}));
  expect_same(BCEWithLogitsLoss({.pos_weight = w})(x, t),
              binary_cross_entropy_with_logits(x, t, {.pos_weight = w}));
  expect_same(KLDivLoss({.reduction = Reduction::Sum, .log_target = true})(logs, z),
              kl_div(logs, z, {.reduction = Reduction::Sum, .log_target = true}));
  CrossEntropyLoss weighted({.weight = w});
  weighted.to(float64);
  EXPECT_EQ(weighted.weight.dtype(), float64);
}

TEST(Layers, DropoutFollowsTheMode) {
  Dropout drop(0.5);
  Tensor x = ones({1000});
  double sum = drop(x).sum().item<double>();
  EXPECT_NE(sum, 1000);
  EXPECT_NEAR(sum, 1000, 200);
  drop.eval();
  EXPECT_EQ(drop(x).sum().item<double>(), 1000);
}

TEST(Layers, BatchNormCountsAnEmptyBatch) {
  BatchNorm2d bn(2);
  EXPECT_EQ(bn(zeros({0, 2, 4, 4})).shape(), (Shape{0, 2, 4, 4}));
  EXPECT_EQ(bn.num_batches_tracked.item<int64_t>(), 1);
  EXPECT_EQ(bn.running_var.to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST(Layers, BatchNormKeepsRunningStatistics) {
  manual_seed(0);
  BatchNorm2d bn(2);
  Tensor x = randn({4, 2, 3, 3}) * 2 + 5;
  Tensor y = bn(x);
  EXPECT_NEAR(y.mean().item<double>(), 0, 1e-5);
  EXPECT_EQ(bn.num_batches_tracked.item<int64_t>(), 1);
  EXPECT_NEAR(bn.running_mean.mean().item<double>(), 0.1 * x.mean().item<double>(), 1e-5);
  std::vector<double> mean = bn.running_mean.to_vector<double>();
  bn.eval();
  bn(x);
  EXPECT_EQ(bn.num_batches_tracked.item<int64_t>(), 1);
  EXPECT_EQ(bn.running_mean.to_vector<double>(), mean);

  BatchNorm2d average(2, {.momentum = std::nullopt});
  Tensor z = x * 3;
  average(x);
  average(z);
  EXPECT_NEAR(average.running_mean.mean().item<double>(), 2 * x.mean().item<double>(), 1e-4);

  BatchNorm2d untracked(2, {.track_running_stats = false});
  EXPECT_TRUE(untracked.buffers().empty());
  untracked.eval();
  EXPECT_NEAR(untracked(x).mean().item<double>(), 0, 1e-5);
}

TEST(Layers, DropoutOfChannelsFollowsTheMode) {
  Dropout2d drop(0.5);
  const Tensor x = ones({20, 30, 2, 2});
  const double total = drop(x).sum().item<double>();
  EXPECT_NE(total, 2400);
  EXPECT_NEAR(total, 2400, 400);
  drop.eval();
  EXPECT_TRUE(drop(x).is_same(x));
  EXPECT_EQ(Dropout1d(0)(ones({3, 4})).shape(), (Shape{3, 4}));
}

TEST(Layers, InstanceNormTakesInputsWithoutABatch) {
  manual_seed(0);
  const Tensor x = randn({2, 3, 4, 5});
  InstanceNorm2d norm(3, {.affine = true, .track_running_stats = true});
  expect_same(norm(x[0]), norm(x)[0]);
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 0);
  norm.eval();
  expect_same(norm(x[1]), norm(x)[1]);
  EXPECT_THAT(InstanceNorm1d(3)(x[0][0]).shape(), ElementsAre(4, 5));  // num_features is not looked at
  EXPECT_TRUE(InstanceNorm1d(3).state_dict().empty());
  EXPECT_THAT(message_of([&] { norm(x[0][0]); }), HasSubstr("expected 3D or 4D input (got 2D input)"));
  EXPECT_THAT(message_of([&] { norm(x.transpose(1, 2)); }),
              HasSubstr("expected input's size at dim=1 to match num_features (3), but got: 4"));
}

TEST(Layers, InstanceNormKeepsRunningStatistics) {
  manual_seed(0);
  InstanceNorm1d norm(3, {.momentum = 0.25, .track_running_stats = true});
  const Tensor x = randn({4, 3, 9}) + 2;
  norm(x);
  EXPECT_TRUE(allclose(norm.running_mean, mean(x, {0, 2}) * 0.25));
  EXPECT_TRUE(allclose(norm.running_var, mean(var(x, 2), 0) * 0.25 + 0.75));
  const std::vector<float> kept = norm.running_mean.to_vector<float>();
  norm.eval();
  norm(x);
  EXPECT_EQ(norm.running_mean.to_vector<float>(), kept);
}

TEST(Layers, ConvolutionsWithOtherPaddings) {
  const NoGradGuard guard;
  const Tensor x = tensor({1.0f, 2.0f, 3.0f}).view({1, 1, 3});
  const std::pair<const char*, Tensor> rows[] = {{"zeros", tensor({0.0f, 1.0f, 2.0f, 3.0f, 0.0f})},
                                                 {"reflect", tensor({2.0f, 1.0f, 2.0f, 3.0f, 2.0f})},
                                                 {"replicate", tensor({1.0f, 1.0f, 2.0f, 3.0f, 3.0f})},
                                                 {"circular", tensor({3.0f, 1.0f, 2.0f, 3.0f, 1.0f})}};
  for (const auto& [mode, expected] : rows) {
    Conv1d conv(1, 1, 1, {.padding = 1, .bias = false, .padding_mode = mode});
    conv.weight.fill_(1);
    EXPECT_TRUE(equal(conv(x).flatten(), expected)) << mode;
  }
  EXPECT_THAT(
      message_of([] { Conv1d(1, 1, 1, {.padding_mode = "mirror"}); }),
      HasSubstr("Conv1d: padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}, but "
                "got padding_mode='mirror'"));
}

TEST(Layers, RefuseWrongArguments) {
  EXPECT_THAT(message_of([] { Linear(-1, 2); }), HasSubstr("Linear: in_features must be at least 0, got -1"));
  EXPECT_THAT(message_of([] { Conv2d(3, 6, 5, {.groups = 2}); }),
              HasSubstr("in_channels must be divisible by groups"));
  EXPECT_THAT(message_of([] { Conv2d(4, 5, 5, {.groups = 2}); }),
              HasSubstr("out_channels must be divisible by groups"));
  EXPECT_THAT(message_of([] { Conv2d(4, 5, 0); }), HasSubstr("kernel_size must be at least 1"));
  EXPECT_THAT(message_of([] { Conv2d(4, 4, 3, {.groups = 0}); }), HasSubstr("groups must be at least 1"));
  EXPECT_THAT(message_of([] { GroupNorm(4, 6); }), HasSubstr("num_channels must be divisible by num_groups"));
  EXPECT_THAT(message_of([] { Dropout(1.5); }),
              HasSubstr("dropout probability has to be between 0 and 1, but got 1.5"));
  EXPECT_THAT(message_of([] { Embedding(3, 2, {.padding_idx = 3}); }),
              HasSubstr("padding_idx must be within num_embeddings"));
  EXPECT_THAT(message_of([] {
                BatchNorm2d(3)(ones({2, 3}));
              }),
              HasSubstr("BatchNorm2d: expected 4D input (got 2D input)"));
  EXPECT_THAT(message_of([] {
                BatchNorm1d(3)(ones({2, 3, 1, 1}));
              }),
              HasSubstr("expected 2D or 3D input (got 4D input)"));
  EXPECT_THAT(message_of([] { LeNet({.image_size = 8}); }), HasSubstr("images must be at least 12 by 12"));
  EXPECT_THAT(message_of([] { MLP(std::vector<int64_t>{5}); }),
              HasSubstr("at least the sizes of input and output"));
}

TEST(Models, LeNetHasTheNamesOfPyTorchPrograms) {
  LeNet net;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : net.state_dict()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                 "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"));
  EXPECT_THAT(net.fc1.weight.shape(), ElementsAre(120, 400));
  EXPECT_THAT(net(ones({3, 1, 28, 28})).shape(), ElementsAre(3, 10));
  LeNet colour({.in_channels = 3, .image_size = 32, .num_classes = 7});
  EXPECT_THAT(colour(ones({2, 3, 32, 32})).shape(), ElementsAre(2, 7));
  EXPECT_THAT(message_of([&] {
                net(ones({1, 3, 28, 28}));
              }),
              ::testing::StartsWith("LeNet.conv1 (Conv2d): "));
}

TEST(Models, MlpOfAnyDepth) {
  MLP net({6, 5, 4, 3});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : net.state_dict()) names.push_back(name);
  EXPECT_THAT(names,
              ElementsAre("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"));
  EXPECT_THAT(net(ones({2, 1, 2, 3})).shape(), ElementsAre(2, 3));
}

TEST(Models, LeNetLearnsAFewImagesByHeart) {
  manual_seed(0);
  LeNet net;
  Tensor x = randn({8, 1, 28, 28}), y = tensor({0, 1, 2, 3, 4, 5, 6, 7});
  optim::Adam optimizer(net.parameters(), {.lr = 3e-3});
  double first = 0, last = 0;
  for (int i = 0; i < 40; ++i) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    optimizer.step();
    (i == 0 ? first : last) = loss.item<double>();
  }
  EXPECT_NEAR(first, std::log(10.0), 0.3);
  EXPECT_LT(last, 0.1);
}

}  // namespace
}  // namespace tern::nn
