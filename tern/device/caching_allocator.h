// The caching allocator of every backend: small blocks from size classes, large ones by best fit with
// splitting and merging. It knows no device: a MemorySource gives and takes the segments.
#pragma once

#include <memory>

#include "tern/device/backend.h"

namespace tern {

/// Where segments come from.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// `nbytes` is a multiple of segment_granularity(). Null when there is no memory left.
  virtual void* allocate_segment(size_t nbytes) noexcept = 0;
  virtual void free_segment(void* segment, size_t nbytes) noexcept = 0;
  virtual size_t segment_granularity() const noexcept = 0;
  /// Bytes of free memory that may stay cached; beyond it whole free segments go back.
  virtual size_t cache_limit() const noexcept = 0;
};

/// Serves storages of one device. Safe to use from several threads.
class CachingAllocator {
 public:
  /// `source` and the allocator must outlive every storage.
  CachingAllocator(MemorySource& source, Device device);
  ~CachingAllocator();

  /// 64-byte aligned. Before it fails it gives cached memory back and tries again.
  /// Throws OutOfMemoryError saying what was asked, what is in use, cached and fragmented.
  Storage allocate(size_t nbytes);
  /// Gives all segments without live blocks back.
  void empty_cache();
  MemoryStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tern
