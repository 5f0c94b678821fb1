// Lazy layers: what they are before, during and after their first input.
#include "tern/nn/lazy.h"

#include <gtest/gtest.h>

#include "tern/core/generator.h"
#include "tern/device/capture.h"
#include "tern/nn/containers.h"
#include "tern/nn/conv.h"
#include "tern/nn/init.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/nn/reshape.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tests/support/expect_error.h"

namespace tern::nn {
namespace {

struct LazyNet : Module {
  LazyConv2d conv{4, 3};
  LazyBatchNorm2d norm;
  Flatten flatten;
  LazyLinear output{5};
  TERN_MODULE(conv, norm, flatten, output)
  Tensor forward(const Tensor& x) { return output(flatten(relu(norm(conv(x))))); }
};

/// The same with all sizes, for images [N, 2, 6, 6].
struct EagerNet : Module {
  Conv2d conv{2, 4, 3};
  BatchNorm2d norm{4};
  Flatten flatten;
  Linear output{64, 5};
  TERN_MODULE(conv, norm, flatten, output)
  Tensor forward(const Tensor& x) { return output(flatten(relu(norm(conv(x))))); }
};

Tensor images() {
  Generator generator(1);
  return randn({3, 2, 6, 6}, {}, generator);
}

void expect_equal_state(const Module& a, const Module& b) {
  const StateDict one = a.state_dict(), two = b.state_dict();
  ASSERT_EQ(one.size(), two.size());
  for (const auto& [name, tensor] : one) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(two.find(name));
    EXPECT_EQ(tensor.shape(), two.find(name)->shape());
    EXPECT_EQ(tensor.to(float32).to_vector<float>(), two.find(name)->to(float32).to_vector<float>());
  }
}

TEST(Lazy, TakesSizesFromTheFirstInputAndPrintsAsPyTorch) {
  struct Row {
    AnyModule layer;
    Shape input;
    const char *before, *after;
  };
  Row rows[] = {
      {LazyLinear(256),
       {2, 20},
       "LazyLinear(in_features=0, out_features=256, bias=True)",
       "Linear(in_features=20, out_features=256, bias=True)"},
      {LazyLinear(3, {.bias = false}),
       {4},
       "LazyLinear(in_features=0, out_features=3, bias=False)",
       "Linear(in_features=4, out_features=3, bias=False)"},
      {LazyConv1d(4, 3, {.stride = 2}),
       {1, 2, 9},
       "LazyConv1d(0, 4, kernel_size=(3,), stride=(2,))",
       "Conv1d(2, 4, kernel_size=(3,), stride=(2,))"},
      {LazyConv2d(32, 3, {.padding = 1, .groups = 2}),
       {6, 4, 5},
       "LazyConv2d(0, 32, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), groups=2)",
       "Conv2d(6, 32, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), groups=2)"},
      {LazyConvTranspose1d(4, 3, {.stride = 2, .padding = 1}),
       {6, 4},
       "LazyConvTranspose1d(0, 4, kernel_size=(3,), stride=(2,), padding=(1,))",
       "ConvTranspose1d(6, 4, kernel_size=(3,), stride=(2,), padding=(1,))"},
      {LazyConvTranspose2d(4, 3, {.stride = 2, .output_padding = 1}),
       {1, 6, 4, 4},
       "LazyConvTranspose2d(0, 4, kernel_size=(3, 3), stride=(2, 2), output_padding=(1, 1))",
       "ConvTranspose2d(6, 4, kernel_size=(3, 3), stride=(2, 2), output_padding=(1, 1))"},
      {LazyBatchNorm1d(),
       {4, 3},
       "LazyBatchNorm1d(0, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
       "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"},
      {LazyInstanceNorm1d({.affine = true}),
       {3, 5},
       "LazyInstanceNorm1d(0, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=False)",
       "InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=False)"},
      {LazyInstanceNorm3d({.track_running_stats = true}),
       {2, 3, 2, 2, 2},
       "LazyInstanceNorm3d(0, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=True)",
       "InstanceNorm3d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=True)"},
      {LazyBatchNorm2d({.affine = false}),
       {4, 3, 2, 2},
       "LazyBatchNorm2d(0, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=True)",
       "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=True)"},
  };
  for (Row& row : rows) {
    SCOPED_TRACE(row.before);
    EXPECT_EQ(row.layer->str(), row.before);
    EXPECT_TRUE(row.layer->has_uninitialized_params());
    const Tensor x = randn(row.input), y = row.layer(x);
    EXPECT_EQ(row.layer->str(), row.after);
    EXPECT_FALSE(row.layer->has_uninitialized_params());
    EXPECT_EQ(row.layer(x).shape(), y.shape());
  }
}

TEST(Lazy, EqualsTheEagerNetworkOfTheSameSeed) {
  const Tensor x = images();
  manual_seed(5);
  LazyNet lazy;
  const Tensor y = lazy(x);
  manual_seed(5);
  EagerNet eager;
  EXPECT_EQ(eager(x).to_vector<float>(), y.to_vector<float>());
  expect_equal_state(lazy, eager);
}

TEST(Lazy, ParametersAreTheSameTensorsAfterTheFirstInput) {
  LazyNet net;
  const std::vector<Tensor> before = net.parameters();  // as an optimizer holds them
  ASSERT_EQ(before.size(), 6u);
  EXPECT_EQ(before[0].shape(), (Shape{4, 0, 3, 3}));
  EXPECT_TRUE(is_lazy(before[0]) && before[0].requires_grad() && before[0].is_leaf());
  EXPECT_FALSE(is_lazy(net.norm.num_batches_tracked));
  EXPECT_FALSE(is_lazy(Tensor()));
  net(images()).sum().backward();
  const std::vector<Tensor> after = net.parameters();
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(before[i].is_same(after[i]));
    EXPECT_EQ(before[i].grad().shape(), after[i].shape());
  }
}

TEST(Lazy, KeepsWhatWasSaidBefore) {
  LazyNet net;
  net.to(float64).requires_grad_(false).eval();
  net(images().to(float64));
  for (const Tensor& parameter : net.parameters()) {
    EXPECT_EQ(parameter.dtype(), float64);
    EXPECT_FALSE(parameter.requires_grad());
  }
  EXPECT_EQ(net.norm.num_batches_tracked.item<int64_t>(), 0);  // eval mode
  EXPECT_EQ(net.norm.running_var.to_vector<double>(), std::vector<double>(4, 1));
}

TEST(Lazy, CopiesShareSizesAndClonesHaveTheirOwn) {
  LazyNet net, copy = net, other = clone(net);
  EXPECT_TRUE(other.has_uninitialized_params());
  net(images());
  EXPECT_EQ(copy.output.in_features(), 64);
  EXPECT_TRUE(other.has_uninitialized_params());
  other(randn({2, 1, 5, 5}));
  EXPECT_EQ(other.output.in_features(), 36);
  EXPECT_EQ(net.output.in_features(), 64);
  const Linear sliced = LazyLinear(3);
  sliced(ones({1, 7}));
  EXPECT_EQ(sliced.in_features(), 7);
}

TEST(Lazy, InASequentialWithFusedLayers) {
  const Tensor x = images().flatten(1);
  Sequential lazy{LazyLinear(8), ReLU(), LazyLinear(16), GELU("tanh"), LazyLinear(4)};
  const Tensor first = lazy(x), second = lazy(x);  // layer by layer, then in fewer kernels
  Sequential eager{Linear(72, 8), ReLU(), Linear(8, 16), GELU("tanh"), Linear(16, 4)};
  eager.load_state_dict(lazy.state_dict());
  EXPECT_EQ(second.to_vector<float>(), eager(x).to_vector<float>());
  EXPECT_EQ(first.shape(), second.shape());
  // Sizes that are known to fit do not make the first a layer of known sizes.
  Sequential half{LazyLinear(16), GELU("tanh"), Linear(16, 4)};
  EXPECT_EQ(half(x).shape(), (Shape{3, 4}));
  // Nor does a weight that a state dict gave, while the bias is missing.
  Sequential part{LazyLinear(16), GELU("tanh"), LazyLinear(4)};
  StateDict weights = half.state_dict();
  weights.erase("0.bias");
  weights.erase("2.bias");
  part.load_state_dict(weights, {.strict = false});
  part[0].as<Linear>().reset_parameters();
  EXPECT_EQ(part(x).shape(), (Shape{3, 4}));
  EXPECT_FALSE(part.has_uninitialized_params());
}

TEST(Lazy, LoadsAStateDictBeforeTheFirstInput) {
  EagerNet saved;
  saved(images());
  for (bool assign : {false, true}) {
    LazyNet net;
    EXPECT_TRUE(net.load_state_dict(saved.state_dict(), {.assign = assign}).empty());
    EXPECT_FALSE(net.has_uninitialized_params());
    expect_equal_state(net, saved);
    EXPECT_EQ(net(images()).shape(), (Shape{3, 5}));
  }
  // A part of it: the rest comes with the first input, and what was loaded stays.
  StateDict part = saved.state_dict();
  for (const char* name : {"output.bias", "norm.weight", "norm.running_var", "conv.weight"}) part.erase(name);
  LazyNet net;
  net.load_state_dict(part, {.strict = false});
  EXPECT_TRUE(net.has_uninitialized_params());
  net.eval();
  net(images());
  EXPECT_FALSE(net.has_uninitialized_params());
  for (const auto& [name, tensor] : part)
    EXPECT_EQ(tensor.to(float32).to_vector<float>(),
              net.state_dict().find(name)->to(float32).to_vector<float>())
        << name;
  EXPECT_EQ(net.norm.running_var.to_vector<float>(), std::vector<float>(4, 1));
}

TEST(Lazy, RefusesWhatNeedsSizes) {
  const char* attempted = "Attempted to use an uninitialized parameter";
  LazyLinear layer(3);
  expect_error<ValueError>([&] { init::normal_(layer.weight); }, attempted);
  expect_error<ValueError>([&] { init::zeros_(layer.bias); }, attempted);
  expect_error<ValueError>([&] { layer.weight.detach().normal_(); }, attempted);
  expect_error<ValueError>([&] { layer.weight.square().sum(); }, attempted);
  expect_error<ValueError>([&] { layer.weight.t(); }, attempted);
  expect_error<ValueError>([&] { Sequential(layer).state_dict(); },
                           "state_dict: '0.weight' is uninitialized: LazyLinear takes its sizes");
  expect_error<ValueError>([&] { layer.bias.to_vector<float>(); }, attempted);
  expect_error<ValueError>([&] { LazyLinear(1).bias.item(); }, attempted);
  expect_error<ValueError>([&] { layer.weight.data<float>(); }, attempted);
  EXPECT_EQ(layer.bias.str(), "<UninitializedParameter>");
  layer.reset_parameters();  // nothing to draw yet
  LazyBatchNorm1d norm;
  norm.reset_parameters();
  EXPECT_TRUE(layer.has_uninitialized_params() && norm.has_uninitialized_params());

  expect_error<CheckpointError>(
      [&] { layer.load_state_dict(Linear(4, 5).state_dict()); },
      "size mismatch for weight: copying a param with shape torch.Size([5, 4]) from checkpoint, the shape in "
      "current model is torch.Size([3, 0]).");
  EXPECT_TRUE(is_lazy(layer.weight) && is_lazy(layer.bias));
}

TEST(Lazy, AWrongFirstInputLeavesItAsItWas) {
  LazyLinear linear(3);
  expect_error<ShapeError>([&] { linear(ones({})); },
                           "LazyLinear: the first input, of shape [], must have at least 1 dimension");
  LazyConv2d conv(4, 3, {.groups = 2});
  expect_error<ShapeError>(
      [&] {
        conv(ones({2, 2}));
      },
      "LazyConv2d: the first input, of shape [2, 2], must have 3 or 4 dimensions");
  expect_error<ValueError>(
      [&] {
        conv(ones({1, 3, 8, 8}));
      },
      "Conv2d: in_channels must be divisible by groups, got 3 and 2");
  LazyBatchNorm2d norm;
  expect_error<ShapeError>([&] { norm(ones({2, 3})); }, "BatchNorm2d: expected 4D input (got 2D input)");
  EXPECT_TRUE(linear.has_uninitialized_params() && conv.has_uninitialized_params() &&
              norm.has_uninitialized_params());
  EXPECT_EQ(conv(ones({1, 4, 8, 8})).shape(), (Shape{1, 4, 6, 6}));
}

TEST(Lazy, IsNotRecorded) {
  LazyLinear layer(3);
  const Tensor x = ones({2, 4});
  Tensor y;
  auto step = [&] { y = layer(x); };
  expect_error<CaptureError>([&] { capture(step, {.warmup = 0}); }, "LazyLinear takes its sizes");
  EXPECT_TRUE(is_lazy(layer.weight));
  CapturedStep recorded = capture(step);  // once before
  const std::vector<float> weight = layer.weight.detach().to_vector<float>();
  recorded.replay();
  EXPECT_EQ(layer.weight.detach().to_vector<float>(), weight);
}

}  // namespace
}  // namespace tern::nn
