// The thread that speaks with the transport, and the exchanges that it makes.
#include "tern/parallel/process_group_impl.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/device/event.h"
#include "tern/device/plugin.h"
#include "tern/device/recorder.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern::dist {
namespace {

/// What a process sends at a time through host memory, on one machine, where that stays in its caches, and to
/// others; what all of them send together between GPUs; what travels in one piece.
constexpr int64_t kNearBytes = int64_t{256} << 10, kPieceBytes = int64_t{4} << 20,
                  kLinkBytes = int64_t{32} << 20, kLittleBytes = int64_t{64} << 10;
/// A transport takes so many in one call.
constexpr size_t kWholeBytes = size_t{256} << 20;

constexpr const char* kKindNames[] = {"all_reduce",          "reduce",    "reduce_scatter", "broadcast",
                                      "all_gather",          "gather",    "scatter",        "all_to_all",
                                      "all_gather of texts", "new_group", "barrier",        "leave"};
constexpr const char* kOpNames[] = {"sum", "avg", "product", "min", "max"};

/// The processes were about to do different things.
struct Disagreement : DistributedError {
  using DistributedError::DistributedError;
};

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

/// What the rows of `parts`, one of each process, come to: added in their order. May take their memory.
Tensor reduced(const Tensor& parts, ReduceOp op) {
  const bool is_small = parts.dtype() == DType::Float16 || parts.dtype() == DType::BFloat16;
  Tensor total = parts[0].to(is_small ? DType::Float32 : parts.dtype());
  for (int64_t r = 1; r < parts.size(0); ++r) combine(total, parts[r], op);
  if (op == ReduceOp::Avg) total.div_(parts.size(0));
  return total.to(parts.dtype()).contiguous();
}

}  // namespace

void check_not_recorded() {
  TERN_CHECK(tern::detail::this_recorder() == nullptr, CaptureError,
             "a recorded step cannot wait for other processes: leave what they do together out of it");
}

void check_rank(const char* operation, int rank, int size) {
  TERN_CHECK(rank >= 0 && rank < size, ValueError, "{}: there is no rank {} among {}", operation, rank, size);
}

uint64_t Intent::hash_of(IntArrayRef numbers) {
  uint64_t hash = kEmptyFingerprint;
  for (const int64_t number : numbers) hash = add_to_fingerprint(hash, static_cast<uint64_t>(number));
  return hash;
}

Intent Intent::of(Kind kind, const Tensor& tensor, int root, ReduceOp op) {
  return {.shape = hash_of(tensor.shape()),
          .numel = tensor.numel(),
          .root = root,
          .kind = kind,
          .op = op,
          .dtype = tensor.dtype()};
}

std::string Intent::str() const {
  std::string text = kKindNames[static_cast<size_t>(kind)];
  if (kind <= Kind::ReduceScatter) text += fmt::format(" ({})", kOpNames[static_cast<size_t>(op)]);
  if (kind == Kind::Broadcast || kind == Kind::Scatter) text += fmt::format(" from rank {}", root);
  if (kind == Kind::Reduce || kind == Kind::Gather) text += fmt::format(" to rank {}", root);
  if (kind < Kind::AllGatherText) text += fmt::format(" of {} {}", numel, name(dtype));
  return text;
}

ProcessGroup::Impl::Impl(const Open& open, std::chrono::milliseconds timeout, bool is_part)
    : timeout_(timeout), is_part_(is_part), route_(std::in_place, timeout), thread_([this] { work(); }) {
  try {
    run([&] {
      Opened opened = open();
      transport_ = std::move(opened.transport);
      neighbours_ = opened.neighbours;
      if (!transport_) return;
      rank_ = transport_->rank();
      size_ = transport_->size();
    });
  } catch (...) {
    stop();
    throw;
  }
}

ProcessGroup::Impl::~Impl() {
  const bool is_unwinding = is_abandoned_ || std::uncaught_exceptions() > 0;
  if (transport_) transport_->close(Transport::kMessages);
  for (auto& [source, received] : last_received_) received.wait();
  post(std::packaged_task<void()>([&] {
    try {
      // Those of a part learn of its end by what is sent here alone; others ask the whole.
      if (transport_ && (is_over_ || is_part_ || (!failure_ && !is_unwinding))) leave();
    } catch (const std::exception&) {  // the others have ended
    }
    route_.reset();
    transport_.reset();
  }));
  stop();
}

std::string ProcessGroup::Impl::gpu_route() const {
  const std::lock_guard lock(mutex_);
  return gpu_route_;
}

std::shared_future<void> ProcessGroup::Impl::submit(std::function<void()> task) {
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

bool ProcessGroup::Impl::agree(const Intent& mine) {
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
  const auto other = std::find_if(all.begin(), all.end(), [&](const Intent& i) { return !i.agrees(all[0]); });
  if (other == all.end())
    return std::all_of(all.begin(), all.end(), [](const Intent& i) { return i.on_gpu; });
  const std::string first = all[0].str(), second = other->str();
  TERN_THROW(
      Disagreement,
      "the processes do not do the same: rank 0 calls {}, rank {} {}{}: call the same operations in the "
      "same order on all of them",
      first, other - all.begin(), second, first == second ? " of another shape" : "");
}

std::shared_future<void> ProcessGroup::Impl::submit(const Tensor& dense, Intent mine,
                                                    std::function<void(const Tensor&)> body) {
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

void ProcessGroup::Impl::exchange(const Tensor& sent, const Tensor& received) {
  const size_t nbytes = sent.nbytes() / static_cast<size_t>(size_);
  if (sent.is_cpu())
    transport_->all_to_all(sent.data_ptr(), received.data_ptr(), nbytes);
  else
    route_->link().all_to_all(current_stream(sent.device()), sent.data_ptr(), received.data_ptr(), nbytes);
}

void ProcessGroup::Impl::all_reduce(const Tensor& row, ReduceOp op, std::optional<int> root) {
  const int64_t numel = row.numel(), bytes_each = static_cast<int64_t>(itemsize(row.dtype()));
  const int64_t host_bytes = neighbours_.are_all ? kNearBytes : kPieceBytes;
  const int64_t most = (row.is_cpu() ? host_bytes : kLinkBytes / size_) / bytes_each;
  // What divides among the processes travels from where it lies, what remains as one more piece; little does
  // so in one.
  const bool is_little = numel * bytes_each <= kLittleBytes;
  const int64_t piece =
      std::min(most, is_little ? (numel + size_ - 1) / size_ : std::max<int64_t>(numel / size_, 1));
  const Tensor flat = row.view({numel});
  const TensorOptions options{.dtype = row.dtype(), .device = row.device()};
  const Tensor received = empty({size_, piece}, options);
  for (int64_t first = 0; first < numel; first += piece * size_) {
    const int64_t count = std::min(numel - first, piece * size_), width = (count + size_ - 1) / size_;
    const bool is_whole = count == width * size_;
    Tensor region = flat.narrow(0, first, count), sent = region;
    if (!is_whole) {
      sent = zeros({size_ * width}, options);
      sent.narrow(0, 0, count).copy_(region);
    }
    const Tensor theirs = received.view({size_ * piece}).narrow(0, 0, size_ * width).view({size_, width});
    exchange(sent, theirs);
    const Tensor mine = reduced(theirs, op);
    if (!root || !row.is_cpu()) {
      all_gather(mine, sent);
    } else if (rank_ != *root) {
      transport_->send(mine.data_ptr(), mine.nbytes(), *root, Transport::kOperations);
      continue;
    } else {
      const Tensor places = sent.view({size_, width});
      for (int r = 0; r < size_; ++r)
        if (r == rank_)
          places[r].copy_(mine);
        else
          transport_->receive(places[r].data_ptr(), mine.nbytes(), r, Transport::kOperations);
    }
    if (!is_whole) region.copy_(sent.narrow(0, 0, count));
  }
}

void ProcessGroup::Impl::all_to_all(const Tensor& rows, std::optional<ReduceOp> op) {
  const int64_t width = rows.numel() / size_;
  const int64_t most =
      (rows.is_cpu() ? kPieceBytes : kLinkBytes / size_) / static_cast<int64_t>(itemsize(rows.dtype()));
  const Tensor table = rows.view({size_, width});
  for (int64_t first = 0; first < width; first += most) {
    const Tensor columns = table.narrow(1, first, std::min(most, width - first)), sent = columns.clone(),
                 received = empty_like(sent);
    exchange(sent, received);
    if (op)
      columns[rank_].copy_(reduced(received, *op));
    else
      Tensor(columns).copy_(received);
  }
}

void ProcessGroup::Impl::broadcast(const Tensor& dense, int source) {
  if (dense.is_cpu())
    transport_->broadcast(dense.data_ptr(), dense.nbytes(), source);
  else
    route_->link().broadcast(current_stream(dense.device()), dense.data_ptr(), dense.nbytes(), source);
}

void ProcessGroup::Impl::all_gather(const Tensor& mine, const Tensor& all) {
  if (mine.is_cpu() && mine.nbytes() <= kWholeBytes)
    transport_->all_gather(mine.data_ptr(), all.data_ptr(), mine.nbytes());
  else if (mine.is_cpu())
    all_gather(mine.data_ptr(), mine.nbytes(), [&](size_t r, size_t at, const char* bytes, size_t count) {
      std::memcpy(static_cast<char*>(all.data_ptr()) + r * mine.nbytes() + at, bytes, count);
    });
  else
    route_->link().all_gather(current_stream(mine.device()), mine.data_ptr(), all.data_ptr(), mine.nbytes());
}

void ProcessGroup::Impl::all_gather(const void* sent, size_t nbytes, const Handle& handle) {
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

/// Those that are about to do something else are told.
void ProcessGroup::Impl::leave() {
  const Intent intent{.kind = Kind::Leave};
  transport_->leave(is_over_ ? nullptr : &intent, sizeof intent);
}

std::shared_future<void> ProcessGroup::Impl::receive_in_turn(int source, std::function<void()> receive) {
  check_not_recorded();
  const std::lock_guard lock(receiving_);
  std::shared_future<void>& last = last_received_[source];
  last = std::async(std::launch::async, [before = std::move(last), receive = std::move(receive)]() mutable {
           if (before.valid()) before.wait();
           before = {};
           receive();
         }).share();
  return last;
}

bool ProcessGroup::Impl::is_sending() const {
  try {
    return transport_ && transport_->is_sending();
  } catch (const std::exception&) {  // the next operation says what is wrong
    return false;
  }
}

void ProcessGroup::Impl::look_after_sends() {
  const std::lock_guard lock(mutex_);
  changed_.notify_one();
}

void ProcessGroup::Impl::post(std::packaged_task<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

void ProcessGroup::Impl::work() {
  constexpr auto kMoment = std::chrono::microseconds(200);
  for (;;) {
    std::packaged_task<void()> task;
    {
      std::unique_lock lock(mutex_);
      const auto has_come = [&] { return stopped_ || !tasks_.empty(); };
      if (!has_come()) {
        if (is_sending())
          changed_.wait_for(lock, kMoment);
        else
          changed_.wait(lock);  // or until something is sent
        continue;
      }
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

void ProcessGroup::Impl::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace tern::dist
