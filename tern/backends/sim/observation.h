// How tasks of simulated streams are shown to the observer of launches.
#pragma once

#include <chrono>
#include <thread>

#include "tern/device/launch.h"

namespace tern::sim {

/// Made where a task is queued; tells the observer of that moment when the task ran.
class Observation {
 public:
  explicit Observation(const Activity& activity)
      : observer_(detail::launch_observer.load(std::memory_order_acquire)) {
    if (observer_) number_ = observer_->started(activity);
  }
  /// Runs `body`, which takes at least that long.
  template <class Body>
  void run(double least_seconds, Body&& body) const {
    using Clock = LaunchObserver::Clock;
    const Clock::time_point begin = Clock::now();
    body();
    const std::chrono::duration<double> least(least_seconds);
    if (least_seconds > 0)
      std::this_thread::sleep_until(begin + std::chrono::duration_cast<Clock::duration>(least));
    if (observer_) observer_->ran(number_, begin, Clock::now());
  }

 private:
  LaunchObserver* observer_;
  uint64_t number_ = 0;
};

}  // namespace tern::sim
