// Where the caching allocators of a device and of pinned host memory get their segments.
#pragma once

#include <atomic>

#include "tern/backends/cuda/physical.h"
#include "tern/device/caching_allocator.h"

namespace tern::cuda_backend {

/// The memory of one device: at most its share of the GPU's.
class DeviceMemory final : MemorySource {
 public:
  DeviceMemory(int index, PhysicalGpu& gpu, int parts);

  /// Throws OutOfMemoryError, or DeviceError when the GPU is lost.
  Storage allocate(size_t nbytes, uint16_t stream);
  CachingAllocator& allocator() noexcept { return allocator_; }
  /// Bytes that this device could still take.
  size_t free_bytes();

 private:
  void* allocate_segment(size_t nbytes) noexcept override;
  void free_segment(void* segment, size_t nbytes) noexcept override;
  size_t segment_granularity() const noexcept override { return caches_ ? size_t{2} << 20 : 1; }
  size_t cache_limit() const noexcept override { return caches_ ? ~size_t{0} : 0; }
  bool lets_blocks_rest() const noexcept override { return caches_; }
  std::shared_ptr<EventRecord> fence(Stream stream) override;

  PhysicalGpu& gpu_;
  const bool caches_;
  const size_t share_;
  const bool shared_;
  std::atomic<size_t> used_{0};
  std::atomic<cudaError_t> failure_{cudaSuccess};  ///< of a segment, other than a lack of memory
  CachingAllocator allocator_;
};

/// Host memory that all GPUs copy from and to without staging.
class PinnedMemory final : MemorySource {
 public:
  CachingAllocator& allocator() noexcept { return allocator_; }

 private:
  void* allocate_segment(size_t nbytes) noexcept override;
  void free_segment(void* segment, size_t nbytes) noexcept override;
  size_t segment_granularity() const noexcept override { return size_t{1} << 20; }
  size_t cache_limit() const noexcept override { return size_t{512} << 20; }
  std::shared_ptr<EventRecord> fence(Stream stream) override;

  CachingAllocator allocator_{*this, kCPU, /*pinned=*/true};
};

}  // namespace tern::cuda_backend
