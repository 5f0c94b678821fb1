// Recorded steps over several devices and streams. What one device does is in tests/train/capture_test.cpp.
#include "tern/device/capture.h"

#include <gtest/gtest.h>

#include <optional>

#include "tern/nn/containers.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/parallel/data_parallel.h"
#include "tern/parallel/sync_batch_norm.h"
#include "tests/parallel/parallel_testing.h"

namespace tern::parallel {
namespace {

class CaptureTest : public ParallelTest {};

TEST_F(CaptureTest, StreamsStayInOrder) {
  Tensor x = ones({1000}, {.device = "cuda:0"}), y, z;
  const Stream side = new_stream("cuda:0"), main = current_stream("cuda:0");
  CapturedStep step = capture([&] {
    y = x * 3;
    side.wait_stream(main);
    {
      StreamGuard guard(side);
      z = y + 1;
      y.record_stream(side);
      y = Tensor();
    }
    main.wait_stream(side);
    for (int i = 0; i < 5; ++i) z = z + x;
  });
  for (int i = 0; i < 20; ++i) {
    x.fill_(i);
    step.replay();
    EXPECT_EQ(z.sum().item<float>(), 1000 * (8 * i + 1));
  }
  if (!env_text("TERN_LOGICAL_GPUS")) {
    EXPECT_THROW(simulate_gpus({.gpus = 1}), DeviceError);  // while the step lives
  }
}

TEST_F(CaptureTest, DataParallelAndCopiesAreRecorded) {
  auto run = [&](bool captured) {
    manual_seed(2);
    nn::Sequential net(nn::Linear(5, 7), nn::Linear(7, 3));
    net.to("cuda:0");
    DataParallel model(net);
    optim::SGD sgd(net.parameters(), {.lr = 0.1});
    Tensor x = empty({10, 5}), loss;  // on the host: every replay takes what is there then
    auto step = [&] {
      sgd.zero_grad();
      loss = model(x.to("cuda:0")).pow(2).mean();
      loss.backward();
      sgd.step();
    };
    std::optional<CapturedStep> recorded;
    std::vector<float> losses;
    Generator data(1);
    for (int i = 0; i < 8; ++i) {
      x.copy_(randn({10, 5}, {}, data));
      if (!captured || i < 2)
        step();
      else if (i == 2)
        recorded = capture(step, {.warmup = 0});
      else
        recorded->replay();
      losses.push_back(loss.item<float>());
    }
    return losses;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_F(CaptureTest, ReplicasThatMeetAreRecorded) {
  auto run = [&](bool captured) {
    manual_seed(3);
    nn::Sequential net(nn::Linear(5, 7), nn::BatchNorm1d(7), nn::Linear(7, 3));
    convert_sync_batchnorm_(net);
    net.to("cuda:0");
    DataParallel model(net);
    optim::SGD sgd(net.parameters(), {.lr = 0.1});
    Tensor x = randn({10, 5}), loss;
    auto step = [&] {
      sgd.zero_grad();
      loss = model(x.to("cuda:0")).pow(2).mean();
      loss.backward();
      sgd.step();
    };
    step();
    std::optional<CapturedStep> recorded;
    if (captured) recorded = capture(step, {.warmup = 0});
    std::vector<float> losses;
    for (int i = captured ? 1 : 0; i < 6; ++i) {
      if (captured)
        recorded->replay();
      else
        step();
      losses.push_back(loss.item<float>());
    }
    if (!captured) losses.erase(losses.begin());  // the one that is recorded
    return losses;
  };
  EXPECT_EQ(run(true), run(false));
}

}  // namespace
}  // namespace tern::parallel
