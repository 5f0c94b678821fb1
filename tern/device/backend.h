// Backend: what a kind of device must give: memory, copies, properties, streams, and a table of kernels.
// Backends register themselves (device/registry.h); nobody else includes their folders.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tern/core/memory.h"
#include "tern/device/stream.h"

namespace tern {

/// What a kernel may know about where it runs.
struct LaunchContext {
  Stream stream;
};

/// Every kernel: it reads a plain argument struct and does its work on `context.stream`'s device.
using KernelFn = void (*)(const LaunchContext& context, const void* args);

struct DeviceProperties {
  std::string name;
  uint64_t total_memory = 0;  ///< bytes
  int processors = 0;         ///< cores of a CPU, multiprocessors of a GPU
  bool simulated = false;
};

/// Memory counters of one device, in bytes.
struct MemoryStats {
  uint64_t allocated = 0;  ///< in tensors now
  uint64_t reserved = 0;   ///< held from the system: allocated and cached
  uint64_t max_allocated = 0;
  uint64_t max_reserved = 0;
  uint64_t num_allocations = 0;  ///< requests served
  uint64_t num_system_allocations = 0;
};

class Backend : public Memory {
 public:
  /// "cpu", "sim", "cuda".
  virtual std::string_view name() const = 0;
  virtual DeviceType type() const = 0;
  virtual DeviceProperties properties(int index) = 0;
  virtual MemoryStats memory_stats(int index) = 0;
  /// Gives cached memory back to the system.
  virtual void empty_cache(int index) = 0;
  /// Blocks the host until all work on the stream is done; errors of that work are thrown here.
  virtual void synchronize(Stream stream) = 0;
  /// Queues a kernel. Not called on backends that run at once.
  virtual void enqueue(Stream stream, KernelFn kernel, const void* args, size_t args_nbytes) = 0;

  /// True when a launch runs the kernel on the calling thread and returns when it is done.
  bool runs_at_once() const noexcept { return runs_at_once_; }
  /// Indexed by Kernel::id (kernels/list.h).
  const KernelFn* kernels() const noexcept { return kernels_; }

 protected:
  Backend(const KernelFn* kernels, bool runs_at_once) : kernels_(kernels), runs_at_once_(runs_at_once) {}

 private:
  const KernelFn* kernels_;
  bool runs_at_once_;
};

}  // namespace tern
