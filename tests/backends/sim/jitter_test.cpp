// Two hundred orders of events: whatever the threads of streams happen to do, the numbers are the CPU's.
// Under ThreadSanitizer the same runs show that no wait is missing, and one that is missing shows that it
// would be seen.
#include <thread>

#include "sim_testing.h"

namespace tern {
namespace {

struct Net : nn::Module {
  nn::Linear first{8, 16}, second{16, 4};
  TERN_MODULE(first, second)
};

/// Three steps of a network that lies on two devices (or on one, twice), with data on their way on streams of
/// their own.
std::vector<float> train(Device front, Device back, const Net& initial) {
  Net net = nn::clone(initial);
  net.first.to(front);
  net.second.to(back);
  optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  const Tensor rows = arange(24 * 8, {.dtype = float32, .device = kCPU}).view({24, 8}) * 0.01;
  data::DataLoaderOptions options;
  options.batch_size = 8;
  options.num_workers = 2;
  options.device = front;
  data::DataLoader loader(data::TensorDataset(rows), std::move(options));
  Tensor total = zeros({}, {.device = back});
  for (auto& batch : loader) {
    optimizer.zero_grad();
    const Tensor hidden = relu(net.first(batch.data));
    Tensor loss;
    if (back.is_cpu()) {
      loss = net.second(hidden).square().mean();
    } else {
      const Stream main = current_stream(back), side = new_stream(back);
      const Tensor arrived = hidden.to(back, {.non_blocking = true});
      side.wait_stream(main);
      {
        const StreamGuard guard(side);
        loss = net.second(arrived).square().mean();
      }
      main.wait_stream(side);
      arrived.record_stream(side);
      loss.record_stream(main);
    }
    loss.backward();
    optimizer.step();
    total.add_(loss.detach());
  }
  std::vector<float> result = net.first.weight.to_vector<float>();
  for (float number : net.second.weight.to_vector<float>()) result.push_back(number);
  result.push_back(total.item<float>());
  return result;
}

TEST(Jitter, TwoHundredSeedsGiveTheNumbersOfTheCpu) {
  manual_seed(3);
  set_default_device(kCPU);
  const Net initial;
  const std::vector<float> expected = train(kCPU, kCPU, initial);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const SimulatedGpus gpus({.gpus = 2, .jitter = seed, .delay = 50e-6, .check_races = seed % 2 == 0});
    ASSERT_EQ(train(kGpu0, kGpu1, initial), expected) << "seed " << seed;
  }
}

#if defined(__SANITIZE_THREAD__)
/// A kernel on a second stream that does not wait for the first one's.
void forget_a_wait(bool forget) {
  simulate_gpus({.gpus = 1, .jitter = 1});
  const Stream side = new_stream(kGpu0);
  for (int i = 0; i < 20; ++i) {
    Tensor x = zeros({4096}, {.device = kGpu0});
    if (!forget) side.wait_stream(current_stream(kGpu0));
    Tensor y;
    {
      const StreamGuard guard(side);
      y = x + 1;
    }
    cuda::synchronize();
  }
  std::exit(0);
}

TEST(ThreadSanitizerDeathTest, SeesAWaitThatIsMissing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(forget_a_wait(true), ::testing::ExitedWithCode(66), "data race");
  EXPECT_EXIT(forget_a_wait(false), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace tern
