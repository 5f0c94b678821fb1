// Streams and properties of a device.
#include "tern/backends/cuda/device.h"

#include <cstring>

#include "tern/backends/cuda/check.h"
#include "tern/base/check.h"

namespace tern::cuda_backend {

CudaDevice::CudaDevice(int index, PhysicalGpu& gpu, int part, int parts)
    : index_(index), gpu_(gpu), part_(part), parts_(parts), memory_(index, gpu, parts) {}

DeviceProperties CudaDevice::properties() const {
  const cudaDeviceProp& gpu = gpu_.properties();
  std::string name = gpu.name;
  if (parts_ > 1) name += fmt::format(" (logical GPU {} of {})", part_ + 1, parts_);
  return {.name = std::move(name),
          .total_memory = gpu.totalGlobalMem / static_cast<size_t>(parts_),
          .processors = gpu.multiProcessorCount,
          .simulated = false,
          .major = gpu.major,
          .minor = gpu.minor,
          .uuid = gpu_.uuid(),
          .pci_bus_id = gpu_.pci_bus_id()};
}

CudaStream& CudaDevice::make_stream(uint16_t id) {
  TERN_CHECK(id < kNumStreams, DeviceError, "stream {} of cuda:{} does not exist: make one with new_stream()",
             id, index_);
  use_gpu(gpu_.number());
  const std::lock_guard lock(mutex_);
  if (faults_ == nullptr) {
    void* mailboxes = nullptr;
    TERN_CUDA_CALL(
        cudaHostAlloc(&mailboxes, kNumStreams * sizeof(Fault), cudaHostAllocPortable | cudaHostAllocMapped));
    std::memset(mailboxes, 0, kNumStreams * sizeof(Fault));
    faults_ = static_cast<Fault*>(mailboxes);
  }
  if (!owned_[id]) {
    owned_[id] = std::make_unique<CudaStream>(gpu_, faults_ + id);
    streams_[id].store(owned_[id].get(), std::memory_order_release);
  }
  return *owned_[id];
}

}  // namespace tern::cuda_backend
