// A stream of one GPU: CUDA's handle, the mailbox for faults, and the names of the kernels that it was given
// last.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tern/backends/cuda/event.h"
#include "tern/backends/cuda/fault.h"
#include "tern/device/launch.h"

namespace tern::cuda_backend {

class GraphRecording;
class PhysicalGpu;

class CudaStream {
 public:
  /// `fault` is a mailbox in pinned memory. The GPU must be the current one.
  CudaStream(PhysicalGpu& gpu, Fault* fault);
  ~CudaStream();

  cudaStream_t handle() const noexcept { return handle_; }
  PhysicalGpu& gpu() const noexcept { return gpu_; }
  /// For kernels: host memory that the device can write to.
  Fault* fault() const noexcept { return fault_; }

  /// Keeps the name for errors; `name` is a literal.
  void remember(const char* name) noexcept {
    recent_[count_.fetch_add(1, std::memory_order_relaxed) % recent_.size()].store(name,
                                                                                   std::memory_order_relaxed);
  }
  /// "add, matmul, relu", the newest last.
  std::string recent() const;

  /// What it is given becomes part of a graph until end_recording(). `name` is this stream.
  void begin_recording(Stream name);
  std::unique_ptr<RecordedWork> end_recording();
  /// Null where it records nothing.
  GraphRecording* recording() const noexcept { return recording_.get(); }
  /// While it records: a mark behind what it was given before. Null else. Questions to the stream itself
  /// would break the recording, whoever asks.
  std::shared_ptr<EventRecord> before_recording() const;

  /// Runs `body`, which queues something here, between two events that tell an observer when it ran.
  template <class Body>
  void observed(LaunchObserver& observer, const Activity& activity, Body&& body) {
    const uint64_t number = observer.started(activity);
    EventHandle begin = record(/*timed=*/true);
    body();
    add_observation({&observer, number, std::move(begin), record(/*timed=*/true)});
  }
  /// A mark behind what the stream was given.
  EventHandle record(bool timed);
  /// Tells observers of what is done. Throws nothing.
  void tell_observers() noexcept;

 private:
  struct Observation {
    LaunchObserver* observer;
    uint64_t number;
    EventHandle begin, end;
  };
  void add_observation(Observation observation);
  void set_before_recording(std::shared_ptr<EventRecord> mark);

  PhysicalGpu& gpu_;
  Fault* fault_;
  cudaStream_t handle_ = nullptr;
  std::array<std::atomic<const char*>, 8> recent_{};
  std::atomic<uint32_t> count_{0};
  std::unique_ptr<GraphRecording> recording_;
  mutable std::mutex mutex_;
  std::shared_ptr<EventRecord> before_recording_;
  std::vector<Observation> observations_;
};

}  // namespace tern::cuda_backend
