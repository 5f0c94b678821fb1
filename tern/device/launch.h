// The one launch point: every kernel on every device is started here. Profiling, capture and error context
// hang on its observer, never on the operators.
#pragma once

#include <atomic>
#include <cstddef>
#include <type_traits>

#include "tern/device/backend.h"

namespace tern {

/// A kernel's number in every backend's table, with the type of its arguments.
template <class Args>
struct Kernel {
  uint16_t id;
  const char* name;
};

/// Sees every launch before and after it is handed to the backend. Must outlive its registration.
class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  virtual void before(Stream stream, const char* kernel, const void* args) = 0;
  virtual void after(Stream stream, const char* kernel) = 0;
};

/// Puts an observer in place (null takes it away) and returns the one before.
LaunchObserver* set_launch_observer(LaunchObserver* observer) noexcept;

namespace detail {
extern std::atomic<Backend*> backends[kNumDeviceTypes];
extern std::atomic<LaunchObserver*> launch_observer;
void launch_observed(Backend& backend, Stream stream, uint16_t id, const char* name, const void* args,
                     size_t nbytes);
}  // namespace detail

/// Starts `kernel` on `stream`. The args are copied when the work is queued; the memory they point to must
/// stay allocated in stream order, which the caching allocator sees to.
template <class Args>
inline void launch(Stream stream, Kernel<Args> kernel, const std::type_identity_t<Args>& args) {
  static_assert(std::is_trivially_copyable_v<Args>, "kernel arguments are plain structs");
  Backend& backend = *detail::backends[static_cast<int>(stream.device.type)].load(std::memory_order_acquire);
  bool observed = detail::launch_observer.load(std::memory_order_relaxed) != nullptr;
  if (backend.runs_at_once() && !observed) [[likely]]
    backend.kernels()[kernel.id](LaunchContext{stream}, &args);
  else
    detail::launch_observed(backend, stream, kernel.id, kernel.name, &args, sizeof args);
}

}  // namespace tern
