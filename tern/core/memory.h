// Memory: the little that core and io must be able to do with the memory of any device. The device room
// registers one Memory for each kind of device; streams, events and kernels are its own affair.
#pragma once

#include <functional>
#include <string>

#include "tern/core/storage.h"

namespace tern {

/// Allocation and blocking copies on one kind of device.
class Memory {
 public:
  virtual ~Memory() = default;
  /// Uninitialised bytes on `device` (its index resolved). Throws OutOfMemoryError or DeviceError.
  virtual Storage allocate(size_t nbytes, Device device) = 0;
  /// Copies device memory to host memory; waits for earlier work on it and until the copy is done.
  virtual void copy_to_host(void* host, const StorageImpl& from, size_t offset, size_t nbytes) = 0;
  /// Copies host memory to device memory; when it returns the host memory may be reused.
  virtual void copy_from_host(StorageImpl& to, size_t offset, const void* host, size_t nbytes) = 0;
  /// How many devices of this kind the program sees.
  virtual int device_count() = 0;
  /// The device that `cuda` without a number means.
  virtual int current_device() = 0;
};

/// Makes `memory` (which must live to the end of the process) serve devices of this type.
void register_memory(DeviceType type, Memory* memory);

/// The memory of a kind of device, or null when no backend for it is there. The first question for GPUs may
/// bring their backend (MemoryLoader).
Memory* find_memory(DeviceType type) noexcept;

/// The same, but brings nothing.
Memory* registered_memory(DeviceType type) noexcept;

/// Brings the memory of a kind of device when it is asked for and nobody has registered one.
struct MemoryLoader {
  void (*load)(DeviceType type) noexcept;      ///< calls register_memory if it can; called every time
  std::string (*why_absent)(DeviceType type);  ///< for errors: why it could not; may be empty
};
/// Puts a loader in place, which must live to the end of the process.
void set_memory_loader(const MemoryLoader* loader) noexcept;

/// " (reason)" for errors about a kind of device that is not there, or nothing where no reason is known.
std::string absence_note(DeviceType type);

/// `cuda` becomes `cuda:<current>`; checks that the device exists. Throws DeviceError.
Device resolve_device(Device device);

/// Where factories put tensors when they are told no device: the CPU at first. Of the calling thread alone,
/// as in PyTorch.
Device get_default_device() noexcept;
/// Throws DeviceError for a device that is not there.
void set_default_device(Device device);

/// Uninitialised bytes on a device. Throws OutOfMemoryError or DeviceError.
Storage allocate_storage(size_t nbytes, Device device);

/// A host storage over memory owned by someone else; `release` runs once when the last reference goes.
Storage storage_from_blob(void* data, size_t nbytes, std::function<void()> release);

void copy_to_host(void* host, const StorageImpl& from, size_t offset, size_t nbytes);
void copy_from_host(StorageImpl& to, size_t offset, const void* host, size_t nbytes);

}  // namespace tern
