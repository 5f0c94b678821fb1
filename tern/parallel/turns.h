// Turns: the forwards of several replicas that must meet on the way, as the layers of
// parallel/sync_batch_norm.h do. Replicas that need not meet run one after the other on the calling thread
// (parallel/data_parallel.h).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::parallel {

/// Runs a function for each of several replicas on a thread of its own, but only one at a time: a replica
/// runs until it comes to a meeting or to its end, then the next one does. So random numbers are drawn,
/// operators recorded and work queued in the same order in every run, and nothing needs a lock; the devices
/// work at the same time all the same, since they are asynchronous.
class Turns {
 public:
  explicit Turns(size_t size);

  /// Calls body(r) for r = 0 .. size - 1; body(0) on the calling thread. The settings of threads (grad mode,
  /// autocast, devices, streams) are the caller's. Throws what the first body to fail threw, after all of
  /// them have ended.
  void run(const std::function<void(size_t)>& body);

  /// The run that the calling thread is a replica of; null outside of one.
  static Turns* current() noexcept;
  size_t size() const noexcept { return ended_.size(); }

  /// What replicas bring to a meeting, and take from it.
  struct Sums {
    Tensor values;
    int64_t count = 0;
  };
  /// A meeting: the sums of what all replicas come with, the tensor on the device of `mine`, added in the
  /// order of the replicas on the device of the first. Differentiable. Throws ShapeError when the tensors
  /// have different shapes, ValueError when a replica ended without coming.
  Sums sum(const Sums& mine);

 private:
  struct Interrupted {};  // thrown through a body whose run has failed elsewhere

  void take_part(size_t r, const std::function<void(size_t)>& body) noexcept;
  void pass_on(size_t r);
  void add_up();

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t turn_ = 0;
  std::vector<char> ended_;
  size_t came_ = 0;
  uint64_t meetings_ = 0;
  std::exception_ptr failure_;
  std::vector<Sums> brought_;
  Sums sums_;
};

}  // namespace tern::parallel
