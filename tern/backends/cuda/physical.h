// A GPU of the machine: its properties, its events and their clock, its neighbours. What the program counts
// as devices, which may be parts of one GPU, is in device.h.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "tern/backends/cuda/event.h"
#include "tern/device/backend.h"

namespace tern::cuda_backend {

/// Makes a GPU the current one of the thread for CUDA, with its context, if it is not already.
void use_gpu(int number);

class PhysicalGpu {
 public:
  /// Reads the properties; touches nothing on the GPU.
  explicit PhysicalGpu(int number);

  int number() const noexcept { return number_; }
  const cudaDeviceProp& properties() const noexcept { return properties_; }
  std::string uuid() const;
  std::string pci_bus_id() const;

  EventHandle take_event(bool timed);
  void give_event(cudaEvent_t event, bool timed) noexcept;

  using Clock = std::chrono::steady_clock;
  /// When a recorded timed event that is done was passed, in seconds since the GPU was first used. An event
  /// of a GPU that is lost gives 0.
  double seconds(const EventHandle& event) noexcept;
  /// The same in the host's time, within some microseconds.
  Clock::time_point host_time(const EventHandle& event) noexcept;

  /// Lets this GPU copy straight to and from another one where the machine can do that.
  void befriend(const PhysicalGpu& other);

 private:
  /// The event that times are measured from: near enough for the float that CUDA gives.
  void start_clock();

  const int number_;
  cudaDeviceProp properties_{};
  std::mutex mutex_;
  std::array<std::vector<cudaEvent_t>, 2> idle_events_;  ///< untimed, timed
  std::array<bool, 64> befriended_{};
  cudaEvent_t clock_event_ = nullptr;
  double clock_seconds_ = 0;
  Clock::time_point clock_start_{};
};

}  // namespace tern::cuda_backend
