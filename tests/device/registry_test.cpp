// Which devices there are, the CPU backend's properties, and the one launch point's observer.
#include "tern/device/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tern/base/error.h"
#include "tern/device/cuda.h"
#include "tern/device/launch.h"
#include "tern/kernels/list.h"

namespace tern {
namespace {

TEST(Registry, TheCpuIsThere) {
  EXPECT_EQ(available_devices().front(), kCPU);
  Backend& cpu = backend_of(DeviceType::CPU);
  EXPECT_EQ(cpu.name(), "cpu");
  EXPECT_EQ(cpu.type(), DeviceType::CPU);
  EXPECT_TRUE(cpu.runs_at_once());
  EXPECT_EQ(cpu.device_count(), 1);
  const DeviceProperties properties = cpu.properties(0);
  EXPECT_FALSE(properties.name.empty());
  EXPECT_GT(properties.total_memory, uint64_t{1} << 28);
  EXPECT_GE(properties.processors, 1);
  EXPECT_FALSE(properties.simulated);
  for (int k = 0; k < kernels::kCount; ++k) EXPECT_NE(cpu.kernels()[k], nullptr) << k;
  EXPECT_NO_THROW(synchronize(kCPU));
}

TEST(Registry, WithoutAGpu) {
  if (cuda::is_available()) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(cuda::device_count(), 0);
  EXPECT_EQ(available_devices(), std::vector<Device>{kCPU});
  EXPECT_EQ(try_gpu(), kCPU);
  EXPECT_EQ(try_gpu(3), kCPU);
  EXPECT_EQ(try_gpu(-1), kCPU);
  EXPECT_EQ(try_all_gpus(), std::vector<Device>{kCPU});
  try {
    backend_of(DeviceType::CUDA);
    ADD_FAILURE() << "no error was thrown";
  } catch (const DeviceError& error) {
    // Where there is a plugin, its reason follows.
    EXPECT_EQ(std::string(error.what())
                  .find("device cuda is not available: no backend for it is loaded: use the cpu"),
              0u);
  }
  EXPECT_THROW(synchronize("cuda:0"), DeviceError);
  EXPECT_THROW(DeviceGuard("cuda"), DeviceError);
  EXPECT_NO_THROW(DeviceGuard("cpu"));
}

TEST(Registry, MemoryOfNoGpuIsZeroUnlessOneIsNamed) {
  if (cuda::is_available()) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(cuda::memory_stats().num_allocations, 0u);
  using Function = uint64_t (*)(std::optional<Device>);
  const std::pair<const char*, Function> functions[] = {{"memory_allocated", cuda::memory_allocated},
                                                        {"memory_reserved", cuda::memory_reserved},
                                                        {"max_memory_allocated", cuda::max_memory_allocated},
                                                        {"max_memory_reserved", cuda::max_memory_reserved}};
  for (const auto& [name, function] : functions) {
    EXPECT_EQ(function({}), 0u) << name;
    try {
      function("cuda:0");
      ADD_FAILURE() << "no error was thrown by " << name;
    } catch (const DeviceError& error) {
      EXPECT_EQ(std::string(error.what()).find(std::string("cuda::") + name + ": "), 0u) << error.what();
    }
  }
}

TEST(Registry, CountersOfTheCpu) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer's own allocator takes the place of the counting one";
#endif
  Backend& cpu = backend_of(DeviceType::CPU);
  const MemoryStats before = cpu.memory_stats(0);
  const Storage storage = cpu.allocate(1 << 20, kCPU);
  const MemoryStats after = cpu.memory_stats(0);
  EXPECT_EQ(after.allocated, before.allocated + (1 << 20));
  EXPECT_EQ(after.num_allocations, before.num_allocations + 1);
  EXPECT_NO_THROW(cpu.empty_cache(0));
}

class Recorder final : public LaunchObserver {
 public:
  uint64_t started(const Activity& activity) noexcept override {
    EXPECT_EQ(activity.stream.device, kCPU);
    EXPECT_NE(activity.args, nullptr);
    calls.push_back(std::string("started ") + activity.name);
    return 7;
  }
  void ran(uint64_t number, Clock::time_point begin, Clock::time_point end) noexcept override {
    EXPECT_LE(begin, end);
    calls.push_back("ran " + std::to_string(number));
  }
  std::vector<std::string> calls;
};

TEST(Launch, ObserversSeeEveryLaunch) {
  float out[4] = {};
  FillArgs args{.dtype = float32, .value = {3.0, 3}, .out = out, .geometry = {}};
  set_flat(args.geometry, 4);
  Recorder recorder;
  EXPECT_EQ(set_launch_observer(&recorder), nullptr);
  launch(current_stream(kCPU), kernels::fill, args);
  EXPECT_EQ(set_launch_observer(nullptr), &recorder);
  launch(current_stream(kCPU), kernels::fill, args);
  EXPECT_EQ(recorder.calls, (std::vector<std::string>{"started fill", "ran 7"}));
  EXPECT_THAT(out, ::testing::Each(3.0f));
}

TEST(Stream, IsAValue) {
  EXPECT_EQ(current_stream(kCPU), (Stream{kCPU, 0}));
  EXPECT_NE((Stream{kCPU, 0}), (Stream{Device(DeviceType::CUDA, 0), 0}));
}

}  // namespace
}  // namespace tern
