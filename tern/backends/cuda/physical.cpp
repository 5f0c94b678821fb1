// Properties, events and clock of a GPU.
#include "tern/backends/cuda/physical.h"

#include "tern/backends/cuda/check.h"
#include "tern/base/check.h"

namespace tern::cuda_backend {

void use_gpu(int number) {
  // A thread has a device before it has a context, which libraries look for with calls of the driver.
  static constinit thread_local bool has_context = false;
  int current = -1;
  if (has_context && cudaGetDevice(&current) == cudaSuccess && current == number) [[likely]]
    return;
  TERN_CUDA_CALL(cudaSetDevice(number));
  has_context = true;
}

PhysicalGpu::PhysicalGpu(int number) : number_(number) {
  TERN_CUDA_CALL(cudaGetDeviceProperties(&properties_, number));
}

std::string PhysicalGpu::uuid() const {
  const auto* b = reinterpret_cast<const unsigned char*>(properties_.uuid.bytes);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", b[i]);
  }
  return text;
}

std::string PhysicalGpu::pci_bus_id() const {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", properties_.pciDomainID, properties_.pciBusID,
                     properties_.pciDeviceID);
}

EventHandle PhysicalGpu::take_event(bool timed) {
  use_gpu(number_);
  const std::lock_guard lock(mutex_);
  if (timed && clock_event_ == nullptr) start_clock();
  std::vector<cudaEvent_t>& idle = idle_events_[timed];
  cudaEvent_t event = nullptr;
  if (idle.empty()) {
    TERN_CUDA_CALL(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming));
  } else {
    event = idle.back();
    idle.pop_back();
  }
  return EventHandle(this, event, timed);
}

void PhysicalGpu::give_event(cudaEvent_t event, bool timed) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    idle_events_[timed].push_back(event);
  } catch (...) {
    cudaEventDestroy(event);
  }
}

void PhysicalGpu::start_clock() {
  cudaEvent_t event = nullptr;
  TERN_CUDA_CALL(cudaEventCreateWithFlags(&event, cudaEventDefault));
  TERN_CUDA_CALL(cudaEventRecord(event, cudaStreamPerThread));
  TERN_CUDA_CALL(cudaEventSynchronize(event));
  clock_start_ = Clock::now();
  clock_event_ = event;
}

double PhysicalGpu::seconds(const EventHandle& event) noexcept {
  const std::lock_guard lock(mutex_);
  float milliseconds = 0;
  if (cudaEventElapsedTime(&milliseconds, clock_event_, event.get()) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  const double seconds = clock_seconds_ + static_cast<double>(milliseconds) * 1e-3;
  // A float of many milliseconds has no microseconds left: the clock is set anew, by an event of its own.
  cudaEvent_t later = nullptr;
  float since = 0;
  if (milliseconds > 500.0f && cudaSetDevice(number_) == cudaSuccess &&
      cudaEventCreateWithFlags(&later, cudaEventDefault) == cudaSuccess) {
    if (cudaEventRecord(later, cudaStreamPerThread) == cudaSuccess &&
        cudaEventSynchronize(later) == cudaSuccess &&
        cudaEventElapsedTime(&since, event.get(), later) == cudaSuccess) {
      cudaEventDestroy(clock_event_);
      clock_event_ = later;
      clock_seconds_ = seconds + static_cast<double>(since) * 1e-3;
    } else {
      cudaEventDestroy(later);
    }
  }
  return seconds;
}

PhysicalGpu::Clock::time_point PhysicalGpu::host_time(const EventHandle& event) noexcept {
  return clock_start_ +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds(event)));
}

void PhysicalGpu::befriend(const PhysicalGpu& other) {
  const std::lock_guard lock(mutex_);
  bool& done = befriended_[static_cast<size_t>(other.number_) % befriended_.size()];
  if (done || other.number_ == number_) return;
  done = true;
  int can = 0;
  TERN_CUDA_CALL(cudaDeviceCanAccessPeer(&can, number_, other.number_));
  if (can == 0) return;
  use_gpu(number_);
  const cudaError_t error = cudaDeviceEnablePeerAccess(other.number_, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();
  else
    TERN_CUDA_CALL(error);
}

}  // namespace tern::cuda_backend
