// Streams and faults of a simulated GPU.
#include "tern/backends/sim/device.h"

#include "tern/backends/sim/races.h"
#include "tern/base/check.h"
#include "tern/device/registry.h"

namespace tern::sim {
namespace {

bool closes_pages(const SimulationOptions& options) {
#if defined(NDEBUG) || defined(__SANITIZE_THREAD__)
  // Opening and closing takes a lock of the device, which would order its streams under ThreadSanitizer.
  return options.closed_pages.value_or(false);
#else
  return options.closed_pages.value_or(true);
#endif
}

}  // namespace

SimDevice::SimDevice(int index, const SimulationOptions& options, int threads, RaceDetector* races)
    : index_(index),
      options_(options),
      threads_(threads),
      races_(races),
      memory_(options.memory, closes_pages(options)),
      allocator_(*this, Device(DeviceType::CUDA, index)) {}

Storage SimDevice::allocate(size_t nbytes, uint16_t stream) {
  if (lost_.load(std::memory_order_relaxed)) throw_lost();
  const uint64_t number = allocations_.fetch_add(1, std::memory_order_relaxed) + 1;
  TERN_CHECK(!has_fault(SimulatedFault::Kind::Allocation, number), OutOfMemoryError,
             "out of memory on cuda:{}: tried to allocate {} bytes: the simulated GPU was told to refuse "
             "allocation {}",
             index_, nbytes, number);
  return allocator_.allocate(nbytes, stream);
}

SimStream& SimDevice::stream(uint16_t id) {
  if (SimStream* there = find_stream(id)) return *there;
  const std::lock_guard lock(streams_mutex_);
  TERN_CHECK(!owned_streams_[id] || owned_streams_[id]->has_thread(), DeviceError,
             "cuda:{} can not be used in a process that was forked after its first use: start the process "
             "before, or use the cpu there",
             index_);
  if (!owned_streams_[id]) {
    std::optional<Jitter> jitter;
    if (options_.jitter)
      jitter = Jitter{*options_.jitter * 1000003 + static_cast<uint64_t>(index_) * kNumStreams + id,
                      options_.delay};
    owned_streams_[id] = std::make_unique<SimStream>(threads_, jitter);
    streams_[id].store(owned_streams_[id].get(), std::memory_order_release);
  }
  return *owned_streams_[id];
}

void SimDevice::drain() {
  for (uint16_t id = 0; id < kNumStreams; ++id)
    if (SimStream* stream = find_stream(id)) stream->drain();
}

void SimDevice::stop() {
  for (uint16_t id = 0; id < kNumStreams; ++id) {
    streams_[id].store(nullptr, std::memory_order_release);
    owned_streams_[id] = nullptr;
  }
}

SimDevice::Fate SimDevice::next_launch() noexcept {
  const uint64_t number = launches_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (options_.faults.empty()) [[likely]]
    return Fate::Runs;
  if (has_fault(SimulatedFault::Kind::Lost, number)) return Fate::LosesDevice;
  return has_fault(SimulatedFault::Kind::Launch, number) ? Fate::Fails : Fate::Runs;
}

SimDevice::Fate SimDevice::next_copy() noexcept {
  const uint64_t number = copies_.fetch_add(1, std::memory_order_relaxed) + 1;
  return has_fault(SimulatedFault::Kind::Copy, number) ? Fate::Fails : Fate::Runs;
}

void SimDevice::meet(Fate fate, const char* what) {
  if (fate == Fate::LosesDevice) lost_.store(true, std::memory_order_relaxed);
  if (lost_.load(std::memory_order_relaxed)) throw_lost();
  TERN_CHECK(fate == Fate::Runs, DeviceError, "{} failed: the simulated GPU cuda:{} was told to fail here",
             what, index_);
}

void SimDevice::free_segment(void* segment, size_t nbytes) noexcept {
  drain();
  if (races_) races_->forget(segment, nbytes);
  memory_.give(segment, nbytes);
}

std::shared_ptr<EventRecord> SimDevice::fence(Stream stream) {
  return backend_of(stream.device.type).record_event(stream);
}

bool SimDevice::has_fault(SimulatedFault::Kind kind, uint64_t number) const noexcept {
  for (const SimulatedFault& fault : options_.faults)
    if (fault.kind == kind && fault.number == number && fault.device.value_or(index_) == index_) return true;
  return false;
}

void SimDevice::throw_lost() const {
  TERN_THROW(DeviceError,
             "cuda:{} has fallen off the bus (simulated): nothing on it can be used any more; go on with the "
             "other devices",
             index_);
}

}  // namespace tern::sim
