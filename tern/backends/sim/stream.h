// A simulated stream: a queue of tasks and the thread that does them in order.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "tern/backends/sim/event.h"
#include "tern/backends/sim/observation.h"
#include "tern/core/philox.h"

namespace tern::sim {

/// Something for a stream to do.
class Task {
 public:
  virtual ~Task() = default;
  /// What it throws becomes the stream's failure. Not called while the stream has one.
  virtual void run() = 0;
};

struct Jitter {
  uint64_t seed;
  double longest_delay;  ///< seconds
};

class SimStream {
 public:
  /// `threads`: CPU threads that its kernels may use.
  SimStream(int threads, std::optional<Jitter> jitter);
  /// Drops what is queued; waits for the task that runs.
  ~SimStream();

  void push(std::unique_ptr<Task> task);
  std::shared_ptr<SimEvent> record();
  /// What is pushed from now on runs after the event.
  void wait_for(std::shared_ptr<SimEvent> event, const Observation& observation);
  /// Blocks until all that was pushed is done or skipped; throws nothing.
  void drain() { record()->wait(); }
  /// True when nothing but records is queued or running.
  bool idle() const noexcept { return outstanding_.load(std::memory_order_acquire) == 0; }
  /// False in a process that was forked since: fork() copies no threads.
  bool has_thread() const noexcept;

 private:
  struct Record;
  struct Wait;
  struct Node {
    std::unique_ptr<Task> task;
    bool counts = true;  ///< among what is outstanding
    std::atomic<Node*> next{nullptr};
  };

  void add(std::unique_ptr<Task> task, bool counts);
  void work();
  void disturb();

  const int threads_;
  const std::optional<Jitter> jitter_;
  uint64_t disturbances_ = 0;
  FailurePtr failure_;  ///< of the thread alone

  // A queue with many producers and one consumer (D. Vyukov). Nothing flows from the consumer to the
  // producers: that would order streams which no event orders, and hide missing waits from ThreadSanitizer.
  std::atomic<Node*> newest_;
  Node* oldest_;  ///< done already; the next one is behind it
  sem_t available_;
  std::atomic<uint32_t> outstanding_{0};
  std::atomic<bool> stopping_{false};
  const uint32_t forks_;  ///< that made the process it was made in
  std::thread thread_;
};

}  // namespace tern::sim
