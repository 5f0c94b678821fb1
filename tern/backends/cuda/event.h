// Events: CUDA's, kept in a pool of each GPU, and the recordings that streams wait for.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

#include "tern/device/event.h"

namespace tern::cuda_backend {

class PhysicalGpu;
class CudaStream;

/// A CUDA event, which goes back to its GPU's pool. Those that keep no time are cheaper to wait for.
class EventHandle {
 public:
  EventHandle() = default;
  EventHandle(PhysicalGpu* gpu, cudaEvent_t event, bool timed) : gpu_(gpu), event_(event), timed_(timed) {}
  EventHandle(EventHandle&& other) noexcept
      : gpu_(std::exchange(other.gpu_, nullptr)),
        event_(std::exchange(other.event_, nullptr)),
        timed_(other.timed_) {}
  EventHandle& operator=(EventHandle&& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(event_, other.event_);
    std::swap(timed_, other.timed_);
    return *this;
  }
  ~EventHandle();

  cudaEvent_t get() const noexcept { return event_; }

 private:
  PhysicalGpu* gpu_ = nullptr;
  cudaEvent_t event_ = nullptr;
  bool timed_ = false;
};

class CudaEvent final : public EventRecord {
 public:
  CudaEvent(CudaStream& stream, Stream name, bool timed);

  /// An event of a GPU that is lost counts as done: nothing runs there any more.
  bool done() const noexcept override;
  void synchronize() override;
  double seconds() const noexcept override;

  cudaEvent_t handle() const noexcept { return event_.get(); }

 private:
  CudaStream& stream_;
  Stream name_;
  EventHandle event_;
};

}  // namespace tern::cuda_backend
