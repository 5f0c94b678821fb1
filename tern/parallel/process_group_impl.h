// What is behind a ProcessGroup: the thread that speaks with the transport, the comparison of what the
// processes are about to do, and the exchanges that operations are made of. Internal to parallel.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tern/parallel/gpu_route.h"
#include "tern/parallel/neighbours.h"
#include "tern/parallel/process_group.h"
#include "tern/parallel/transport.h"

namespace tern::dist {

enum class Kind : uint8_t {
  AllReduce,
  Reduce,
  ReduceScatter,
  Broadcast,
  AllGather,
  Gather,
  Scatter,
  AllToAll,
  AllGatherText,
  NewGroup,
  Barrier,
  Leave
};

/// What a process is about to do. Sent as bytes.
struct Intent {
  uint64_t shape = 0;  ///< a hash
  int64_t numel = 0;
  int32_t root = 0;  ///< the one that has what the others get, or gets what they have
  Kind kind = Kind::Barrier;
  ReduceOp op = ReduceOp::Sum;
  DType dtype = DType::UInt8;
  bool on_gpu = false;  ///< of one that a link may take

  static uint64_t hash_of(IntArrayRef numbers);
  static Intent of(Kind kind, const Tensor& tensor, int root = 0, ReduceOp op = ReduceOp::Sum);
  /// Where the tensors lie is each process' own affair.
  bool agrees(Intent other) const {
    other.on_gpu = on_gpu;
    return *this == other;
  }
  bool operator==(const Intent&) const = default;
  std::string str() const;
};

void check_rank(const char* operation, int rank, int size);
void check_not_recorded();

class ProcessGroup::Impl {
 public:
  /// What a group begins with. No transport makes a group of one.
  struct Opened {
    std::unique_ptr<Transport> transport;
    Neighbours neighbours = {};
  };
  using Open = std::function<Opened()>;
  /// `open` is called by the thread that will speak with the transport.
  Impl(const Open& open, std::chrono::milliseconds timeout, bool is_part = false);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  const Neighbours& neighbours() const noexcept { return neighbours_; }
  std::chrono::milliseconds timeout() const noexcept { return timeout_; }
  std::string gpu_route() const;
  /// Of another group.
  bool is_part() const noexcept { return is_part_; }
  /// The end of this one is that of a process that failed.
  void abandon() noexcept { is_abandoned_ = true; }
  /// Null in a group of one. Other threads than the group's may send and receive messages.
  Transport* transport() noexcept { return transport_.get(); }

  /// What the thread does next, unless it failed before.
  std::shared_future<void> submit(std::function<void()> task);
  void run(std::function<void()> task) { submit(std::move(task)).get(); }
  /// An operation on `dense`, whose work until now comes first: `body` gets its numbers where they can be
  /// exchanged, and `dense` becomes what they are then.
  std::shared_future<void> submit(const Tensor& dense, Intent mine, std::function<void(const Tensor&)> body);

  // Called by the thread.

  /// Compares what the processes are about to do. True when all do it on a GPU that a link may take. Throws
  /// DistributedError where they do not do the same.
  bool agree(const Intent& mine);
  /// `row` becomes what those of all come to; with a root on that process only, and what it was or something
  /// else on the others.
  void all_reduce(const Tensor& row, ReduceOp op, std::optional<int> root = std::nullopt);
  void broadcast(const Tensor& dense, int source);
  /// The processes' `mine`, dense, one after the other into `all`, on the same device.
  void all_gather(const Tensor& mine, const Tensor& all);
  /// The `nbytes` at `sent` of all processes, `handle` is given them piece by piece: handle(rank, offset,
  /// bytes, number of them).
  using Handle = std::function<void(size_t, size_t, const char*, size_t)>;
  void all_gather(const void* sent, size_t nbytes, const Handle& handle);
  /// `rows`, one for each process, become those that all processes have for this one; with `op` the row of
  /// this one becomes what they come to, and the others hold anything.
  void all_to_all(const Tensor& rows, std::optional<ReduceOp> op = std::nullopt);

  /// The number of the next group that is made of this one's processes: the same on all of them.
  int next_group() { return ++groups_; }

  std::mutex sending;  ///< held from the first to the last byte of a message
  /// To be called after messages were sent.
  void look_after_sends();
  /// A receive, after those before it from the same process.
  std::shared_future<void> receive_in_turn(int source, std::function<void()> receive);

 private:
  void leave();
  void post(std::packaged_task<void()> task);
  void work();
  void stop();
  bool is_sending() const;
  void exchange(const Tensor& sent, const Tensor& received);

  std::chrono::milliseconds timeout_;
  bool is_part_;
  std::atomic<bool> is_abandoned_ = false;
  std::unique_ptr<Transport> transport_;
  std::optional<GpuRoute> route_;
  int rank_ = 0, size_ = 1, groups_ = 0;
  Neighbours neighbours_;
  std::optional<std::string> failure_;  ///< of the first operation that left the processes out of step
  bool is_over_ = false;                ///< that is because one has left, which all know
  std::mutex receiving_;
  std::map<int, std::shared_future<void>> last_received_;  ///< of each process
  mutable std::mutex mutex_;
  std::string gpu_route_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> tasks_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tern::dist
