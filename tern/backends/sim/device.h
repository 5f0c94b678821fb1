// One simulated GPU: its memory, its streams, and the faults that it was told to have.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "tern/backends/sim/memory.h"
#include "tern/backends/sim/stream.h"
#include "tern/device/launch.h"
#include "tern/device/simulation.h"

namespace tern::sim {

class RaceDetector;

/// Streams of one device: the default one and the pool.
inline constexpr uint16_t kNumStreams = 33;

class SimDevice final : MemorySource {
 public:
  /// `threads`: CPU threads that a kernel on this device may use; `races`, or null, is told of memory that is
  /// given back.
  SimDevice(int index, const SimulationOptions& options, int threads, RaceDetector* races);

  Storage allocate(size_t nbytes, uint16_t stream);
  CachingAllocator& allocator() noexcept { return allocator_; }
  DeviceMemory& memory() noexcept { return memory_; }
  int threads() const noexcept { return threads_; }

  /// The stream of this number; its thread starts with the first call. Throws DeviceError where the thread
  /// was left behind by fork().
  SimStream& stream(uint16_t id);
  /// The same, or null when this process has not used it yet.
  SimStream* find_stream(uint16_t id) noexcept {
    SimStream* there = streams_[id].load(std::memory_order_acquire);
    return there && there->has_thread() ? there : nullptr;
  }
  /// Blocks until all streams have done or skipped their work; throws nothing.
  void drain();
  /// Ends the threads of all streams.
  void stop();

  /// What the next launch or copy is to suffer, decided where it is queued, so that it is always the same
  /// one.
  enum class Fate : uint8_t { Runs, Fails, LosesDevice };
  Fate next_launch() noexcept;
  Fate next_copy() noexcept;
  /// Called at the start of a task: throws DeviceError when its fate is to fail or the device is lost.
  void meet(Fate fate, const char* what);

 private:
  void* allocate_segment(size_t nbytes) noexcept override { return memory_.take(nbytes); }
  void free_segment(void* segment, size_t nbytes) noexcept override;
  size_t segment_granularity() const noexcept override { return size_t{2} << 20; }
  size_t cache_limit() const noexcept override { return ~size_t{0}; }
  std::shared_ptr<EventRecord> fence(Stream stream) override;

  bool has_fault(SimulatedFault::Kind kind, uint64_t number) const noexcept;
  [[noreturn]] void throw_lost() const;

  const int index_;
  const SimulationOptions& options_;
  const int threads_;
  RaceDetector* const races_;
  DeviceMemory memory_;
  CachingAllocator allocator_;
  std::mutex streams_mutex_;
  std::array<std::unique_ptr<SimStream>, kNumStreams> owned_streams_;
  std::array<std::atomic<SimStream*>, kNumStreams> streams_{};
  std::atomic<uint64_t> launches_{0};
  std::atomic<uint64_t> copies_{0};
  std::atomic<uint64_t> allocations_{0};
  std::atomic<bool> lost_{false};
};

}  // namespace tern::sim
