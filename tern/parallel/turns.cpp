// Threads that pass a turn on.
#include "tern/parallel/turns.h"

#include <thread>

#include "tern/base/check.h"
#include "tern/device/recorder.h"
#include "tern/ops/thread_settings.h"
#include "tern/parallel/comm.h"

namespace tern::parallel {
namespace {

struct Place {
  Turns* turns = nullptr;
  size_t replica = 0;
};
thread_local Place place;

}  // namespace

Turns::Turns(size_t size) : ended_(size, 0), brought_(size) {}

Turns* Turns::current() noexcept { return place.turns; }

void Turns::run(const std::function<void(size_t)>& body) {
  const ThreadSettings settings;
  StepRecorder* const recorder = tern::detail::step_recorder;  // of one thread at a time, as the turn is
  std::vector<std::thread> threads;
  try {
    for (size_t r = 1; r < size(); ++r)
      threads.emplace_back([this, r, recorder, &settings, &body] {
        take_part(r, [&](size_t replica) {
          settings.apply();
          const tern::detail::RecordingGuard guard(recorder);
          body(replica);
        });
      });
  } catch (...) {  // the system gives no more threads: those that are there end at once
    failure_ = std::current_exception();
    for (size_t r = 1 + threads.size(); r < size(); ++r) ended_[r] = 1;
  }
  take_part(0, body);
  for (std::thread& thread : threads) thread.join();
  if (failure_) std::rethrow_exception(failure_);
}

void Turns::take_part(size_t r, const std::function<void(size_t)>& body) noexcept {
  const Place before = std::exchange(place, Place{this, r});
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == r; });
  }
  std::exception_ptr failure;
  if (!failure_) try {
      body(r);
    } catch (const Interrupted&) {
    } catch (...) {
      failure = std::current_exception();
    }
  place = before;
  const std::lock_guard lock(mutex_);
  if (failure && !failure_) failure_ = failure;
  ended_[r] = 1;
  pass_on(r);
}

/// Gives the turn to the next replica that has not ended.
void Turns::pass_on(size_t r) {
  for (size_t i = 1; i <= size(); ++i) {
    turn_ = (r + i) % size();
    if (!ended_[turn_]) break;
  }
  changed_.notify_all();
}

void Turns::add_up() {
  std::vector<Tensor> tensors;
  sums_.count = 0;
  for (const Sums& brought : brought_) {
    tensors.push_back(brought.values);
    sums_.count += brought.count;
    TERN_CHECK(brought.values.shape() == tensors[0].shape(), ShapeError,
               "SyncBatchNorm: the replicas are at different layers: replica 0 has statistics of shape {}, "
               "replica {} of shape {}: in training every replica must call the same layers",
               to_string(tensors[0].shape()), tensors.size() - 1, to_string(brought.values.shape()));
  }
  sums_.values = reduce_add(tensors, tensors[0].device());
  std::fill(brought_.begin(), brought_.end(), Sums());
}

Turns::Sums Turns::sum(const Sums& mine) {
  const size_t r = place.replica;
  brought_[r] = mine;
  if (++came_ == size()) {
    came_ = 0;
    add_up();
    ++meetings_;
  } else {
    std::unique_lock lock(mutex_);
    const uint64_t meeting = meetings_;
    pass_on(r);
    changed_.wait(lock, [&] { return turn_ == r; });
    if (failure_) throw Interrupted();
    // The turn came round and the meeting did not take place: somebody has ended.
    for (size_t other = 0; other < size() && meetings_ == meeting; ++other)
      TERN_CHECK(!ended_[other], ValueError,
                 "SyncBatchNorm: replica {} ended its forward without coming to this layer: in training "
                 "every replica must call the same layers",
                 other);
  }
  return {sums_.values.to(mine.values.device()), sums_.count};
}

}  // namespace tern::parallel
