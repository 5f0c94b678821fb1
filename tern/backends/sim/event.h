// Events of simulated streams, and the failures that travel with them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

#include "tern/backends/sim/races.h"
#include "tern/device/event.h"

namespace tern::sim {

/// An error of work on a stream. It makes the streams that depend on that work skip theirs, until a wait of
/// the host has thrown it.
struct Failure {
  std::exception_ptr error;
  std::atomic<bool> delivered{false};
};
using FailurePtr = std::shared_ptr<Failure>;

/// Throws the failure, after the work that depends on it has been skipped, unless that happened already.
void deliver(const FailurePtr& failure);

/// A point in a stream's queue. Its lock belongs to it alone: a lock shared by streams would order them by
/// accident, and hide that a wait is missing.
class SimEvent final : public EventRecord {
 public:
  bool done() const noexcept override {
    if (!reached()) return false;
    tell_host();
    return true;
  }
  void synchronize() override {
    FailurePtr failure = wait();
    tell_host();
    deliver(failure);
  }
  double seconds() const noexcept override { return seconds_; }

  /// Blocks; returns the failure of the work before, if any.
  FailurePtr wait() {
    std::unique_lock lock(mutex_);
    reached_.wait(lock, [this] { return reached(); });
    return failure_;
  }
  bool reached() const noexcept { return done_.load(std::memory_order_acquire); }
  /// For the check for races, when there is one.
  void set_clock(RaceDetector* races, std::shared_ptr<const VectorClock> clock) {
    races_ = races;
    clock_ = std::move(clock);
  }
  const VectorClock* clock() const noexcept { return clock_.get(); }
  /// Called by the stream when it comes past.
  void complete(FailurePtr failure) {
    using Seconds = std::chrono::duration<double>;
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    seconds_ = Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
    done_.store(true, std::memory_order_release);
    reached_.notify_all();
  }

 private:
  void tell_host() const noexcept {
    if (races_) races_->host_knows(*clock_);
  }

  std::mutex mutex_;
  std::condition_variable reached_;
  std::atomic<bool> done_{false};
  FailurePtr failure_;
  double seconds_ = 0;
  RaceDetector* races_ = nullptr;
  std::shared_ptr<const VectorClock> clock_;
};

}  // namespace tern::sim
