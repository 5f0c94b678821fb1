// The caching allocator of every backend: small blocks from size classes, large ones by best fit with
// splitting and merging, each stream with blocks of its own. It knows no device: a MemorySource gives and
// takes the segments.
#pragma once

#include <memory>

#include "tern/device/backend.h"

namespace tern {

class Recorder;

/// Where segments come from.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// `nbytes` is a multiple of segment_granularity(). Null when there is no memory left.
  virtual void* allocate_segment(size_t nbytes) noexcept = 0;
  /// Waits until work that the device was given no longer uses the segment.
  virtual void free_segment(void* segment, size_t nbytes) noexcept = 0;
  /// 1: every block is a segment of its own, of just its size, so that a tool sees where one ends.
  virtual size_t segment_granularity() const noexcept = 0;
  /// Bytes of free memory that may stay cached; beyond it whole free segments go back.
  virtual size_t cache_limit() const noexcept = 0;
  /// True: kernels of a recorded step may run side by side, so that it lets small blocks rest before it uses
  /// them again: kernels that only had the same memory would wait for each other.
  virtual bool lets_blocks_rest() const noexcept { return false; }
  /// A mark behind the work that `stream` was given; null when there is nothing to wait for.
  virtual std::shared_ptr<EventRecord> fence(Stream) { return nullptr; }
};

/// Serves storages of one device. Safe to use from several threads.
///
/// A block belongs to the stream that it was allocated for, and is reused on that stream at once when it is
/// freed: work runs there in order. Other streams that use it are named with record_stream(); then the block
/// waits after its end until they have come past that moment.
class CachingAllocator {
 public:
  /// `source` and the allocator must outlive every storage.
  CachingAllocator(MemorySource& source, Device device, bool pinned = false);
  ~CachingAllocator();

  /// 64-byte aligned. Before it fails it gives cached memory back and tries again.
  /// Throws OutOfMemoryError saying what was asked, what is in use, cached and fragmented.
  Storage allocate(size_t nbytes, uint16_t stream = 0);
  /// `storage` must be from this allocator.
  void record_stream(const StorageImpl& storage, Stream stream);
  /// Gives all segments without live blocks back.
  void empty_cache();
  /// For pthread_atfork(): between the two no other thread is inside, so that the child finds it whole.
  void before_fork();
  void after_fork();
  /// No more than this is taken from the source; 0: no limit but the source's.
  void set_limit(size_t nbytes);
  MemoryStats stats() const;
  void reset_peaks();
  Device device() const noexcept;

  /// While a thread records a step, what it allocates comes from memory of the step's own (and goes back
  /// there), which nobody else uses. This makes it common again; no replay may be running.
  void release_private(const Recorder* step);
  /// Bytes of memory of the step's own.
  size_t private_bytes(const Recorder* step) const;

  /// The segments by address.
  std::vector<MemorySegment> snapshot() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tern
