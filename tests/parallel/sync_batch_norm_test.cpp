// SyncBatchNorm against one device with the whole batch; what happens when replicas do not meet.
#include "tern/parallel/sync_batch_norm.h"

#include <gtest/gtest.h>

#include "tern/nn/containers.h"
#include "tern/nn/conv.h"
#include "tern/nn/dropout.h"
#include "tern/ops/autocast.h"
#include "tern/parallel/data_parallel.h"
#include "tests/parallel/parallel_testing.h"

namespace tern::parallel {
namespace {

struct Net : nn::Module {
  nn::Conv2d conv{1, 4, 3};
  nn::BatchNorm2d first{4};
  nn::Linear linear{4 * 6 * 6, 5};
  nn::Sequential rest{nn::BatchNorm1d(5), nn::Linear(5, 3)};
  TERN_MODULE(conv, first, linear, rest)
  Tensor forward(const Tensor& x) { return rest(linear(relu(first(conv(x))).flatten(1))); }
};

class SyncBatchNormTest : public ParallelTest {};

TEST_F(SyncBatchNormTest, EqualsOneDeviceWithTheWholeBatch) {
  for (int devices : {2, 3, 4}) {
    SCOPED_TRACE(devices);
    Net one;
    one.to("cuda:0");
    Net many = nn::clone(one);
    convert_sync_batchnorm_(many);
    DataParallel model(many, {.device_ids = first_gpus(devices)});
    optim::SGD one_step(one.parameters(), {.lr = 0.1}), many_step(many.parameters(), {.lr = 0.1});
    for (int step = 0; step < 3; ++step) {
      const Tensor x = randn({10, 1, 8, 8}), y = randn({10, 3}).to("cuda:0");
      one.zero_grad();
      many.zero_grad();
      const Tensor expected = nn::mse_loss(one(x.to("cuda:0")), y), loss = nn::mse_loss(model(x), y);
      expect_close(loss, expected, 1e-5);
      expected.backward();
      loss.backward();
      // The bias before a batch norm has the gradient 0: rounding is all that is there.
      for (const auto& [name, parameter] : one.named_parameters())
        if (name != "conv.bias" && name != "linear.bias")
          for (const auto& [other, own] : many.named_parameters())
            if (other == name) {
              SCOPED_TRACE(name);
              expect_close(own.grad(), parameter.grad(), 1e-5);
            }
      one_step.step();
      many_step.step();
    }
    const auto expected = one.buffers(), buffers = many.buffers();
    for (size_t i = 0; i < buffers.size(); ++i) expect_close(buffers[i], expected[i], 1e-5);
    model.eval();
    one.eval();
    const Tensor x = randn({6, 1, 8, 8});
    expect_close(model(x), one(x.to("cuda:0")), 1e-5);
  }
}

TEST_F(SyncBatchNormTest, LayerOnItsOwnIsBatchNorm) {
  SyncBatchNorm layer(3);
  nn::BatchNorm2d plain(3);
  const Tensor x = randn({4, 3, 2, 2});
  expect_equal_bits({layer(x)}, {plain(x)});
  expect_equal_bits({layer.running_var}, {plain.running_var});
  EXPECT_EQ(layer.str(),
            "SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)");
  layer(randn({4, 3}));
  layer(randn({4, 3, 2, 2, 2}));
  expect_error<ShapeError>([&] { layer(randn({3})); },
                           "SyncBatchNorm: expected at least 2D input (got 1D input)");
  Net net;
  EXPECT_EQ(net.first.class_name(), "BatchNorm2d");
  const Net converted = convert_sync_batchnorm(net);
  EXPECT_EQ(converted.first.class_name(), "SyncBatchNorm");
  EXPECT_EQ(net.first.class_name(), "BatchNorm2d");
  EXPECT_TRUE(converted.first.weight.is_same(net.first.weight));
}

TEST_F(SyncBatchNormTest, HalfPrecisionAndNoAffine) {
  nn::Sequential net{SyncBatchNorm(3, {.affine = false, .track_running_stats = false})};
  DataParallel model(net, {.device_ids = {0, 1}});
  const Tensor x = randn({8, 3, 4});
  const Tensor expected = nn::BatchNorm1d(3, {.affine = false, .track_running_stats = false})(x);
  expect_close(model(x).cpu(), expected, 1e-5);
  const Tensor y = model(x.to(float16));
  EXPECT_EQ(y.dtype(), float16);
  expect_close(y.cpu().to(float32), expected, 2e-3);
}

TEST_F(SyncBatchNormTest, TheSameBitsInEveryRun) {
  struct Local {
    static std::vector<Tensor> run(const nn::Sequential& net) {
      nn::Sequential copy = nn::clone(net);
      copy.to("cuda:0");
      DataParallel model(copy, {.device_ids = {0, 1, 2}});
      manual_seed(5);
      std::vector<Tensor> results;
      for (int i = 0; i < 3; ++i) {
        results.push_back(model(randn({9, 4})).detach().cpu());
        model(randn({9, 4})).square().sum().backward();
      }
      for (const Tensor& p : copy.parameters()) results.push_back(p.grad().cpu());
      return results;
    }
  };
  const nn::Sequential net{nn::Linear(4, 6), SyncBatchNorm(6), nn::Dropout(0.5), nn::Linear(6, 2),
                           SyncBatchNorm(2)};
  const auto expected = Local::run(net);
  for (uint64_t seed : {1, 2}) {
    simulate_gpus({.gpus = 4, .jitter = seed, .delay = 50e-6, .check_races = true});
    expect_equal_bits(Local::run(net), expected);
  }
}

struct Unsteady : nn::Module {
  SyncBatchNorm norm{2};
  std::string wanted;
  TERN_MODULE(norm)
  Tensor forward(const Tensor& x) {
    const bool second = x.device() == Device("cuda:1");
    if (second && wanted == "skip") return x;
    if (second && wanted == "fail") throw IndexError("gone");
    if (second && wanted == "shape") return norm(x.narrow(1, 0, 1));
    Tensor y = norm(x);
    if (x.device() == Device("cuda:0") && wanted == "late") throw IndexError("gone late");
    return norm(y);
  }
};

TEST_F(SyncBatchNormTest, FailuresDoNotBlock) {
  Unsteady net;
  net.to("cuda:0");
  const Tensor x = randn({9, 2});
  auto run = [&](const char* wanted) {
    net.wanted = wanted;
    DataParallel(net, {.device_ids = {0, 1, 2}})(x);
  };
  expect_error<ValueError>([&] { run("skip"); }, "replica 1 ended its forward without coming to this layer");
  expect_error<IndexError>([&] { run("fail"); }, "in replica 1 on device cuda:1: ");
  expect_error<ShapeError>([&] { run("shape"); }, "expected 2 channels, got input of shape [3, 1]");
  expect_error<IndexError>([&] { run("late"); }, "in replica 0 on device cuda:0: Unsteady: gone late");
  run("");
}

TEST_F(SyncBatchNormTest, EveryReplicaComputesUnderTheCallersAutocast) {
  nn::Sequential net{nn::Linear(4, 6), nn::BatchNorm1d(6), nn::Linear(6, 2)};
  convert_sync_batchnorm_(net);
  net.to("cuda:0");
  DataParallel model(net);
  const AutocastGuard autocast({.dtype = DType::BFloat16});
  const Tensor y = model(randn({8, 4}, {.device = "cuda:0"}));
  EXPECT_EQ(y.dtype(), DType::BFloat16);
}

TEST_F(SyncBatchNormTest, OneRowOnEachDeviceIsEnough) {
  nn::Sequential net{SyncBatchNorm(2)};
  net.to("cuda:0");
  DataParallel model(net, {.device_ids = {0, 1}});
  const Tensor x = randn({2, 2});
  expect_close(model(x).cpu(), nn::BatchNorm1d(2)(x), 1e-5);
  EXPECT_THROW(model(randn({1, 2})), ValueError);
  NoGradGuard no_grad;
  expect_close(model(x).cpu(), nn::BatchNorm1d(2)(x), 1e-5);
  EXPECT_FALSE(model(x).requires_grad());
}

}  // namespace
}  // namespace tern::parallel
