// Recorded steps over several devices and streams. What one device does is in tests/train/capture_test.cpp.
#include "tern/device/capture.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "tern/nn/containers.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/parallel/data_parallel.h"
#include "tern/parallel/sync_batch_norm.h"
#include "tests/parallel/parallel_testing.h"
#include "tests/support/emulated.h"

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
    nn::Sequential net{nn::Linear(5, 7), nn::Linear(7, 3)};
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

TEST_F(CaptureTest, ReplicasHaveTheWeightsOfEachReplay) {
  nn::Linear layer(1, 1, {.bias = false});
  layer.to("cuda:0");
  const auto set_weight = [&](double value) {
    NoGradGuard no_grad;
    layer.weight.fill_(value);
  };
  set_weight(1);
  DataParallel model(layer);
  const Tensor x = ones({4, 1}, {.device = "cuda:0"});
  Tensor y;
  CapturedStep step = capture([&] {
    NoGradGuard no_grad;
    y = model(x);
  });
  for (const float value : {5.f, 7.f}) {
    set_weight(value);
    step.replay();
    EXPECT_EQ(y.to_vector<float>(), std::vector<float>(4, value));
  }
  const Tensor now = model(x);
  set_weight(9);
  step.replay();
  EXPECT_EQ(now.to_vector<float>(), std::vector<float>(4, 7)) << "replays leave other calls alone";
  EXPECT_EQ(model(x).to_vector<float>(), std::vector<float>(4, 9));
}

TEST_F(CaptureTest, EventsAreRecordedByEachReplay) {
  if (!env_text("TERN_LOGICAL_GPUS")) simulate_gpus({.gpus = 1, .check_races = true});
  Tensor x = ones({1000}, {.device = "cuda:0"}), y = zeros_like(x);
  const Stream side = new_stream("cuda:0");
  Event done;
  CapturedStep step = capture([&] {
    y.copy_(x * 3);
    done.record(current_stream("cuda:0"));
  });
  for (int i = 2; i < 5; ++i) {
    x.fill_(i);
    step.replay();
    side.wait_event(done);
    const StreamGuard guard(side);
    EXPECT_EQ((y + 1).sum().item<float>(), 1000 * (3 * i + 1));
    current_stream("cuda:0").synchronize();
  }
}

TEST_F(CaptureTest, AStepCanGoWhileOthersWork) {
  std::atomic<bool> stop = false;
  std::thread other([&] {
    const StreamGuard guard(new_stream("cuda:0"));
    const int64_t n = testing::is_emulated(Device("cuda:0")) ? 8 : 64;
    const Tensor a = ones({n, n}, {.device = "cuda:0"});
    std::vector<Event> events(4);
    for (size_t i = 0; !stop; ++i) {  // a few products are always queued
      events[i % 4].synchronize();
      a.matmul(a);
      events[i % 4].record(current_stream("cuda:0"));
    }
  });
  Tensor x = ones({10}, {.device = "cuda:0"});
  for (int i = 0; i < 5; ++i) capture([&] { x.mul_(1); }).replay();
  stop = true;
  other.join();
}

TEST_F(CaptureTest, ReplicasThatMeetAreRecorded) {
  auto run = [&](bool captured) {
    manual_seed(3);
    nn::Sequential net{nn::Linear(5, 7), nn::BatchNorm1d(7), nn::Linear(7, 3)};
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
