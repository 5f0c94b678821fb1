// Streams and events of simulated GPUs: what runs when, and what waits for what.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "sim_testing.h"

namespace tern {
namespace {

double seconds_of(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(SimStream, TheHostDoesNotWaitForKernels) {
  const SimulatedGpus gpus({.gpus = 1, .latency = 0.1});
  Tensor x = ones({4}, {.device = kGpu0});
  cuda::synchronize();
  const double queued = seconds_of([&] {
    for (int i = 0; i < 5; ++i) x = x + 1;
  });
  EXPECT_LT(queued, 0.25);
  EXPECT_FALSE(current_stream(kGpu0).query());
  EXPECT_GT(seconds_of([&] { EXPECT_EQ(x.sum().item<float>(), 24); }), 0.3);
  EXPECT_TRUE(current_stream(kGpu0).query());
}

TEST(SimStream, DevicesRunAtTheSameTime) {
  const SimulatedGpus gpus({.gpus = 2, .latency = 0.2});
  const Tensor a = ones({4}, {.device = kGpu0}), b = ones({4}, {.device = kGpu1});
  synchronize(kGpu0);
  synchronize(kGpu1);
  EXPECT_LT(seconds_of([&] {
              const Tensor c = a + a, d = b + b;
              synchronize(kGpu0);
              synchronize(kGpu1);
            }),
            0.38);
}

TEST(SimStream, AForkedProcessIsToldThatItHasNone) {
  const SimulatedGpus gpus({.gpus = 1});
  Tensor x = ones({4}, {.device = kGpu0});
  cuda::synchronize();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    int refused = 0;
    for (const auto& use :
         {std::function<void()>([&] { x.add_(1); }), std::function<void()>([&] { x.cpu(); })})
      try {
        use();
      } catch (const DeviceError& error) {
        refused += std::string(error.what()).find("forked") != std::string::npos;
      }
    synchronize(kGpu0);
    ::_exit(refused);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_EQ(x.sum().item<float>(), 4);
}

TEST(SimStream, GuardsAndTheirEnds) {
  const SimulatedGpus gpus;
  const Stream first = current_stream(kGpu1), side = new_stream(kGpu1);
  EXPECT_EQ(first, cuda::default_stream(1));
  EXPECT_NE(side, first);
  EXPECT_NE(side, new_stream(kGpu1));
  EXPECT_EQ(new_stream(kCPU), current_stream(kCPU));
  EXPECT_EQ(cuda::Stream(kGpu0).device, kGpu0);
  {
    const StreamGuard guard(side);
    EXPECT_EQ(current_stream(kGpu1), side);
    EXPECT_EQ(cuda::current_device(), 1);
    EXPECT_EQ(current_stream(kGpu0), cuda::default_stream(0));
    std::thread([&] { EXPECT_EQ(current_stream(kGpu1), first); }).join();
  }
  EXPECT_EQ(current_stream(kGpu1), first);
  EXPECT_EQ(cuda::current_device(), 0);
  {
    const StreamGuard guard(Stream{Device("cuda"), 3});
    EXPECT_EQ(current_stream(kGpu0), (Stream{kGpu0, 3}));
  }
  EXPECT_EQ(current_stream(kGpu0), cuda::default_stream(0));
  expect_error<DeviceError>([] { Stream{kGpu0, 1000}.wait_stream({kGpu0, 0}); }, "stream 1000 of cuda:0");
  expect_error<DeviceError>([] { new_stream("cuda:7"); }, "device cuda:7 is not available");
}

TEST(SimStream, WaitStreamOrders) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const SimulatedGpus gpus({.gpus = 1, .jitter = seed, .check_races = true});
    const Stream main = current_stream(kGpu0), side = new_stream(kGpu0);
    Tensor x = zeros({1000}, {.device = kGpu0});
    for (int i = 0; i < 5; ++i) {
      side.wait_stream(main);
      {
        const StreamGuard guard(side);
        x.add_(1);
      }
      main.wait_stream(side);
      x.mul_(2);
    }
    EXPECT_EQ(x.max().item<float>(), 62) << seed;
    EXPECT_EQ(x.min().item<float>(), 62) << seed;
  }
}

TEST(SimEvent, AWaitKeepsTheRecordingThatItWasCalledWith) {
  const SimulatedGpus gpus({.gpus = 1, .latency = 0.3});
  const Stream main = current_stream(kGpu0), side = new_stream(kGpu0);
  Event event;
  event.record(main);
  side.wait_event(event);
  const Tensor slow = ones({4}, {.device = kGpu0});  // the main stream is busy from here on
  event.record(main);
  EXPECT_LT(seconds_of([&] { side.synchronize(); }), 0.25) << "it waits for the first recording alone";
  EXPECT_FALSE(event.query());
  event.synchronize();
  EXPECT_TRUE(event.query());
}

TEST(SimEvent, Times) {
  const SimulatedGpus gpus({.gpus = 1, .latency = 0.01});
  Event begin({.enable_timing = true}), end({.enable_timing = true}), untimed;
  expect_error<ValueError>([&] { begin.elapsed_time(end); }, "both events must be recorded");
  begin.record();
  Tensor x = ones({4}, {.device = kGpu0});
  x = x + x;
  end.record(current_stream(kGpu0));
  expect_error<ValueError>([&] { begin.elapsed_time(end); }, "both events must be completed");
  end.synchronize();
  EXPECT_GE(begin.elapsed_time(end), 19);
  EXPECT_LT(begin.elapsed_time(end), 5000);
  untimed.record();
  expect_error<ValueError>([&] { begin.elapsed_time(untimed); }, "enable_timing");
  EXPECT_TRUE(Event().query());
  EXPECT_NO_THROW(Event().synchronize());
}

TEST(SimEvent, OnTheCpuItIsAMoment) {
  Event begin({.enable_timing = true}), end({.enable_timing = true});
  begin.record(current_stream(kCPU));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  end.record(current_stream(kCPU));
  EXPECT_TRUE(end.query());
  EXPECT_GE(begin.elapsed_time(end), 5);
}

TEST(SimStream, ModelledCosts) {
  const SimulatedGpus gpus({.gpus = 1, .h2d = 100e6, .d2h = 50e6});
  const Tensor host = zeros({1 << 20}, {.dtype = uint8, .device = kCPU});
  Tensor there = host.to(kGpu0);
  cuda::synchronize();
  const double up = seconds_of([&] {
    there = host.to(kGpu0);
    cuda::synchronize();
  });
  EXPECT_GT(up, 0.0104);
  const double down = seconds_of([&] { there.cpu(); });
  EXPECT_GT(down, 0.0209);
}

TEST(SimStream, ManyTasksBetweenWaits) {
  const SimulatedGpus gpus;
  Tensor x = zeros({1}, {.dtype = int64, .device = kGpu0});
  for (int i = 0; i < 20000; ++i) x.add_(1);
  EXPECT_EQ(x.item<int64_t>(), 20000);
}

TEST(SimStream, SeveralHostThreads) {
  const SimulatedGpus gpus({.gpus = 2, .jitter = 5});
  std::vector<std::thread> threads;
  std::vector<float> sums(4);
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const StreamGuard guard(new_stream(Device(static_cast<int>(t % 2))));
      Tensor x = zeros({100}, {.device = "cuda"});
      for (int i = 0; i < 50; ++i) x = x + static_cast<double>(t);
      sums[t] = x.sum().item<float>();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(sums, ::testing::ElementsAre(0, 5000, 10000, 15000));
}

TEST(Backward, RunsOnTheStreamsOfTheForward) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const SimulatedGpus gpus({.gpus = 2, .jitter = seed, .check_races = true});
    const Tensor w = full({64}, 3.0, {.device = kGpu0, .requires_grad = true});
    const Stream main = current_stream(kGpu0), side = new_stream(kGpu0);
    side.wait_stream(main);
    Tensor y;
    {
      const StreamGuard guard(side);
      y = w * w;
    }
    main.wait_stream(side);
    y.record_stream(main);
    const Tensor z = (y * w).to(kGpu1) + w.to(kGpu1);
    z.sum().backward();
    EXPECT_EQ(w.grad().device(), kGpu0);
    EXPECT_THAT(w.grad().to_vector<float>(), ::testing::Each(28.0f)) << seed;
  }
}

}  // namespace
}  // namespace tern
