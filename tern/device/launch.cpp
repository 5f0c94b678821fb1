// The observed and queued forms of a launch.
#include "tern/device/launch.h"

#include "tern/device/recorder.h"
#include "tern/device/scope.h"

namespace tern {

namespace detail {

std::atomic<LaunchObserver*> launch_observer{nullptr};
std::atomic<int> launch_followers{0};
constinit thread_local Scope scope{};

void launch_slowly(Backend& backend, Stream stream, const Launch& launch) {
  Recorder* recorder = this_recorder();
  const Launch& given = recorder ? recorder->launched(backend, stream, launch) : launch;
  if (!backend.runs_at_once()) return backend.enqueue(stream, given);
  observed({.stream = stream, .name = given.name, .kernel = given.id, .args = given.args},
           [&] { backend.kernels()[given.id](LaunchContext{stream}, given.args); });
}

}  // namespace detail

LaunchObserver* set_launch_observer(LaunchObserver* observer) noexcept {
  LaunchObserver* before = detail::launch_observer.exchange(observer, std::memory_order_acq_rel);
  detail::launch_followers += (observer != nullptr) - (before != nullptr);
  return before;
}

}  // namespace tern
