// Segments from CUDA.
#include "tern/backends/cuda/memory.h"

#include <algorithm>

#include "tern/backends/cuda/check.h"
#include "tern/base/check.h"
#include "tern/base/env.h"
#include "tern/device/registry.h"

namespace tern::cuda_backend {

DeviceMemory::DeviceMemory(int index, PhysicalGpu& gpu, int parts)
    : gpu_(gpu),
      caches_(env_int("TERN_NO_CUDA_MEMORY_CACHING", 0, 1).value_or(0) == 0),
      share_(gpu.properties().totalGlobalMem / static_cast<size_t>(parts)),
      shared_(parts > 1),
      allocator_(*this, Device(DeviceType::CUDA, index)) {}

Storage DeviceMemory::allocate(size_t nbytes, uint16_t stream) {
  try {
    return allocator_.allocate(nbytes, stream);
  } catch (const OutOfMemoryError&) {
    const cudaError_t failure = failure_.exchange(cudaSuccess);
    if (failure != cudaSuccess) throw_cuda_error(failure, "cudaMalloc");
    throw;
  }
}

size_t DeviceMemory::free_bytes() {
  use_gpu(gpu_.number());
  size_t free = 0, total = 0;
  TERN_CUDA_CALL(cudaMemGetInfo(&free, &total));
  if (!shared_) return free;
  return std::min(free, share_ - std::min(share_, used_.load(std::memory_order_relaxed)));
}

void* DeviceMemory::allocate_segment(size_t nbytes) noexcept {
  if (shared_ && used_.load(std::memory_order_relaxed) + nbytes > share_) return nullptr;
  void* segment = nullptr;
  cudaError_t error = cudaSetDevice(gpu_.number());
  if (error == cudaSuccess) error = cudaMalloc(&segment, nbytes);
  if (error == cudaSuccess) {
    failure_.store(cudaSuccess);
    used_.fetch_add(nbytes, std::memory_order_relaxed);
    return segment;
  }
  cudaGetLastError();
  if (error != cudaErrorMemoryAllocation) failure_.store(error);
  return nullptr;
}

void DeviceMemory::free_segment(void* segment, size_t nbytes) noexcept {
  // cudaFree waits for the device. At the end of the process CUDA may be gone before the last segment.
  if (cudaSetDevice(gpu_.number()) != cudaSuccess || cudaFree(segment) != cudaSuccess) cudaGetLastError();
  used_.fetch_sub(nbytes, std::memory_order_relaxed);
}

std::shared_ptr<EventRecord> DeviceMemory::fence(Stream stream) {
  return backend_of(stream.device.type).record_event(stream);
}

void* PinnedMemory::allocate_segment(size_t nbytes) noexcept {
  void* segment = nullptr;
  if (cudaHostAlloc(&segment, nbytes, cudaHostAllocPortable) == cudaSuccess) return segment;
  cudaGetLastError();
  return nullptr;
}

void PinnedMemory::free_segment(void* segment, size_t) noexcept {
  if (cudaFreeHost(segment) != cudaSuccess) cudaGetLastError();
}

std::shared_ptr<EventRecord> PinnedMemory::fence(Stream stream) {
  return backend_of(stream.device.type).record_event(stream);
}

}  // namespace tern::cuda_backend
