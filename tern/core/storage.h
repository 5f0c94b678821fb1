// Storage: a reference-counted block of bytes on one device. Tensors are views of it.
// Who allocates it is decided by the device's Memory (core/memory.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tern/base/intrusive_ptr.h"
#include "tern/core/device.h"

namespace tern {

class StepRecorder;
class StorageImpl;

namespace detail {
/// What records a step on the calling thread (core/recording.h); null while nothing does.
extern constinit thread_local StepRecorder* step_recorder;
void note_change(StorageImpl& storage);
}  // namespace detail

/// Bytes on a device, with the way to give them back and a counter of in-place changes.
class StorageImpl : public RefCounted {
 public:
  /// Called once when the last reference goes; frees the bytes and the object itself. Must not throw.
  using Free = void (*)(StorageImpl*) noexcept;

  StorageImpl(void* data, size_t nbytes, Device device, Free free, void* context, bool pinned = false)
      : data_(data), nbytes_(nbytes), device_(device), pinned_(pinned), free_(free), context_(context) {}

  void* data() const noexcept { return data_; }
  size_t nbytes() const noexcept { return nbytes_; }
  Device device() const noexcept { return device_; }
  /// Host memory that GPUs copy from and to without staging.
  bool is_pinned() const noexcept { return pinned_; }
  /// A lazy layer has yet to give these bytes their size or first values (nn/lazy.h): tensors of it may be
  /// held and moved, not computed with or changed.
  bool is_uninitialized() const noexcept { return uninitialized_; }
  void set_uninitialized(bool uninitialized) noexcept { uninitialized_ = uninitialized; }
  /// What `free` needs to know: an allocator's block, an owner of foreign memory.
  void* context() const noexcept { return context_; }

  /// Number of in-place changes so far; saved tensors compare it.
  uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void bump_version() {
    version_.fetch_add(1, std::memory_order_relaxed);
    if (detail::step_recorder) [[unlikely]]
      detail::note_change(*this);
  }

  friend void destroy(StorageImpl* storage) { storage->free_(storage); }

 private:
  void* data_;
  size_t nbytes_;
  Device device_;
  bool pinned_;
  bool uninitialized_ = false;
  std::atomic<uint32_t> version_{0};
  Free free_;
  void* context_;
};

using Storage = IntrusivePtr<StorageImpl>;

}  // namespace tern
