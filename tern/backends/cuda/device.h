// A device as the program counts them: a GPU, or with TERN_LOGICAL_GPUS a part of one, with streams and
// memory of its own. What kernels need of a stream is at the end.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "tern/backends/cuda/memory.h"
#include "tern/backends/cuda/physical.h"
#include "tern/backends/cuda/stream.h"

namespace tern::cuda_backend {

/// Streams of one device: the default one and the pool.
inline constexpr uint16_t kNumStreams = 33;

class CudaDevice {
 public:
  /// Part `part` of `parts` of a GPU; the GPU itself is not touched before the first use.
  CudaDevice(int index, PhysicalGpu& gpu, int part, int parts);

  PhysicalGpu& gpu() const noexcept { return gpu_; }
  DeviceProperties properties() const;
  DeviceMemory& memory() noexcept { return memory_; }

  /// The stream of this number; made with the first call. Throws DeviceError for one that is not there.
  CudaStream& stream(uint16_t id) {
    CudaStream* there = id < kNumStreams ? find_stream(id) : nullptr;
    return there ? *there : make_stream(id);
  }
  /// The same, or null when it has not been used yet.
  CudaStream* find_stream(uint16_t id) noexcept { return streams_[id].load(std::memory_order_acquire); }

 private:
  CudaStream& make_stream(uint16_t id);

  const int index_;
  PhysicalGpu& gpu_;
  const int part_, parts_;
  DeviceMemory memory_;
  std::mutex mutex_;
  Fault* faults_ = nullptr;  ///< a mailbox for each stream
  std::array<std::unique_ptr<CudaStream>, kNumStreams> owned_;
  std::array<std::atomic<CudaStream*>, kNumStreams> streams_{};
};

/// The stream of a launch.
CudaStream& stream_of(Stream stream);

/// The names of the last kernels of a stream; empty where there are none.
std::string recent_kernels(Stream stream);

/// Memory of the launch's device for the work on its stream: it may be let go while that work still runs.
Storage workspace(const LaunchContext& context, size_t nbytes);

/// The launch reads and writes this memory, which its arguments do not name. Launches of a recorded step that
/// touch the same are not made to run side by side. workspace() says this itself.
void touches(const LaunchContext& context, const void* data, size_t nbytes);

}  // namespace tern::cuda_backend
