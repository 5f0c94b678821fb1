// The caching allocator over a source of limited memory: reuse, merging, counters, running out.
#include "tern/device/caching_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tern/base/error.h"
#include "tern/device/registry.h"

namespace tern {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

/// Gives segments up to a limit, and counts.
class LimitedSource final : public MemorySource {
 public:
  explicit LimitedSource(size_t limit, size_t cached = ~size_t{0}, size_t granularity = 2 * kMiB)
      : limit_(limit), cached_(cached), granularity_(granularity) {}
  void* allocate_segment(size_t nbytes) noexcept override {
    EXPECT_EQ(nbytes % segment_granularity(), 0u);
    if (held + nbytes > limit_) return nullptr;
    held += nbytes;
    return std::aligned_alloc(4096, (nbytes + 4095) / 4096 * 4096);
  }
  void free_segment(void* segment, size_t nbytes) noexcept override {
    held -= nbytes;
    std::free(segment);
  }
  size_t segment_granularity() const noexcept override { return granularity_; }
  size_t cache_limit() const noexcept override { return cached_; }

  size_t held = 0;

 private:
  size_t limit_;
  size_t cached_;
  size_t granularity_;
};

TEST(CachingAllocator, BlocksAreAlignedAndTheirOwn) {
  LimitedSource source(256 * kMiB);
  CachingAllocator allocator(source, kCPU);
  std::vector<Storage> blocks;
  for (size_t nbytes : {0, 1, 63, 64, 65, 1000, 1024, 1025, 5000, 65536, 65537, 100000, 3000000}) {
    blocks.push_back(allocator.allocate(nbytes));
    EXPECT_EQ(blocks.back()->nbytes(), nbytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back()->data()) % 64, 0u) << nbytes;
    std::memset(blocks.back()->data(), static_cast<int>(blocks.size()), nbytes);
  }
  for (size_t b = 0; b < blocks.size(); ++b)
    for (size_t i = 0; i < blocks[b]->nbytes(); ++i)
      ASSERT_EQ(static_cast<unsigned char*>(blocks[b]->data())[i], b + 1);
}

TEST(CachingAllocator, FreedMemoryIsUsedAgain) {
  LimitedSource source(256 * kMiB);
  CachingAllocator allocator(source, kCPU);
  for (size_t nbytes : {size_t{100}, size_t{5000}, 3 * kMiB}) {
    void* first = allocator.allocate(nbytes)->data();
    EXPECT_EQ(allocator.allocate(nbytes)->data(), first) << nbytes;
    const uint64_t before = allocator.stats().num_system_allocations;
    for (int i = 0; i < 100; ++i) allocator.allocate(nbytes);
    EXPECT_EQ(allocator.stats().num_system_allocations, before) << nbytes;
  }
}

TEST(CachingAllocator, Counters) {
  LimitedSource source(256 * kMiB);
  CachingAllocator allocator(source, kCPU);
  EXPECT_EQ(allocator.stats().reserved, 0u);
  Storage a = allocator.allocate(100), b = allocator.allocate(3 * kMiB);
  MemoryStats stats = allocator.stats();
  EXPECT_EQ(stats.allocated, 128 + 3 * kMiB) << "in whole blocks";
  EXPECT_EQ(stats.num_allocations, 2u);
  EXPECT_EQ(stats.reserved, source.held);
  EXPECT_EQ(stats.num_system_allocations, 2u);
  b = {};
  stats = allocator.stats();
  EXPECT_EQ(stats.allocated, 128u);
  EXPECT_EQ(stats.max_allocated, 128 + 3 * kMiB);
  EXPECT_EQ(stats.reserved, source.held) << "what is free stays cached";
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().reserved, 2 * kMiB) << "the segment of the live block stays";
  EXPECT_EQ(source.held, 2 * kMiB);
  a = {};
  allocator.empty_cache();
  EXPECT_EQ(source.held, 0u);
  EXPECT_EQ(allocator.stats().allocated, 0u);
  EXPECT_EQ(allocator.stats().max_reserved, 6 * kMiB);
}

TEST(CachingAllocator, SlabsWithoutLiveBlocksGoBack) {
  LimitedSource source(256 * kMiB);
  CachingAllocator allocator(source, kCPU);
  std::vector<Storage> blocks;
  for (int i = 0; i < 64 * 1024; ++i) blocks.push_back(allocator.allocate(1000));
  EXPECT_EQ(source.held, 64 * kMiB);
  const Storage kept = blocks[40000];
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937(1));
  blocks.clear();
  allocator.empty_cache();
  EXPECT_EQ(source.held, 2 * kMiB) << "the segment of the live block";
  for (int i = 0; i < 1023; ++i) blocks.push_back(allocator.allocate(1000));
  EXPECT_EQ(source.held, 2 * kMiB) << "the free blocks beside it are still known";
}

TEST(CachingAllocator, AForkedProcessAllocatesWhateverOtherThreadsDid) {
  Backend& cpu = backend_of(DeviceType::CPU);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) cpu.allocate(1000, kCPU);
  });
  int status = 0;
  for (int i = 0; i < 50 && status == 0; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(10);
      cpu.allocate(1000, kCPU);
      ::_exit(0);
    }
    ::waitpid(child, &status, 0);
  }
  stop = true;
  other.join();
  EXPECT_EQ(status, 0);
}

TEST(CachingAllocator, NeighboursAreMerged) {
  LimitedSource source(8 * kMiB);
  CachingAllocator allocator(source, kCPU);
  const void* whole = allocator.allocate(8 * kMiB)->data();
  for (int order = 0; order < 3; ++order) {
    std::vector<Storage> parts;
    for (int i = 0; i < 8; ++i) parts.push_back(allocator.allocate(kMiB));
    EXPECT_EQ(source.held, 8 * kMiB);
    if (order == 1) std::reverse(parts.begin(), parts.end());
    if (order == 2) std::shuffle(parts.begin(), parts.end(), std::mt19937(1));
    for (Storage& part : parts) part = {};
    EXPECT_EQ(allocator.allocate(8 * kMiB)->data(), whole) << order;
  }
}

TEST(CachingAllocator, BestFit) {
  LimitedSource source(64 * kMiB);
  CachingAllocator allocator(source, kCPU);
  Storage large = allocator.allocate(8 * kMiB), fence = allocator.allocate(2 * kMiB),
          small = allocator.allocate(4 * kMiB);
  const void* address = small->data();
  large = {};
  small = {};
  EXPECT_EQ(allocator.allocate(3 * kMiB)->data(), address);
}

TEST(CachingAllocator, CachedMemoryGoesBackBeforeItFails) {
  LimitedSource source(8 * kMiB);
  CachingAllocator allocator(source, kCPU);
  { Storage a = allocator.allocate(2 * kMiB), b = allocator.allocate(2 * kMiB), c = allocator.allocate(100); }
  EXPECT_EQ(source.held, 6 * kMiB);
  const Storage all = allocator.allocate(8 * kMiB);
  EXPECT_EQ(source.held, 8 * kMiB);
}

TEST(CachingAllocator, KeepsNoMoreThanTheLimit) {
  LimitedSource source(64 * kMiB, /*cached=*/4 * kMiB);
  CachingAllocator allocator(source, kCPU);
  { Storage a = allocator.allocate(10 * kMiB), b = allocator.allocate(2 * kMiB); }
  EXPECT_LE(source.held, 4 * kMiB);
}

TEST(CachingAllocator, WithoutCachingEveryBlockIsASegmentOfItsSize) {
  LimitedSource source(256 * kMiB, /*cached=*/0, /*granularity=*/1);
  CachingAllocator allocator(source, kCPU);
  for (size_t nbytes : {size_t{0}, size_t{1}, size_t{100}, 3 * kMiB + 1}) {
    const Storage block = allocator.allocate(nbytes);
    EXPECT_EQ(source.held, std::max<size_t>(nbytes, 1));
    EXPECT_EQ(allocator.stats().reserved, source.held);
  }
  EXPECT_EQ(source.held, 0u);
}

TEST(CachingAllocator, OutOfMemorySaysAllAndTheProcessGoesOn) {
  LimitedSource source(8 * kMiB);
  CachingAllocator allocator(source, Device(DeviceType::CUDA, 1));
  Storage kept = allocator.allocate(3 * kMiB);
  try {
    allocator.allocate(7 * kMiB);
    ADD_FAILURE() << "no error was thrown";
  } catch (const OutOfMemoryError& error) {
    EXPECT_STREQ(
        error.what(),
        "out of memory on cuda:1: tried to allocate 7340032 bytes; in use 3145728 bytes, reserved 4194304 "
        "bytes, cached and free 1048576 bytes (the largest free block has 1048576 bytes). Use smaller "
        "batches, or free tensors that are no longer needed");
  }
  EXPECT_NO_THROW(allocator.allocate(4 * kMiB));
  kept = {};
  EXPECT_NO_THROW(allocator.allocate(7 * kMiB));
}

TEST(CachingAllocator, ImpossibleSizes) {
  LimitedSource source(8 * kMiB);
  CachingAllocator allocator(source, kCPU);
  for (size_t nbytes : {~size_t{0}, ~size_t{0} - 4095, size_t{1} << 63, (size_t{1} << 62) + 1})
    EXPECT_THROW(allocator.allocate(nbytes), OutOfMemoryError) << nbytes;
}

TEST(CachingAllocator, RandomUse) {
  LimitedSource source(512 * kMiB);
  CachingAllocator allocator(source, kCPU);
  std::mt19937 random(7);
  std::vector<Storage> live(64);
  for (int step = 0; step < 20000; ++step) {
    Storage& slot = live[random() % live.size()];
    if (slot) {
      const auto* data = static_cast<const uint32_t*>(slot->data());
      ASSERT_EQ(data[0], data[slot->nbytes() / 4 - 1]);
      ASSERT_EQ(data[0], static_cast<uint32_t>(slot->nbytes()));
      slot = {};
    } else {
      const size_t nbytes = 4 * (1 + random() % (random() % 8 == 0 ? kMiB / 2 : 5000));
      slot = allocator.allocate(nbytes);
      auto* data = static_cast<uint32_t*>(slot->data());
      data[0] = data[nbytes / 4 - 1] = static_cast<uint32_t>(nbytes);
    }
  }
  live.clear();
  EXPECT_EQ(allocator.stats().allocated, 0u);
  allocator.empty_cache();
  EXPECT_EQ(source.held, 0u);
}

TEST(CachingAllocator, SeveralThreads) {
  LimitedSource source(512 * kMiB);
  CachingAllocator allocator(source, kCPU);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Storage> live(16);
      for (int step = 0; step < 3000; ++step) {
        Storage& slot = live[random() % live.size()];
        slot = allocator.allocate(1 + random() % 200000);
        std::memset(slot->data(), static_cast<int>(t), std::min<size_t>(slot->nbytes(), 64));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator.stats().allocated, 0u);
  EXPECT_EQ(allocator.stats().num_allocations, 12000u);
}

}  // namespace
}  // namespace tern
