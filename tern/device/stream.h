// Stream: a queue of work on one device, as a value; which one operators use; and the guards that change it
// for a while. Events are in device/event.h.
#pragma once

#include <cstdint>

#include "tern/core/device.h"

namespace tern {

class Event;

/// The GPUs that one process can see.
inline constexpr int kMaxGpus = 64;

/// The queue number `id` of a device; 0 is the default one, and the only one of the CPU, where work is done
/// at once. Work on one stream runs in order; work on two streams runs in any order unless one waits for an
/// event of the other. The host waits only where it says so.
struct Stream {
  Device device;
  uint16_t id = 0;
  bool operator==(const Stream&) const noexcept = default;

  /// Blocks the host until all work queued here is done. Throws what that work threw.
  void synchronize() const;
  /// True when all work queued here is done. Never blocks.
  bool query() const;
  /// Work queued here from now on runs after what `other` has been given so far. Does not block the host.
  void wait_stream(Stream other) const;
  /// Work queued here from now on runs after the event's last recording. Does not block the host.
  void wait_event(const Event& event) const;
};

/// A stream of the device's pool, in turn: two of them may be the same one once the pool is used up. The CPU
/// has its default stream only. Throws DeviceError for an absent device.
Stream new_stream(Device device);

/// Blocks the host until all work on all streams of `device` is done. Throws what that work threw.
void synchronize(Device device);

namespace detail {
/// Blocks the host until all streams of `device` have done what they have been given so far. The errors of
/// their work are left to whoever waits for its results.
void wait_for_streams(Device device) noexcept;
/// Per thread: the GPU that `cuda` means, and the stream of each GPU that operators use.
extern constinit thread_local int current_gpu;
extern constinit thread_local uint16_t current_streams[kMaxGpus];
}  // namespace detail

/// The stream that operators on `device` (its index resolved) use when called from this thread.
inline Stream current_stream(Device device) noexcept {
  return Stream{device, device.is_cpu() ? uint16_t{0} : detail::current_streams[device.index]};
}

/// Makes a GPU the one that `cuda` means, for the calling thread, while the guard lives. For the CPU it does
/// nothing. Throws DeviceError for a GPU that is not there, `cuda` on a machine without GPUs too.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_;
};

/// Operators called from this thread use `stream` on its device, which becomes the current one, while the
/// guard lives. Ends do not wait: order the streams with wait_stream().
class StreamGuard {
 public:
  explicit StreamGuard(Stream stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  DeviceGuard device_;
  Stream previous_;
};

}  // namespace tern
