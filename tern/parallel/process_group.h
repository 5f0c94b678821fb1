// ProcessGroup: several processes, on one machine or many, that work on one thing (torch.distributed). Their
// gradients meet in parallel/distributed_data_parallel.h, their parts of a data set are those of
// data::DistributedSampler; what carries their bytes is parallel/transport.h.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::dist {

/// Whether processes that MPI starts can speak with each other by it: Tern's plugin and MPI are there.
bool is_mpi_available();

enum class ReduceOp : uint8_t { Sum, Avg, Product, Min, Max };

struct ProcessGroupOptions {
  /// How long a process waits for the others in one operation before that is a DistributedError.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// Where the processes meet, by TCP: "tcp://10.0.0.1:29500", an address of rank 0 and a port that is free
  /// there; or by a file that all of them see, "file:///shared/meeting", in which rank 0 writes its address
  /// for as long as that takes; or "env://", as MASTER_ADDR and MASTER_PORT say. Empty: as they were started.
  std::string init_method = {};
  /// This process' number, and how many there are; negative: as RANK and WORLD_SIZE say.
  int rank = -1, world_size = -1;
};

/// A process' place among those that it works with.
///
///     tern launch -n 4 train         # or mpirun -n 4 train; docs/parallel.md: on several servers
///
///     dist::ProcessGroup group = dist::ProcessGroup::start();
///     Net net;
///     net.to(group.device());
///     dist::DistributedDataParallel model(net, group);
///
/// Every process calls the same operations in the same order: before anything is sent they compare what they
/// are about to do, and where that differs all of them throw DistributedError that says who does what. Sums
/// are taken in the order of ranks, 16-bit floats in float32: results are the same to the bit on all
/// processes and in every run. Tensors may be on any device; those on GPUs go from one to the other by NCCL
/// where every process has a GPU of its own and NCCL, else through host memory.
///
/// Copies are the same group. The last one to go leaves it, which waits for other processes to do so too, but
/// not for other threads; those that call something instead get a DistributedError that says who has left,
/// and the group is over for all. Where it goes because of an exception, the others are told that this
/// process has ended.
class ProcessGroup {
 public:
  /// The processes that `tern launch`, torchrun, mpirun or srun started this one with, or that the options
  /// say; a group of one where it was started alone. With MPI once in a process. Those that share a machine
  /// share its cores: num_threads() becomes this one's part, where nothing else has set it. Throws
  /// DistributedError.
  static ProcessGroup start(const ProcessGroupOptions& options = {});
  /// Groups of `size` threads that take the parts of processes: each is to be used by a thread of its own.
  /// For trying on one machine what is meant for many.
  static std::vector<ProcessGroup> simulate(int size, const ProcessGroupOptions& options = {});

  /// When the group goes, the others are told that this process has ended, and nobody waits: for programs in
  /// which an error is no C++ exception.
  void abandon() const noexcept;

  int rank() const;
  int size() const;
  /// The number of this process among those of its machine.
  int local_rank() const;
  /// Where this process computes: the GPU of its local rank, counted round, or the CPU where there are none.
  Device device() const;
  /// How tensors on GPUs travel: "NCCL 2.28.9", or "host memory: " and why. Empty before the first did.
  std::string gpu_route() const;

  /// Every process' tensor, of one shape and dtype, becomes their sum, mean, product, minimum or maximum.
  /// Blocks.
  void all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::Sum) const;
  /// The tensor of `destination` becomes that; those of the others stay as they are. Blocks.
  void reduce(const Tensor& tensor, int destination = 0, ReduceOp op = ReduceOp::Sum) const;
  /// Of size() tensors of one shape and dtype on each process, what all have at the place of this one comes
  /// to: their sum, mean, product, minimum or maximum. Blocks.
  Tensor reduce_scatter(const std::vector<Tensor>& tensors, ReduceOp op = ReduceOp::Sum) const;
  /// Every process' tensor, of one shape and dtype, becomes that of `source`. Blocks.
  void broadcast(const Tensor& tensor, int source = 0) const;
  /// Every process' text becomes that of `source`. Blocks.
  std::string broadcast(std::string text, int source = 0) const;
  /// The tensors of all processes, of one shape and dtype, in the order of ranks. Blocks.
  std::vector<Tensor> all_gather(const Tensor& tensor) const;
  /// The same as one tensor, with the ranks as its first dimension. Blocks.
  Tensor all_gather_into_tensor(const Tensor& tensor) const;
  /// The same on `destination`; nothing on the others. Blocks.
  std::vector<Tensor> gather(const Tensor& tensor, int destination = 0) const;
  /// Every process' tensor becomes one of the size() `parts`, of its shape and dtype, that `source` has: that
  /// at its rank. The others give no parts. Blocks.
  void scatter(const Tensor& tensor, const std::vector<Tensor>& parts = {}, int source = 0) const;
  /// Of size() tensors of one shape and dtype on each process, those of all at the place of this one, in the
  /// order of ranks. Blocks.
  std::vector<Tensor> all_to_all(const std::vector<Tensor>& tensors) const;
  /// The texts of all processes, of any length, in the order of ranks. Blocks.
  std::vector<std::string> all_gather(const std::string& text) const;
  /// Returns when all processes have come to it.
  void barrier() const;

  /// all_reduce of `row`, a dense tensor, as soon as what was asked for before is done, and what its current
  /// stream has been given so far. Does not block; `row` must be left alone until the result is there, which
  /// may throw DistributedError. Then any stream may use it.
  std::shared_future<void> all_reduce_async(const Tensor& row, ReduceOp op) const;
  /// The same for `rows`, a dense tensor of size() rows: rows[r] becomes that of rank r.
  std::shared_future<void> all_gather_async(const Tensor& rows) const;
  /// The same: rows[rank()] becomes what those of all processes at its place come to, the others hold
  /// anything.
  std::shared_future<void> reduce_scatter_async(const Tensor& rows, ReduceOp op) const;

  // Messages between two processes, of which the others need not know. They go through host memory, beside
  // all else that the group does, and arrive in the order in which they were sent.

  /// Gives `destination` the tensor's numbers, which it takes by recv(). They are copied: this does not wait
  /// for it (isend and send are one). ValueError for this process itself.
  void send(const Tensor& tensor, int destination) const;
  /// The tensor becomes the next one that `source` has sent, which must have its shape and dtype, else it is
  /// gone and this throws DistributedError. Blocks.
  void recv(const Tensor& tensor, int source) const;
  /// The same without waiting; the tensor must be left alone until the result is there.
  std::shared_future<void> irecv(const Tensor& tensor, int source) const;

  /// A group of some of the processes, in the order of their ranks here; nothing on those that are not among
  /// them. All processes of this group call it, which must not be one that was made so. Different groups may
  /// work at the same time. Blocks; leaving such a group waits for nobody. Throws ValueError for ranks that
  /// are not there, occur twice, or are none.
  std::optional<ProcessGroup> new_group(std::vector<int> ranks) const;

 private:
  class Impl;
  explicit ProcessGroup(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<Impl> impl_;
};

}  // namespace tern::dist
