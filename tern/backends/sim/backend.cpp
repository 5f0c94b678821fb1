// The backend of simulated GPUs: the kernels of the CPU, queued on the threads of streams. Memory, streams
// and faults of one device are in device.h, the text of the options in options.cpp.
#include "tern/device/backend.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "tern/backends/sim/device.h"
#include "tern/backends/sim/observation.h"
#include "tern/base/check.h"
#include "tern/base/env.h"
#include "tern/base/parallel.h"
#include "tern/device/copy.h"
#include "tern/device/kept_launch.h"
#include "tern/device/registry.h"
#include "tern/kernels/attention.h"

namespace tern::sim {
namespace {

/// Says after the message where and by what the error was raised; the type stays.
template <class Body>
void with_origin(const char* what, Stream stream, Body&& body) {
  try {
    body();
  } catch (Error& error) {
    error = Error(fmt::format("{} [raised by {} on {}, stream {}, and reported at the first wait after it]",
                              error.message(), what, stream.device.str(), stream.id));
    throw;
  }
}

struct KernelTask final : Task {
  KernelTask(SimDevice& device_, Stream stream_, const Launch& launch, KernelFn kernel_, double latency_)
      : device(device_),
        stream(stream_),
        kernel(kernel_),
        name(launch.name),
        fate(device_.next_launch()),
        latency(latency_),
        observation({.stream = stream_, .name = launch.name, .kernel = launch.id, .args = launch.args}),
        kept(launch) {}

  void run() override {
    with_origin(name, stream, [&] {
      device.meet(fate, name);
      const DeviceMemory::Access access(&device.memory());
      observation.run(latency, [&] { kernel(LaunchContext{stream}, kept.args()); });
    });
  }

  SimDevice& device;
  Stream stream;
  KernelFn kernel;
  const char* name;
  SimDevice::Fate fate;
  double latency;
  Observation observation;
  KeptLaunch kept;
};

struct CopyTask final : Task {
  CopyTask(SimDevice& device_, Stream stream_, const char* name_, size_t nbytes_)
      : device(device_),
        stream(stream_),
        name(name_),
        nbytes(nbytes_),
        fate(device_.next_copy()),
        observation({.kind = Activity::Kind::Copy, .stream = stream_, .name = name_, .nbytes = nbytes_}) {}

  void run() override {
    with_origin(name, stream, [&] {
      device.meet(fate, name);
      const DeviceMemory::Access from_access(from_memory), to_access(to_memory);
      observation.run(seconds, [&] { std::memcpy(to, from, nbytes); });
    });
  }

  SimDevice& device;
  Stream stream;
  const char* name;
  size_t nbytes;
  SimDevice::Fate fate;
  Observation observation;
  void* to = nullptr;
  const void* from = nullptr;
  DeviceMemory* to_memory = nullptr;  ///< null: the host's
  DeviceMemory* from_memory = nullptr;
  double seconds = 0;
};

/// Kernels that are queued again and again, as a graph of CUDA would.
class RecordedKernels final : public RecordedWork {
 public:
  RecordedKernels(Backend& backend, Stream stream) : backend_(backend), stream_(stream) {}
  void add(const Launch& launch) {
    kept_.emplace_back(launch);
    positions_.push_back(launch.origin ? kept_.back().random_start().position : 0);
  }
  void run(std::span<const PhiloxState> origins) override {
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (const uint32_t number = kept_[i].launch().origin) {
        const PhiloxState& origin = origins[number - 1];
        kept_[i].set_random({origin.seed, origin.position + positions_[i]});
      }
      backend_.enqueue(stream_, kept_[i].launch());
    }
  }

 private:
  Backend& backend_;
  Stream stream_;
  std::vector<KeptLaunch> kept_;
  std::vector<uint64_t> positions_;  ///< of random ones, from their origins
};

/// Pinned memory is the host's own.
class PinnedSource final : public MemorySource {
 public:
  explicit PinnedSource(RaceDetector* races) : races_(races) {}
  void* allocate_segment(size_t nbytes) noexcept override { return std::aligned_alloc(4096, nbytes); }
  void free_segment(void* segment, size_t nbytes) noexcept override {
    if (races_) races_->forget(segment, nbytes);
    std::free(segment);
  }
  size_t segment_granularity() const noexcept override { return size_t{1} << 20; }
  size_t cache_limit() const noexcept override { return size_t{256} << 20; }
  std::shared_ptr<EventRecord> fence(Stream stream) override {
    return backend_of(stream.device.type).record_event(stream);
  }

 private:
  RaceDetector* const races_;  ///< or null
};

class SimBackend final : public Backend {
 public:
  SimBackend(const SimulationOptions& options, const KernelFn* kernels, std::string complaint = {})
      : Backend(kernels, /*runs_at_once=*/false),
        options_(options),
        complaint_(std::move(complaint)),
        races_(options.check_races ? std::make_unique<RaceDetector>(options.gpus) : nullptr) {
    // The cores are shared out, so that work on two devices really runs at the same time.
    const int threads = options_.gpus > 0 ? std::max(1, num_threads() / options_.gpus) : 1;
    for (int i = 0; i < options_.gpus; ++i)
      devices_.push_back(std::make_unique<SimDevice>(i, options_, threads, races_.get()));
  }

  bool in_use() {
    bool used = pinned_.stats().allocated != 0;
    for (const auto& device : devices_) used = used || device->allocator().stats().allocated != 0;
    return used;
  }
  void drain() {
    for (const auto& device : devices_) device->drain();
  }
  /// Ends the threads. No work is taken afterwards.
  void stop() {
    for (const auto& device : devices_) device->stop();
  }
  /// Takes the devices away, on which nothing lives.
  void retire() {
    stop();
    devices_.clear();
  }

  std::string_view name() const override { return "sim"; }
  DeviceType type() const override { return DeviceType::CUDA; }
  DeviceProperties properties(int index) override {
    return {.name = "Simulated GPU",
            .total_memory = options_.memory,
            .processors = at(index).threads(),
            .simulated = true,
            .uuid = fmt::format("GPU-simulated-{}", index)};
  }
  int device_count() override {
    TERN_CHECK(complaint_.empty(), ValueError, "{}", complaint_);
    return static_cast<int>(devices_.size());
  }
  int current_device() override { return detail::current_gpu; }

  Storage allocate(size_t nbytes, Device device) override {
    const Stream stream = current_stream(device);
    return at(device.index).allocate(nbytes, stream.id);
  }
  Storage allocate_pinned(size_t nbytes) override { return pinned_.allocate(nbytes); }
  void record_stream(const StorageImpl& storage, Stream stream) override {
    if (storage.is_pinned())
      pinned_.record_stream(storage, stream);
    else
      at(storage.device().index).allocator().record_stream(storage, stream);
  }
  void copy_to_host(void* host, const StorageImpl& from, size_t offset, size_t nbytes) override {
    detail::copy_to_host_blocking(host, from, offset, nbytes);
  }
  void copy_from_host(StorageImpl& to, size_t offset, const void* host, size_t nbytes) override {
    detail::copy_from_host_staged(to, offset, host, nbytes);
  }
  MemoryStats memory_stats(int index) override { return at(index).allocator().stats(); }
  void reset_peak_memory_stats(int index) override { at(index).allocator().reset_peaks(); }
  std::vector<MemorySegment> memory_snapshot(int index) override { return at(index).allocator().snapshot(); }
  void empty_cache(int index) override { at(index).allocator().empty_cache(); }
  void set_memory_limit(int index, size_t nbytes) override { at(index).allocator().set_limit(nbytes); }
  size_t free_memory(int index) override { return at(index).memory().free_bytes(); }

  uint16_t num_pool_streams() const override { return kNumStreams - 1; }
  bool query(Stream stream) override {
    if (const SimStream* found = find_stream(stream); found && !found->idle()) return false;
    if (races_) races_->host_knows(stream);
    return true;
  }
  void synchronize(Stream stream) override {
    if (find_stream(stream)) record_event(stream, /*timed=*/false)->synchronize();
  }
  void synchronize_device(int index) override {
    std::vector<std::shared_ptr<EventRecord>> events;
    for (uint16_t id = 0; id < kNumStreams; ++id)
      if (at(index).find_stream(id))
        events.push_back(record_event({Device(DeviceType::CUDA, index), id}, /*timed=*/false));
    for (const auto& event : events) event->synchronize();
  }
  std::shared_ptr<EventRecord> record_event(Stream stream, bool) override {
    auto event = stream_of(stream).record();
    if (races_) event->set_clock(races_.get(), races_->record(stream));
    return event;
  }
  void wait_event(Stream stream, std::shared_ptr<EventRecord> event) override {
    auto simulated = std::dynamic_pointer_cast<SimEvent>(std::move(event));
    if (!simulated) return;  // of the CPU, whose work is done
    SimStream& waiting = stream_of(stream);
    if (races_ && simulated->clock()) races_->stream_waits(stream, *simulated->clock());
    waiting.wait_for(std::move(simulated),
                     Observation({.kind = Activity::Kind::Wait, .stream = stream, .name = "wait for event"}));
  }

  void enqueue(Stream stream, const Launch& launch) override {
    SimStream& queue = stream_of(stream);
    if (RecordedKernels* recording = find_recording(stream)) return recording->add(launch);
    if (races_) races_->access(stream, launch.name, work_of(launch.id, launch.args).operands);
    queue.push(std::make_unique<KernelTask>(at(stream.device.index), stream, launch, kernels()[launch.id],
                                            options_.latency));
  }
  bool fuses(Stream, const AttentionArgs& args) override { return fits_fused_attention(args); }
  bool fuses(Stream, const AttentionBackwardArgs& args) override { return fits_fused_attention(args); }
  bool begin_recording(Stream stream) override {
    const std::lock_guard lock(recordings_mutex_);
    recordings_.emplace_back(stream, std::make_unique<RecordedKernels>(*this, stream));
    num_recordings_ = recordings_.size();
    return true;
  }
  std::unique_ptr<RecordedWork> end_recording(Stream stream) override {
    const std::lock_guard lock(recordings_mutex_);
    const auto found = std::find_if(recordings_.begin(), recordings_.end(),
                                    [&](const auto& recording) { return recording.first == stream; });
    auto work = std::move(found->second);
    recordings_.erase(found);
    num_recordings_ = recordings_.size();
    return work;
  }
  void enqueue_copy(Stream stream, void* to, Device to_device, const void* from, Device from_device,
                    size_t nbytes) override {
    SimStream& queue = stream_of(stream);
    const char* name = to_device.is_cpu()     ? "copy device to host"
                       : from_device.is_cpu() ? "copy host to device"
                                              : "copy device to device";
    if (races_)
      races_->access(stream, name,
                     {Operand{.data = to, .nbytes = nbytes, .written = true, .read = false},
                      Operand{.data = from, .nbytes = nbytes, .written = false, .read = true}});
    const double rate = to_device.is_cpu()     ? options_.d2h
                        : from_device.is_cpu() ? options_.h2d
                                               : options_.d2d;
    auto task = std::make_unique<CopyTask>(at(stream.device.index), stream, name, nbytes);
    task->to = to;
    task->from = from;
    task->to_memory = to_device.is_cpu() ? nullptr : &at(to_device.index).memory();
    task->from_memory = from_device.is_cpu() ? nullptr : &at(from_device.index).memory();
    task->seconds = options_.latency + (rate > 0 ? static_cast<double>(nbytes) / rate : 0);
    queue.push(std::move(task));
  }

 private:
  SimDevice& at(int index) {
    TERN_CHECK(index >= 0 && static_cast<size_t>(index) < devices_.size(), DeviceError,
               "device cuda:{} is not available: the program sees {} GPU(s), numbered from 0", index,
               devices_.size());
    return *devices_[static_cast<size_t>(index)];
  }
  SimDevice& device_with(Stream stream) {
    TERN_CHECK(stream.id < kNumStreams, DeviceError,
               "stream {} of {} does not exist: make one with new_stream()", stream.id, stream.device.str());
    return at(stream.device.index);
  }
  SimStream& stream_of(Stream stream) { return device_with(stream).stream(stream.id); }
  /// Null for one that nothing was given yet.
  SimStream* find_stream(Stream stream) { return device_with(stream).find_stream(stream.id); }

  RecordedKernels* find_recording(Stream stream) {
    if (num_recordings_ == 0) [[likely]]
      return nullptr;
    const std::lock_guard lock(recordings_mutex_);
    for (const auto& [on, recording] : recordings_)
      if (on == stream) return recording.get();
    return nullptr;
  }

  const SimulationOptions options_;
  /// What is wrong with the environment: thrown by the first use, since backends register before main.
  const std::string complaint_;
  const std::unique_ptr<RaceDetector> races_;
  PinnedSource pinned_source_{races_.get()};
  CachingAllocator pinned_{pinned_source_, kCPU, /*pinned=*/true};
  std::vector<std::unique_ptr<SimDevice>> devices_;
  std::mutex recordings_mutex_;
  std::vector<std::pair<Stream, std::unique_ptr<RecordedKernels>>> recordings_;
  std::atomic<size_t> num_recordings_{0};
};

/// The simulation that is in place. Earlier ones stay as well: an event of theirs may still be held.
std::vector<std::unique_ptr<SimBackend>>& simulations() {
  static auto* list = new std::vector<std::unique_ptr<SimBackend>>;
  return *list;
}

SimBackend* current_simulation() {
  auto* found = registered_memory(DeviceType::CUDA);
  for (const auto& simulation : simulations())
    if (simulation.get() == found) return simulation.get();
  return nullptr;
}

void put_in_place(const SimulationOptions& options, std::string complaint = {}) {
  Memory* cpu = registered_memory(DeviceType::CPU);
  if (cpu == nullptr) return;  // the first use of anything says that there is no CPU backend
  if (simulations().empty())
    std::atexit([] {
      if (SimBackend* last = current_simulation()) last->stop();
    });
  simulations().push_back(
      std::make_unique<SimBackend>(options, backend_of(DeviceType::CPU).kernels(), std::move(complaint)));
  register_backend(simulations().back().get());
}

}  // namespace

void deliver(const FailurePtr& failure) {
  if (!failure || failure->delivered.load(std::memory_order_acquire)) return;
  // What depends on the failed work, on any stream, is skipped before the error is forgotten.
  if (SimBackend* simulation = current_simulation()) simulation->drain();
  if (!failure->delivered.exchange(true, std::memory_order_acq_rel)) std::rethrow_exception(failure->error);
}

}  // namespace tern::sim

namespace tern {

void simulate_gpus(const SimulationOptions& options) {
  TERN_CHECK(options.gpus >= 0 && options.gpus <= kMaxGpus, ValueError,
             "simulate_gpus: expected 0 to {} GPUs, got {}", kMaxGpus, options.gpus);
  if (sim::SimBackend* present = sim::current_simulation()) {
    present->drain();
    TERN_CHECK(!present->in_use(), DeviceError,
               "simulate_gpus: tensors still live on the simulated GPUs: free them first");
    unregister_backend(DeviceType::CUDA);
    present->retire();
  }
  TERN_CHECK(
      registered_memory(DeviceType::CUDA) == nullptr, DeviceError,
      "simulate_gpus: this process has real GPUs: use those, or hide them with CUDA_VISIBLE_DEVICES=''");
  if (options.gpus > 0) sim::put_in_place(options);
  if (detail::current_gpu >= options.gpus) detail::current_gpu = 0;
}

namespace detail {

void register_sim_backend_from_environment() {
  const auto text = env_text("TERN_SIM");
  if (!text && !env_text("TERN_SIM_GPUS")) return;
  SimulationOptions options;
  try {
    if (text)
      options = with_context("environment variable TERN_SIM", [&] { return parse_simulation(*text); });
    if (auto gpus = env_int("TERN_SIM_GPUS", 0, kMaxGpus)) options.gpus = static_cast<int>(*gpus);
    num_threads();  // throws here for a bad TERN_NUM_THREADS
    if (options.gpus > 0) sim::put_in_place(options);
  } catch (const Error& error) {
    sim::put_in_place({.gpus = 0}, error.message());
  }
}

}  // namespace detail
}  // namespace tern
