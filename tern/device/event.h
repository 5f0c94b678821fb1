// Event: a mark in a stream's queue that the host and other streams can wait for.
#pragma once

#include <chrono>
#include <memory>

#include "tern/device/stream.h"

namespace tern {

/// One recording of an event. Every recording is an object of its own, so that a wait keeps the recording
/// that it was called with whatever is recorded later.
class EventRecord {
 public:
  virtual ~EventRecord() = default;
  /// True when the stream has come past it. Never blocks, never throws.
  virtual bool done() const noexcept = 0;
  /// Blocks the host until it is done. Throws what the work before it threw.
  virtual void synchronize() = 0;
  /// Blocks the host until it is done, and leaves the errors of the work to whoever waits for its results.
  void wait_until_done() const noexcept;
  /// When the stream came past it, in seconds of the device's clock; meaningful once done, if recorded as
  /// timed.
  virtual double seconds() const noexcept = 0;
};

/// Of a stream that has nothing to do: done when it is recorded.
class PastEvent final : public EventRecord {
 public:
  bool done() const noexcept override { return true; }
  void synchronize() override {}
  double seconds() const noexcept override { return std::chrono::duration<double>(time_).count(); }

 private:
  std::chrono::steady_clock::duration time_ = std::chrono::steady_clock::now().time_since_epoch();
};

struct EventOptions {
  bool enable_timing = false;  ///< as in PyTorch: elapsed_time() needs it
};

/// A mark that can be recorded again and again. Before the first recording every wait returns at once. What
/// is recorded while a step is captured is recorded anew by every replay.
class Event {
 public:
  explicit Event(EventOptions options = {}) : options_(options) {}

  /// Marks the end of the work that `stream` has been given so far.
  void record(Stream stream);
  /// The same on the current stream of the current GPU, or of the CPU when there is no GPU.
  void record();
  /// Work given to `stream` from now on runs after the last recording. Does not block the host.
  void wait(Stream stream) const;
  /// True when the work before the last recording is done.
  bool query() const noexcept;
  /// Blocks the host until the work before the last recording is done. Throws what that work threw.
  void synchronize() const;
  /// The same, but leaves the errors of that work to whoever waits for its results.
  void wait_until_done() const noexcept;
  /// Milliseconds from this event to `end`. Throws ValueError unless both were made with enable_timing,
  /// recorded and are done.
  double elapsed_time(const Event& end) const;

 private:
  const EventRecord& last() const { return **record_; }

  EventOptions options_;
  /// The last recording. Replays of the step that it is part of put theirs in its place.
  std::shared_ptr<std::shared_ptr<EventRecord>> record_;
};

}  // namespace tern
