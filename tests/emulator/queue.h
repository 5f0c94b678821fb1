// Streams and events: work that was given to a stream and has not been done yet. Streams take turns in an
// order that is drawn, so that what nobody ordered happens in another order now and then.
#pragma once

#include <driver_types.h>

#include <functional>
#include <memory>
#include <mutex>

namespace emulator {

/// Held by every entry of the runtime: one thing happens at a time.
std::recursive_mutex& big_lock();

/// A point in a stream.
struct Mark {
  bool reached = false;
  double seconds = 0;
};

/// Adds work to a stream, or to the graph that is made of it.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

/// Lets the time of events pass, as if work had taken that long.
void pass_time(double seconds);

/// Does what was given to a stream until it is empty. The error of a stream of which a graph is made.
cudaError_t finish(cudaStream_t stream);
/// The same for all streams.
void finish_all();

}  // namespace emulator
