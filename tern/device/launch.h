// The one launch point: every kernel on every device is started here. Profiling, capture (device/capture.h)
// and error context hang on it, never on the operators.
#pragma once

#include <atomic>
#include <chrono>
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

/// Something that a device or the host was given to do.
struct Activity {
  enum class Kind : uint8_t { Kernel, Copy, Wait };
  Kind kind = Kind::Kernel;
  Stream stream = {};
  const char* name = "";
  uint16_t kernel = 0;         ///< Kernel: its number
  const void* args = nullptr;  ///< Kernel: its arguments, valid during the call
  size_t nbytes = 0;           ///< Copy: bytes moved
};

/// Sees everything that is started. Must outlive its registration and the work begun during it; its functions
/// must not throw.
class LaunchObserver {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~LaunchObserver() = default;
  /// On the thread that starts it, before it is handed to the backend. The answer is given to `ran`.
  virtual uint64_t started(const Activity& activity) noexcept = 0;
  /// When the device did it; on any thread.
  virtual void ran(uint64_t number, Clock::time_point begin, Clock::time_point end) noexcept = 0;
};

/// Puts an observer in place (null takes it away) and returns the one before.
LaunchObserver* set_launch_observer(LaunchObserver* observer) noexcept;

namespace detail {
extern std::atomic<Backend*> backends[kNumDeviceTypes];
extern std::atomic<LaunchObserver*> launch_observer;
/// Who follows launches: the observer, every thread that records a step or looks for anomalies.
extern std::atomic<int> launch_followers;
void launch_slowly(Backend& backend, Stream stream, const Launch& launch);

/// Runs `body` as an activity that observers see; `body` blocks until it is done.
template <class Body>
void observed(const Activity& activity, Body&& body) {
  LaunchObserver* observer = launch_observer.load(std::memory_order_acquire);
  if (observer == nullptr) return body();
  const uint64_t number = observer->started(activity);
  const auto begin = LaunchObserver::Clock::now();
  body();
  observer->ran(number, begin, LaunchObserver::Clock::now());
}

/// The array in host memory that `args` points to: argument structs that have one say so with host_array().
template <class Args>
HostArray host_array_of(const Args& args) {
  if constexpr (requires { host_array(args); })
    return host_array(args);
  else
    return {};
}

template <class Args>
RandomPlace random_place_of([[maybe_unused]] const Args& args) {
  if constexpr (requires { args.seed + args.position; }) {
    const auto* start = reinterpret_cast<const char*>(&args);
    return {static_cast<size_t>(reinterpret_cast<const char*>(&args.seed) - start),
            static_cast<size_t>(reinterpret_cast<const char*>(&args.position) - start),
            static_cast<size_t>(reinterpret_cast<const char*>(&args.origin) - start)};
  } else {
    return {};
  }
}
}  // namespace detail

/// Starts `kernel` on `stream`. The args are copied when the work is queued; the memory they point to must
/// stay allocated in stream order, which the caching allocator sees to.
template <class Args>
inline void launch(Stream stream, Kernel<Args> kernel, const std::type_identity_t<Args>& args) {
  static_assert(std::is_trivially_copyable_v<Args>, "kernel arguments are plain structs");
  Backend& backend = *detail::backends[static_cast<int>(stream.device.type)].load(std::memory_order_acquire);
  const bool followed = detail::launch_followers.load(std::memory_order_relaxed) != 0;
  if (backend.runs_at_once() && !followed) [[likely]] {
    backend.kernels()[kernel.id](LaunchContext{stream}, &args);
  } else {
    const Launch queued{kernel.id,
                        kernel.name,
                        &args,
                        sizeof args,
                        detail::host_array_of(args),
                        detail::random_place_of(args)};
    detail::launch_slowly(backend, stream, queued);
  }
}

}  // namespace tern
