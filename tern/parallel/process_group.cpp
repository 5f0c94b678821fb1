// The operations of a group, made of the few that a transport has. One thread of each group speaks with the
// transport, so that sums go on beside a backward.
#include "tern/parallel/process_group.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/base/parallel.h"
#include "tern/device/cuda.h"
#include "tern/device/event.h"
#include "tern/device/recorder.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"
#include "tern/parallel/gpu_route.h"
#include "tern/parallel/transport.h"

namespace tern::dist {
namespace {

/// What a process sends at a time through host memory, and all of them together between GPUs.
constexpr int64_t kPieceBytes = int64_t{4} << 20, kLinkBytes = int64_t{32} << 20;

enum class Kind : uint8_t { AllReduce, Broadcast, AllGather, AllGatherText, Barrier, Leave };
constexpr const char* kKindNames[] = {"all_reduce",          "broadcast", "all_gather",
                                      "all_gather of texts", "barrier",   "leave"};
constexpr const char* kOpNames[] = {"sum", "avg", "product", "min", "max"};

/// What a process is about to do. Sent as bytes.
struct Intent {
  uint64_t shape = 0;  ///< a hash
  int64_t numel = 0;
  int32_t source = 0;
  Kind kind = Kind::Barrier;
  ReduceOp op = ReduceOp::Sum;
  DType dtype = DType::UInt8;
  bool on_gpu = false;  ///< of one that a link may take

  /// Where the tensors lie is each process' own affair.
  bool agrees(Intent other) const {
    other.on_gpu = on_gpu;
    return *this == other;
  }
  bool operator==(const Intent&) const = default;
  std::string str() const {
    std::string text = kKindNames[static_cast<size_t>(kind)];
    if (kind == Kind::AllReduce) text += fmt::format(" ({})", kOpNames[static_cast<size_t>(op)]);
    if (kind == Kind::Broadcast) text += fmt::format(" from rank {}", source);
    if (kind < Kind::AllGatherText) text += fmt::format(" of {} {}", numel, name(dtype));
    return text;
  }
};

/// The processes were about to do different things.
struct Disagreement : DistributedError {
  using DistributedError::DistributedError;
};

uint64_t hash_of(const Shape& shape) {
  uint64_t hash = 0xcbf29ce484222325;
  for (int64_t size : shape) hash = (hash ^ static_cast<uint64_t>(size)) * 0x100000001b3;
  return hash;
}

void combine(Tensor& total, const Tensor& part, ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Avg:
      total.add_(part);
      break;
    case ReduceOp::Product:
      total.mul_(part);
      break;
    case ReduceOp::Min:
      total = minimum(total, part);
      break;
    case ReduceOp::Max:
      total = maximum(total, part);
      break;
  }
}

/// What the rows of `parts`, one of each process, come to: added in their order.
Tensor reduced(const Tensor& parts, ReduceOp op) {
  const bool is_small = parts.dtype() == DType::Float16 || parts.dtype() == DType::BFloat16;
  Tensor total = parts[0].to(is_small ? DType::Float32 : parts.dtype(), {.copy = true});
  for (int64_t r = 1; r < parts.size(0); ++r) combine(total, parts[r], op);
  if (op == ReduceOp::Avg) total.div_(parts.size(0));
  return total.to(parts.dtype());
}

}  // namespace

class ProcessGroup::Impl {
 public:
  /// `open` is called by the thread that will speak with the transport; null makes a group of one.
  Impl(std::function<std::unique_ptr<Transport>()> open, std::chrono::milliseconds timeout)
      : route_(std::in_place, timeout), thread_([this] { work(); }) {
    try {
      run([&] {
        transport_ = open();
        if (!transport_) return;
        rank_ = transport_->rank();
        size_ = transport_->size();
        local_rank_ = transport_->local_rank();
        cores_ = transport_->cores();
      });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Impl() {
    const bool is_unwinding = std::uncaught_exceptions() > 0;
    post(std::packaged_task<void()>([&] {
      try {
        if (transport_ && (is_over_ || (!failure_ && !is_unwinding))) leave();
      } catch (const std::exception&) {  // the others have ended
      }
      route_.reset();
      transport_.reset();
    }));
    stop();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  int local_rank() const noexcept { return local_rank_; }
  double cores() const noexcept { return cores_; }

  static void check_not_recorded() {
    TERN_CHECK(tern::detail::this_recorder() == nullptr, CaptureError,
               "a recorded step cannot wait for other processes: leave what they do together out of it");
  }
  /// What the thread does next, unless it failed before.
  std::shared_future<void> submit(std::function<void()> task) {
    check_not_recorded();
    std::packaged_task<void()> packaged([this, task = std::move(task)] {
      TERN_CHECK(!failure_, DistributedError, "this group does not work any more: {}", *failure_);
      try {
        task();
      } catch (const Disagreement&) {
        throw;  // all were told, and are in step
      } catch (const std::exception& error) {
        failure_ = error.what();
        throw;
      }
    });
    std::shared_future<void> result = packaged.get_future().share();
    post(std::move(packaged));
    return result;
  }
  void run(std::function<void()> task) { submit(std::move(task)).get(); }

  /// Compares what the processes are about to do. True when all do it on a GPU that a link may take.
  bool agree(const Intent& mine) {
    if (size_ == 1) return false;
    std::vector<Intent> all(static_cast<size_t>(size_));
    transport_->all_gather(&mine, all.data(), sizeof mine);
    const auto gone =
        std::find_if(all.begin(), all.end(), [](const Intent& i) { return i.kind == Kind::Leave; });
    is_over_ = gone != all.end();
    TERN_CHECK(!is_over_, DistributedError,
               "rank {} has left the group, rank {} calls {}: call the same operations in the same order on "
               "all of them",
               gone - all.begin(), rank_, mine.str());
    const auto other =
        std::find_if(all.begin(), all.end(), [&](const Intent& i) { return !i.agrees(all[0]); });
    if (other == all.end())
      return std::all_of(all.begin(), all.end(), [](const Intent& i) { return i.on_gpu; });
    const std::string first = all[0].str(), second = other->str();
    TERN_THROW(
        Disagreement,
        "the processes do not do the same: rank 0 calls {}, rank {} {}{}: call the same operations in the "
        "same order on all of them",
        first, other - all.begin(), second, first == second ? " of another shape" : "");
  }

  /// An operation on `dense`, whose work until `ready` comes first: `body` gets its numbers where they can be
  /// exchanged, and `dense` becomes what they are then.
  std::shared_future<void> submit(const Tensor& dense, Intent mine, std::function<void(const Tensor&)> body) {
    check_not_recorded();
    Event ready;
    if (!dense.is_cpu()) ready.record(current_stream(dense.device()));
    return submit([this, dense, mine, ready, body = std::move(body)]() mutable {
      const NoGradGuard no_grad;
      const Device device = dense.device();
      mine.on_gpu = device.is_cuda() && (!route_->is_opened() || route_->links(device));
      const bool on_gpus = agree(mine);
      if (size_ == 1 || dense.numel() == 0) return;
      if (on_gpus && !route_->is_opened()) {
        route_->open(device, *transport_);
        const std::lock_guard lock(mutex_);
        gpu_route_ = route_->description();
      }
      if (device.is_cpu()) return body(dense);
      if (on_gpus && route_->links(device)) return route_->run_on_link(ready, [&] { body(dense); });
      route_->run_on_host(dense, ready, body);
    });
  }
  std::string gpu_route() const {
    const std::lock_guard lock(mutex_);
    return gpu_route_;
  }

  void all_reduce(const Tensor& row, ReduceOp op) {
    const int64_t numel = row.numel();
    const int64_t most =
        (row.is_cpu() ? kPieceBytes : kLinkBytes / size_) / static_cast<int64_t>(itemsize(row.dtype()));
    const Tensor flat = row.view({numel});
    const int64_t piece = std::min(most, (numel + size_ - 1) / size_);
    Tensor sent = empty({size_, piece}, {.dtype = row.dtype(), .device = row.device()}),
           received = empty_like(sent);
    const size_t nbytes = static_cast<size_t>(piece) * itemsize(row.dtype());
    for (int64_t first = 0; first < numel; first += piece * size_) {
      const int64_t count = std::min(numel - first, piece * size_);
      Tensor region = flat.narrow(0, first, count), padded = sent.view({size_ * piece}).narrow(0, 0, count);
      padded.copy_(region);
      if (count < size_ * piece) sent.view({size_ * piece}).narrow(0, count, size_ * piece - count).zero_();
      if (row.is_cpu())
        transport_->all_to_all(sent.data_ptr(), received.data_ptr(), nbytes);
      else
        route_->link().all_to_all(current_stream(row.device()), sent.data_ptr(), received.data_ptr(), nbytes);
      const Tensor mine = reduced(received, op).contiguous();
      all_gather(mine, sent);
      region.copy_(padded);
    }
  }

  void broadcast(const Tensor& dense, int source) {
    if (dense.is_cpu())
      transport_->broadcast(dense.data_ptr(), dense.nbytes(), source);
    else
      route_->link().broadcast(current_stream(dense.device()), dense.data_ptr(), dense.nbytes(), source);
  }

  /// The processes' `mine`, dense, one after the other into `all`, on the same device.
  void all_gather(const Tensor& mine, const Tensor& all) {
    if (mine.is_cpu())
      transport_->all_gather(mine.data_ptr(), all.data_ptr(), mine.nbytes());
    else
      route_->link().all_gather(current_stream(mine.device()), mine.data_ptr(), all.data_ptr(),
                                mine.nbytes());
  }

  /// The `nbytes` at `sent` of all processes, `handle` is given them piece by piece: handle(rank, offset,
  /// bytes, number of them).
  template <class Handle>
  void all_gather(const void* sent, size_t nbytes, const Handle& handle) {
    if (size_ == 1) return handle(0, size_t{0}, static_cast<const char*>(sent), nbytes);
    constexpr size_t kMost = kPieceBytes;
    std::vector<char> received(std::min(nbytes, kMost) * static_cast<size_t>(size_));
    for (size_t first = 0; first < nbytes; first += kMost) {
      const size_t count = std::min(kMost, nbytes - first);
      transport_->all_gather(static_cast<const char*>(sent) + first, received.data(), count);
      for (size_t r = 0; r < static_cast<size_t>(size_); ++r)
        handle(r, first, static_cast<const char*>(received.data()) + r * count, count);
    }
  }

 private:
  /// Those that are about to do something else are told.
  void leave() {
    const Intent intent{.kind = Kind::Leave};
    transport_->leave(is_over_ ? nullptr : &intent, sizeof intent);
  }
  void post(std::packaged_task<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }
  void work() {
    for (;;) {
      std::packaged_task<void()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopped_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  std::unique_ptr<Transport> transport_;
  std::optional<GpuRoute> route_;
  int rank_ = 0, size_ = 1, local_rank_ = 0;
  double cores_ = 0;
  std::optional<std::string> failure_;  ///< of the first operation that left the processes out of step
  bool is_over_ = false;                ///< that is because one has left, which all know
  mutable std::mutex mutex_;
  std::string gpu_route_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> tasks_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses the others
};

namespace {

Intent intent(Kind kind, const Tensor& tensor) {
  return {.shape = hash_of(tensor.shape()), .numel = tensor.numel(), .kind = kind, .dtype = tensor.dtype()};
}

/// `tensor`'s numbers, dense: its own where they are so.
Tensor dense_of(const Tensor& tensor) { return tensor.detach().contiguous(); }

/// Puts into `tensor` what `dense`, of dense_of(), has become.
void put_back(const Tensor& tensor, const Tensor& dense) {
  if (tensor.storage() == dense.storage()) return tensor.storage()->bump_version();
  const NoGradGuard no_grad;
  Tensor(tensor.detach()).copy_(dense);
}

void check_op(const Tensor& tensor, ReduceOp op) {
  TERN_CHECK(op != ReduceOp::Avg || is_floating_point(tensor.dtype()), DTypeError,
             "all_reduce: the mean of {} is no {}: take the sum", name(tensor.dtype()), name(tensor.dtype()));
}

}  // namespace

ProcessGroup ProcessGroup::start(const ProcessGroupOptions& options) {
  ProcessGroup group(
      std::make_shared<Impl>([=] { return open_transport(options.timeout); }, options.timeout));
  if (group.impl_->cores() > 0) suggest_num_threads(static_cast<int>(group.impl_->cores() + 0.5));
  return group;
}

std::vector<ProcessGroup> ProcessGroup::simulate(int size, const ProcessGroupOptions& options) {
  std::vector<ProcessGroup> groups;
  for (auto& transport : open_thread_transports(size, options.timeout))
    groups.push_back(
        ProcessGroup(std::make_shared<Impl>([&] { return std::move(transport); }, options.timeout)));
  return groups;
}

int ProcessGroup::rank() const { return impl_->rank(); }
int ProcessGroup::size() const { return impl_->size(); }
int ProcessGroup::local_rank() const { return impl_->local_rank(); }

Device ProcessGroup::device() const {
  const int gpus = cuda::device_count();
  return gpus == 0 ? kCPU : Device(DeviceType::CUDA, local_rank() % gpus);
}

std::string ProcessGroup::gpu_route() const { return impl_->gpu_route(); }

void ProcessGroup::all_reduce(const Tensor& tensor, ReduceOp op) const {
  const Tensor dense = dense_of(tensor);
  all_reduce_async(dense, op).get();
  put_back(tensor, dense);
}

void ProcessGroup::broadcast(const Tensor& tensor, int source) const {
  TERN_CHECK(source >= 0 && source < size(), ValueError, "broadcast: there is no rank {} among {}", source,
             size());
  const Tensor dense = dense_of(tensor);
  Intent mine = intent(Kind::Broadcast, dense);
  mine.source = source;
  impl_->submit(dense, mine, [&](const Tensor& there) { impl_->broadcast(there, source); }).get();
  put_back(tensor, dense);
}

std::string ProcessGroup::broadcast(std::string text, int source) const {
  const Tensor size = full({}, static_cast<int64_t>(text.size()), {.dtype = DType::Int64});
  broadcast(size, source);
  text.resize(static_cast<size_t>(size.item<int64_t>()));
  broadcast(from_blob(static_cast<void*>(text.data()), {static_cast<int64_t>(text.size())}, DType::UInt8),
            source);
  return text;
}

std::vector<Tensor> ProcessGroup::all_gather(const Tensor& tensor) const {
  const NoGradGuard no_grad;
  Tensor rows = empty({size(), tensor.numel()}, {.dtype = tensor.dtype(), .device = tensor.device()});
  rows[rank()].copy_(tensor.detach().reshape({tensor.numel()}));
  impl_
      ->submit(rows, intent(Kind::AllGather, tensor),
               [&](const Tensor& there) {
                 const Tensor all = there.view(rows.shape()), mine = all[rank()].clone();
                 if (!all.is_cpu()) return impl_->all_gather(mine, all);
                 impl_->all_gather(mine.data_ptr(), mine.nbytes(),
                                   [&](size_t r, size_t at, const char* bytes, size_t count) {
                                     std::memcpy(static_cast<char*>(all.data_ptr()) + r * mine.nbytes() + at,
                                                 bytes, count);
                                   });
               })
      .get();
  std::vector<Tensor> all;
  for (int r = 0; r < size(); ++r) all.push_back(rows[r].clone().view(tensor.shape()));
  return all;
}

std::vector<std::string> ProcessGroup::all_gather(const std::string& text) const {
  std::vector<std::string> all(static_cast<size_t>(size()));
  impl_->run([&] {
    impl_->agree({.kind = Kind::AllGatherText});
    uint64_t nbytes = text.size(), most = 0;
    impl_->all_gather(&nbytes, sizeof nbytes, [&](size_t r, size_t, const char* bytes, size_t) {
      uint64_t theirs;
      std::memcpy(&theirs, bytes, sizeof theirs);
      all[r].resize(theirs);
      most = std::max(most, theirs);
    });
    const std::string padded = text + std::string(most - text.size(), '\0');
    impl_->all_gather(padded.data(), most, [&](size_t r, size_t at, const char* bytes, size_t count) {
      if (at < all[r].size()) std::memcpy(all[r].data() + at, bytes, std::min(count, all[r].size() - at));
    });
  });
  return all;
}

void ProcessGroup::barrier() const {
  impl_->run([&] { impl_->agree({.kind = Kind::Barrier}); });
}

std::shared_future<void> ProcessGroup::all_reduce_async(const Tensor& row, ReduceOp op) const {
  check_op(row, op);
  TERN_CHECK(row.is_contiguous(), ValueError, "all_reduce_async: expected a dense tensor");
  Intent mine = intent(Kind::AllReduce, row);
  mine.op = op;
  return impl_->submit(row, mine,
                       [impl = impl_.get(), op](const Tensor& there) { impl->all_reduce(there, op); });
}

}  // namespace tern::dist
