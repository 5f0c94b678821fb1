// Stream: a queue of work on one device, as a value. Work on one stream runs in order; the host waits only
// where it says so.
#pragma once

#include <cstdint>

#include "tern/core/device.h"

namespace tern {

/// The queue number `id` of a device; 0 is the default one, and the only one of the CPU, where work is done
/// at once.
struct Stream {
  Device device;
  uint16_t id = 0;
  bool operator==(const Stream&) const noexcept = default;
};

/// The stream that operators on `device` use when called from this thread.
inline Stream current_stream(Device device) noexcept { return Stream{device, 0}; }

/// Blocks the host until all work queued on `device` is done.
void synchronize(Device device);

}  // namespace tern
