// Backend: what a kind of device must give: memory, copies, properties, streams, and a table of kernels.
// Backends register themselves (device/registry.h); nobody else includes their folders.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/core/memory.h"
#include "tern/core/philox.h"
#include "tern/device/event.h"
#include "tern/device/link.h"
#include "tern/device/stream.h"

namespace tern {

/// What a kernel may know about where it runs.
struct LaunchContext {
  Stream stream;
};

/// Every kernel: it reads a plain argument struct and does its work on `context.stream`'s device.
using KernelFn = void (*)(const LaunchContext& context, const void* args);

class LaunchObserver;

/// An array in host memory that an argument struct points to and that may change when `launch` returns.
struct HostArray {
  size_t pointer_offset = 0;  ///< of the pointer in the struct, in bytes
  size_t nbytes = 0;          ///< 0: there is none
};

/// Where an argument struct of a random kernel has the seed and the position of its numbers (uint64 each),
/// and a pointer to what both count from.
struct RandomPlace {
  size_t seed_offset = 0;
  size_t position_offset = 0;  ///< 0: the kernel is not random
  size_t origin_offset = 0;
};

/// One kernel to be started.
struct Launch {
  uint16_t id;       ///< number in the table of kernels
  const char* name;  ///< of the kernel
  const void* args;
  size_t nbytes;  ///< of the args
  HostArray array;
  RandomPlace random;
  /// In recorded work: its numbers count from origin `origin - 1` of those that run() is given, and its
  /// position from that one's. 0: they are what the args say.
  uint32_t origin = 0;
};

/// Most random origins of one recorded work.
inline constexpr size_t kMostOrigins = 16;

struct DeviceProperties {
  std::string name;
  uint64_t total_memory = 0;  ///< bytes
  int processors = 0;         ///< cores of a CPU, multiprocessors of a GPU
  bool simulated = false;
  int major = 0;  ///< compute capability of a GPU: major.minor
  int minor = 0;
  std::string uuid = {};        ///< "GPU-..."; empty where there is none
  std::string pci_bus_id = {};  ///< "0000:65:00.0"; empty where there is none
};

/// Memory counters of one device, in bytes.
struct MemoryStats {
  uint64_t allocated = 0;  ///< in tensors now
  uint64_t reserved = 0;   ///< held from the system: allocated and cached
  uint64_t max_allocated = 0;
  uint64_t max_reserved = 0;
  uint64_t num_allocations = 0;  ///< requests served
  uint64_t num_system_allocations = 0;
  uint64_t num_retries = 0;  ///< times that cached memory was given back to serve a request
  uint64_t num_ooms = 0;     ///< requests that failed
};

/// One block of a segment of cached memory.
struct MemoryBlock {
  enum class State : uint8_t { Active, Free, AwaitingEvents };
  size_t nbytes;
  State state;
};

struct AttentionArgs;
struct AttentionBackwardArgs;

/// A piece of memory that the allocator got from the system, cut into blocks from its start to its end.
struct MemorySegment {
  uintptr_t address;
  size_t nbytes;
  uint16_t stream;
  std::vector<MemoryBlock> blocks;
};

/// Kernels that a backend has recorded on a stream, to be started there together. Destroyed when none of it
/// runs.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  /// `origins`: where random numbers begin this time.
  virtual void run(std::span<const PhiloxState> origins) = 0;
};

class Backend : public Memory {
 public:
  /// "cpu", "sim", "cuda".
  virtual std::string_view name() const = 0;
  virtual DeviceType type() const = 0;
  virtual DeviceProperties properties(int index) = 0;

  virtual MemoryStats memory_stats(int index) = 0;
  /// Sets the peaks to what is in use now.
  virtual void reset_peak_memory_stats(int index) = 0;
  virtual std::vector<MemorySegment> memory_snapshot(int index) = 0;
  /// Gives cached memory back to the system.
  virtual void empty_cache(int index) = 0;
  /// The allocator takes no more than this from the device; 0: no limit but the device's.
  virtual void set_memory_limit(int index, size_t nbytes) = 0;
  /// Bytes that the system still has for the device.
  virtual size_t free_memory(int index) = 0;
  /// Keeps the storage's memory from being reused before the work that `stream` has been given when the
  /// storage is freed is done.
  virtual void record_stream(const StorageImpl& storage, Stream stream) = 0;

  /// Streams with numbers 1 to this that new_stream() hands out.
  virtual uint16_t num_pool_streams() const = 0;
  virtual bool query(Stream stream) = 0;
  /// Blocks the host until all work on the stream is done; errors of that work are thrown here.
  virtual void synchronize(Stream stream) = 0;
  /// The same for all streams of a device.
  virtual void synchronize_device(int index) = 0;
  /// `timed`: seconds() of the record will be asked for.
  virtual std::shared_ptr<EventRecord> record_event(Stream stream, bool timed = false) = 0;
  virtual void wait_event(Stream stream, std::shared_ptr<EventRecord> event) = 0;

  /// Queues a kernel; args and array are copied. Not called on backends that run at once.
  virtual void enqueue(Stream stream, const Launch& launch) = 0;
  /// Queues a copy of bytes; both addresses must stay valid until it is done. At least one side is memory of
  /// a device of this backend, the other may be host memory.
  virtual void enqueue_copy(Stream stream, void* to, Device to_device, const void* from, Device from_device,
                            size_t nbytes) = 0;
  /// Whether attention with these arguments, or its gradients, is one kernel here (kernels/attention.h).
  virtual bool fuses(Stream, const AttentionArgs&) { return false; }
  virtual bool fuses(Stream, const AttentionBackwardArgs&) { return false; }
  /// From here to end_recording the kernels that the stream is given are kept instead of done; copies and
  /// events are not given to it meanwhile. False: this backend records nothing.
  virtual bool begin_recording(Stream) { return false; }
  virtual std::unique_ptr<RecordedWork> end_recording(Stream) { return nullptr; }
  /// Host memory that this backend's devices copy from and to without staging; its device is the CPU.
  virtual Storage allocate_pinned(size_t nbytes) = 0;

  /// What links GPUs of this backend with those of other processes; null where nothing does.
  virtual LinkMaker* links() { return nullptr; }

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
