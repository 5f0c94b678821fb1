// The memory of one simulated GPU: a region of addresses of its own, closed to the host while nothing runs on
// the device. What the allocator does with it is in device/caching_allocator.h.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "tern/device/caching_allocator.h"

namespace tern::sim {

class DeviceMemory {
 public:
  /// At most `limit` bytes in use at a time. Throws OutOfMemoryError when the addresses can not be had.
  DeviceMemory(size_t limit, bool closes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Null when the limit would be passed or no gap is large enough.
  void* take(size_t nbytes) noexcept;
  void give(void* start, size_t nbytes) noexcept;
  size_t free_bytes() const noexcept;
  bool contains(const void* address) const noexcept;

  /// Lets threads touch the memory while it lives.
  class Access {
   public:
    explicit Access(DeviceMemory* memory) : memory_(memory && memory->closes_ ? memory : nullptr) {
      if (memory_) memory_->open();
    }
    ~Access() {
      if (memory_) memory_->close();
    }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    DeviceMemory* memory_;
  };

 private:
  void open() noexcept;
  void close() noexcept;

  const size_t limit_;
  const size_t reach_;  ///< addresses: more than the limit, so that gaps do not add up to a lack of memory
  const bool closes_;
  char* base_ = nullptr;
  mutable std::mutex mutex_;
  std::map<size_t, size_t> gaps_;  ///< offset and length
  size_t used_ = 0;
  std::mutex access_mutex_;
  int accesses_ = 0;
};

}  // namespace tern::sim
