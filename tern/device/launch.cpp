// The observed and queued forms of a launch.
#include "tern/device/launch.h"

namespace tern {

namespace detail {

std::atomic<LaunchObserver*> launch_observer{nullptr};

void launch_observed(Backend& backend, Stream stream, uint16_t id, const char* name, const void* args,
                     size_t nbytes) {
  LaunchObserver* observer = launch_observer.load(std::memory_order_acquire);
  if (observer) observer->before(stream, name, args);
  if (backend.runs_at_once())
    backend.kernels()[id](LaunchContext{stream}, args);
  else
    backend.enqueue(stream, backend.kernels()[id], args, nbytes);
  if (observer) observer->after(stream, name);
}

}  // namespace detail

LaunchObserver* set_launch_observer(LaunchObserver* observer) noexcept {
  return detail::launch_observer.exchange(observer, std::memory_order_acq_rel);
}

}  // namespace tern
