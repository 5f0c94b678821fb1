// StepRecorder: what a thread that records a step (device/capture.h) is told by what runs on the host,
// outside any kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "tern/core/generator.h"
#include "tern/core/storage.h"

namespace tern {

class StepRecorder {
 public:
  virtual ~StepRecorder() = default;
  /// `operation` ("item") is about to read a tensor on the host, or to wait for a device: no replay can do
  /// that. Throws CaptureError.
  virtual void host_reads(const char* operation) = 0;
  /// The host wrote all bytes of a storage that was made for them; they must be the same at every replay.
  virtual void host_wrote(const Storage& storage) = 0;
  /// The host writes bytes to a storage in the middle of the step: does so, and at every replay writes the
  /// same ones.
  virtual void host_writes(StorageImpl& to, size_t offset, const void* host, size_t nbytes) = 0;
  /// A storage was changed in place.
  virtual void changed(StorageImpl& storage) = 0;
  /// Counters `first.position` to `first.position + counters` of a generator were given away.
  virtual void random_reserved(const Generator& generator, Generator::State first, uint64_t counters) = 0;
  /// Calls `action` now and at every replay. What it starts is not recorded; it may wait for a device.
  virtual void call(std::function<void()> action) = 0;

  /// While this is set, actions are called only when it is true at their turn, and kernels and copies outside
  /// them are a CaptureError.
  std::shared_ptr<const bool> condition;
};

namespace detail {
inline void host_reads(const char* operation) {
  if (step_recorder) [[unlikely]]
    step_recorder->host_reads(operation);
}
inline void host_wrote(const Storage& storage) {
  if (step_recorder) [[unlikely]]
    step_recorder->host_wrote(storage);
}
/// Calls `action`, and again at every replay where a step is being recorded.
template <class Action>
void call_and_record(Action&& action) {
  if (step_recorder) [[unlikely]]
    step_recorder->call(std::forward<Action>(action));
  else
    action();
}
}  // namespace detail

}  // namespace tern
