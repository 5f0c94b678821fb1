// Long training on four small GPUs with batches of random sizes: memory stays flat, running out of it is
// survived, nothing hangs. 2000 steps, or as many as TERN_SOAK_STEPS says.
#include <array>
#include <random>

#include "parallel_testing.h"
#include "tern/base/env.h"
#include "tern/parallel/data_parallel.h"

namespace tern::parallel {
namespace {

constexpr uint64_t kMemory = uint64_t{256} << 20;
/// What the blocks of a few large tensors may be larger than what was asked for.
constexpr uint64_t kSlack = uint64_t{512} << 10;

uint64_t total(uint64_t (*counter)(std::optional<Device>)) {
  uint64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += counter(Device(i));
  return sum;
}

TEST(Soak, MemoryStaysFlatAndRunningOutIsSurvived) {
  const int64_t steps = env_int("TERN_SOAK_STEPS", 100, 10'000'000).value_or(2000);
  const int64_t hunger = std::max<int64_t>(1, steps / 100);  // out of memory a hundred times
  simulate_gpus({.gpus = 4, .memory = kMemory});
  {
    manual_seed(1);
    DataParallel<nn::LeNet> model{nn::LeNet()};
    model.to("cuda:0");
    optim::SGD optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9});
    std::mt19937 random(7);
    const Tensor pictures = randn({64, 1, 28, 28}, {.device = kCPU}),
                 labels = randint(0, 10, {64}, {.device = kCPU});
    const auto step = [&](int64_t rows) {
      optimizer.zero_grad();
      const Tensor output = model(pictures.slice(0, 0, rows));
      nn::cross_entropy(output, labels.slice(0, 0, rows).to("cuda:0")).backward();
      optimizer.step();
    };
    int64_t out_of_memory = 0;
    uint64_t steady = 0;
    std::array<uint64_t, 4> reserved{};  // the most in each quarter of the run
    for (int64_t i = 0; i < steps; ++i) {
      step(1 + static_cast<int64_t>(random() % 64));
      if (i % hunger == hunger - 1) {
        for (const Device& device : first_gpus(4)) synchronize(device);
        uint64_t& most = reserved[static_cast<size_t>(4 * i / steps)];
        most = std::max(most, total(cuda::memory_reserved));
        // One device has no memory left in the middle of a step.
        std::vector<Tensor> hogs;
        const Device full(static_cast<int>(random() % 4));
        for (int64_t size = kMemory; size >= 64; size /= 2) try {
            while (true) hogs.push_back(empty({size}, {.dtype = uint8, .device = full}));
          } catch (const OutOfMemoryError&) {
          }
        try {
          step(64);
        } catch (const OutOfMemoryError&) {
          ++out_of_memory;
        }
        hogs.clear();
        step(64);
        optimizer.zero_grad();
        for (const Device& device : first_gpus(4)) synchronize(device);
        cuda::empty_cache();
        const uint64_t allocated = total(cuda::memory_allocated);
        if (steady == 0) steady = allocated;
        EXPECT_LE(allocated, steady + kSlack) << "step " << i;
      }
    }
    EXPECT_GE(out_of_memory, 100);
    EXPECT_LE(reserved[3], std::max(reserved[0], reserved[1]) * 11 / 10) << "reserved memory grows";
    for (int i = 0; i < 4; ++i) EXPECT_GT(cuda::memory_stats(Device(i)).num_ooms, 0u) << i;
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(cuda::memory_allocated(Device(i)), 0u) << i;
  simulate_gpus({.gpus = 0});
}

}  // namespace
}  // namespace tern::parallel
