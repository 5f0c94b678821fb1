// Memory of simulated GPUs: limits, counters, reuse in stream order, pinned memory, closed pages, copies.
#include <csignal>

#include "sim_testing.h"

namespace tern {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(SimMemory, CountersAndIdentity) {
  const SimulatedGpus gpus;
  EXPECT_EQ(cuda::memory_allocated(1), 0u);
  const Tensor x = ones({1024, 256}, {.device = kGpu1});
  EXPECT_EQ(cuda::memory_allocated(1), kMiB);
  EXPECT_EQ(cuda::memory_allocated(0), 0u);
  const uint64_t served = cuda::memory_stats(1).num_allocations;
  EXPECT_TRUE(x.cuda(1).is_same(x));
  EXPECT_TRUE(x.to("cuda:1").is_same(x));
  EXPECT_TRUE(x.to(kGpu1, float32).is_same(x));
  EXPECT_EQ(cuda::memory_stats(1).num_allocations, served) << "no copy, no new memory";
  {
    const Tensor copy = x.to(kGpu1, {.copy = true});
    EXPECT_FALSE(copy.is_same(x));
    EXPECT_EQ(cuda::memory_allocated(1), 2 * kMiB);
  }
  EXPECT_EQ(cuda::memory_allocated(1), kMiB);
  EXPECT_EQ(cuda::max_memory_allocated(1), 2 * kMiB);
  EXPECT_GE(cuda::memory_reserved(1), 2 * kMiB);
  cuda::reset_peak_memory_stats(1);
  EXPECT_EQ(cuda::max_memory_allocated(1), kMiB);
  const auto [free, total] = cuda::mem_get_info(1);
  EXPECT_EQ(total, uint64_t{4} << 30);
  EXPECT_EQ(free, total - cuda::memory_reserved(1));
  EXPECT_THAT(cuda::memory_summary(1),
              ::testing::AllOf(::testing::HasSubstr("memory of cuda:1"), ::testing::HasSubstr("1.0 MiB"),
                               ::testing::ContainsRegex("cached  *\\|  *[0-9.]* [KMG]?i?B \\|  *\\|")));
}

TEST(SimMemory, RunsOutAndGoesOn) {
  const SimulatedGpus gpus({.gpus = 2, .memory = 8 * kMiB});
  std::vector<Tensor> kept;
  for (int round = 0; round < 100; ++round) {
    kept.clear();
    try {
      while (true) kept.push_back(ones({int64_t(kMiB / 4)}, {.device = kGpu0}));
    } catch (const OutOfMemoryError& error) {
      EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("out of memory on cuda:0"),
                                                 ::testing::HasSubstr("tried to allocate 1048576 bytes"),
                                                 ::testing::HasSubstr("reserved 8388608 bytes")));
    }
    ASSERT_EQ(kept.size(), 8u) << round;
    EXPECT_NO_THROW(ones({int64_t(kMiB / 4)}, {.device = kGpu1})) << "the other device has memory of its own";
  }
  EXPECT_EQ(cuda::memory_stats(0).num_ooms, 100u);
}

TEST(SimMemory, FractionOfTheDevice) {
  const SimulatedGpus gpus({.gpus = 1, .memory = 64 * kMiB});
  cuda::set_per_process_memory_fraction(0.25);
  EXPECT_THROW(zeros({int64_t(20 * kMiB)}, {.dtype = uint8, .device = kGpu0}), OutOfMemoryError);
  EXPECT_NO_THROW(zeros({int64_t(16 * kMiB)}, {.dtype = uint8, .device = kGpu0}));
  cuda::set_per_process_memory_fraction(1);
  EXPECT_NO_THROW(zeros({int64_t(20 * kMiB)}, {.dtype = uint8, .device = kGpu0}));
  expect_error<ValueError>([] { cuda::set_per_process_memory_fraction(1.5); }, "from 0 to 1, got 1.5");
}

TEST(SimMemory, CachedMemoryOfOtherStreamsIsGivenBackBeforeItFails) {
  const SimulatedGpus gpus({.gpus = 1, .memory = 64 * kMiB});
  {
    const StreamGuard guard(new_stream(kGpu0));
    zeros({int64_t(48 * kMiB)}, {.dtype = uint8, .device = kGpu0});
  }
  EXPECT_EQ(cuda::memory_reserved(), 48 * kMiB);
  EXPECT_NO_THROW(zeros({int64_t(60 * kMiB)}, {.dtype = uint8, .device = kGpu0}));
  cuda::empty_cache();
  EXPECT_EQ(cuda::memory_reserved(), 0u);
  EXPECT_EQ(cuda::mem_get_info().first, 64 * kMiB);
}

TEST(SimMemory, BlocksAreReusedInStreamOrder) {
  const SimulatedGpus gpus({.gpus = 1, .latency = 0.01});
  const Stream side = new_stream(kGpu0);
  Tensor x = ones({int64_t(kMiB)}, {.device = kGpu0});
  const void* address = x.data_ptr();
  x = {};
  const Tensor again = ones({int64_t(kMiB)}, {.device = kGpu0});
  EXPECT_EQ(again.data_ptr(), address) << "the same stream reuses it at once, although its work still runs";
  const StreamGuard guard(side);
  const Tensor other = ones({int64_t(kMiB)}, {.device = kGpu0});
  EXPECT_NE(other.data_ptr(), address) << "another stream has memory of its own";
}

TEST(SimMemory, RecordStreamDelaysReuse) {
  const SimulatedGpus gpus({.gpus = 1, .latency = 0.02});
  const Stream side = new_stream(kGpu0);
  Tensor x = ones({int64_t(kMiB)}, {.device = kGpu0});
  const void* address = x.data_ptr();
  side.wait_stream(current_stream(kGpu0));
  Tensor y;
  {
    const StreamGuard guard(side);
    y = x + 1;
  }
  x.record_stream(side);
  x = {};
  EXPECT_THAT(cuda::memory_snapshot()[0].blocks,
              ::testing::Contains(::testing::Field(&MemoryBlock::state, MemoryBlock::State::AwaitingEvents)));
  EXPECT_NE(empty({int64_t(kMiB)}, {.device = kGpu0}).data_ptr(), address);
  side.synchronize();
  EXPECT_EQ(empty({int64_t(kMiB)}, {.device = kGpu0}).data_ptr(), address);
}

TEST(SimMemory, PinnedMemory) {
  const SimulatedGpus gpus;
  const Tensor x = arange(6, {.dtype = float32, .device = kCPU}).view({2, 3}).t();
  EXPECT_FALSE(x.is_pinned());
  const Tensor pinned = x.pin_memory();
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_EQ(pinned.device(), kCPU);
  EXPECT_TRUE(pinned.pin_memory().is_same(pinned));
  EXPECT_EQ(pinned.to_vector<float>(), x.to_vector<float>());
  const Tensor there = pinned.to(kGpu1, {.non_blocking = true});
  EXPECT_EQ(there.to_vector<float>(), x.to_vector<float>());
  expect_error<DeviceError>([&] { there.pin_memory(); }, "cannot pin a tensor on cuda:1");
}

TEST(SimMemory, PinnedMemoryOutlivesTheCopiesThatReadIt) {
  const SimulatedGpus gpus({.gpus = 1, .h2d = 50e6, .check_races = true});
  std::vector<Tensor> there;
  for (int i = 0; i < 8; ++i) {
    const Tensor pinned = full({int64_t(kMiB / 8)}, i, {.dtype = float32, .device = kCPU}).pin_memory();
    there.push_back(pinned.to(kGpu0, {.non_blocking = true}));
  }
  for (int i = 0; i < 8; ++i) EXPECT_EQ(there[size_t(i)].mean().item<float>(), static_cast<float>(i));
}

TEST(SimMemory, CopiesOfEverySizeAndDirection) {
  const SimulatedGpus gpus;
  for (const int64_t n : {0, 1, 1000, 1 << 20, (5 << 20) + 3}) {
    const Tensor x = arange(n, {.dtype = int32, .device = kCPU});
    const Tensor a = x.to(kGpu0), b = a.to(kGpu1), c = b.to(kGpu0), d = c.cpu();
    EXPECT_EQ(b.device(), kGpu1);
    EXPECT_EQ(d.device(), kCPU);
    EXPECT_EQ(d.to_vector<int32_t>(), x.to_vector<int32_t>()) << n;
  }
  const Tensor part = arange(20, {.device = kGpu0}).view({4, 5}).slice(1, 1, 3);
  EXPECT_EQ(part.to(kGpu1).to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 6, 7, 11, 12, 16, 17}));
  Tensor target = zeros({4, 2}, {.device = kGpu1});
  target.copy_(part);
  EXPECT_EQ(target.sum().item<float>(), 72);
}

TEST(SimMemoryDeathTest, ClosedPagesStopTheHost) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::signal(SIGSEGV, SIG_DFL);
        simulate_gpus({.gpus = 1, .closed_pages = true});
        const Tensor x = ones({4}, {.device = kGpu0});
        if (x.sum().item<float>() != 4) std::_Exit(3);
        const volatile float* hidden = static_cast<float*>(x.data_ptr());
        std::_Exit(hidden[0] == 1 ? 1 : 2);
      },
      ::testing::KilledBySignal(SIGSEGV), "");
}

TEST(SimMemory, ClosedPagesAreOpenForKernelsAndCopies) {
  const SimulatedGpus gpus({.gpus = 2, .closed_pages = true, .check_races = true});
  const Tensor x = arange(1000, {.device = kGpu0}), y = x.to(kGpu1) * 2;
  EXPECT_EQ((y.to(kGpu0) - x).sum().item<int64_t>(), 499500);
}

}  // namespace
}  // namespace tern
