// The check for races of simulated GPUs: work that touches the same bytes on two streams must be ordered by
// events or by waits of the host. Found when it is queued, whatever order the threads happen to run in.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tern/device/backend.h"
#include "tern/kernels/access_history.h"

namespace tern::sim {

/// How much of each stream's work is known to be done, by the number of a stream (C. Fidge, 1988).
using VectorClock = std::vector<uint64_t>;

class RaceDetector {
 public:
  explicit RaceDetector(int gpus);

  /// Work on `stream` that touches `operands`. Throws DeviceError when other work, unordered with it, touches
  /// the same bytes and one of the two writes.
  void access(Stream stream, const char* name, const SmallVector<Operand, 8>& operands);
  /// What a wait for the point that `stream` has reached will make known.
  std::shared_ptr<const VectorClock> record(Stream stream);
  void stream_waits(Stream stream, const VectorClock& event);
  /// The host knows that the event is past. Threads of the host count as one: what orders them is not seen
  /// here.
  void host_knows(const VectorClock& event);
  /// The host knows that all of the stream's work is done.
  void host_knows(Stream stream);
  /// Memory that was given back, after all work on it was done.
  void forget(const void* memory, size_t nbytes);

 private:
  size_t number_of(Stream stream) const;
  /// Throws where `now` and `before` touch the same bytes unordered; `wrote` is of `before`.
  void check(const MemoryAccess& now, bool writes, const MemoryAccess& before, bool wrote) const;

  std::mutex mutex_;
  std::vector<VectorClock> streams_;
  VectorClock host_;
  AccessHistory history_;  ///< its lanes are the streams, by their numbers
};

}  // namespace tern::sim
