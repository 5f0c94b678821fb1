// Streams and events: work that was given to a stream and has not been done yet. Streams take turns in an
// order that is drawn, so that what nobody ordered happens in another order now and then.
#pragma once

#include <driver_types.h>

#include <functional>
#include <memory>
#include <mutex>

namespace emulator {

/// A mutex that its owner may lock again, and leave alone for a while however often it has.
class BigLock {
 public:
  void lock() {
    mutex_.lock();
    ++depth_;
  }
  void unlock() {
    --depth_;
    mutex_.unlock();
  }
  /// Lets the others have it for a moment.
  void pause();

 private:
  std::recursive_mutex mutex_;
  int depth_ = 0;
};

/// Held by every entry of the runtime: one thing happens at a time.
BigLock& big_lock();

/// Calls that other threads have yet to make, for which work waits: whoever waits for a stream meanwhile lets
/// them. Without any, streams that wait for each other end the process.
int& awaited_calls();

/// A point in a stream.
struct Mark {
  bool reached = false;
  double seconds = 0;
};

/// Adds work to a stream, or to the graph that is made of it.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

/// What the stream is given from now on comes after the mark.
cudaError_t wait_for(cudaStream_t stream, std::shared_ptr<const Mark> mark);

/// Lets the time of events pass, as if work had taken that long.
void pass_time(double seconds);

/// Does what was given to a stream until it is empty. The error of a stream of which a graph is made.
cudaError_t finish(cudaStream_t stream);
/// The same for all streams.
void finish_all();

}  // namespace emulator
