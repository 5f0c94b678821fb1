// The operations of a group, made of the few that a transport has. One thread of each group speaks with the
// transport, so that sums go on beside a backward.
#include "tern/parallel/process_group.h"

#include <algorithm>
#include <cstring>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/base/parallel.h"
#include "tern/device/cuda.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/shape.h"
#include "tern/parallel/collectives.h"
#include "tern/parallel/part_transport.h"
#include "tern/parallel/process_group_impl.h"

namespace tern::dist {
namespace {

/// `tensor`'s numbers, dense: its own where they are so.
Tensor dense_of(const Tensor& tensor) { return tensor.detach().contiguous(); }

void check_op(const char* operation, const Tensor& tensor, ReduceOp op) {
  TERN_CHECK(op != ReduceOp::Avg || is_floating_point(tensor.dtype()) || is_complex(tensor.dtype()),
             DTypeError, "{}: the mean of {} is no {}: take the sum", operation, name(tensor.dtype()),
             name(tensor.dtype()));
}

void check_rows(const char* operation, const Tensor& rows, int size) {
  TERN_CHECK(rows.dim() > 0 && rows.size(0) == size, ShapeError, "{}: expected {} rows, got shape {}",
             operation, size, to_string(rows.shape()));
  TERN_CHECK(rows.is_contiguous(), ValueError, "{}: expected a dense tensor", operation);
}

/// A tensor for each process, as the rows of one.
Tensor rows_of(const char* operation, const std::vector<Tensor>& tensors, int size) {
  TERN_CHECK(tensors.size() == static_cast<size_t>(size), ValueError,
             "{}: expected a tensor for each of the {} processes, got {}", operation, size, tensors.size());
  std::vector<Tensor> rows;
  for (const Tensor& x : tensors) {
    TERN_CHECK(x.shape() == tensors[0].shape(), ShapeError,
               "{}: the tensors must have one shape, got {} and {}", operation, to_string(tensors[0].shape()),
               to_string(x.shape()));
    TERN_CHECK(x.dtype() == tensors[0].dtype(), DTypeError,
               "{}: the tensors must have one dtype, got {} and {}", operation, name(tensors[0].dtype()),
               name(x.dtype()));
    rows.push_back(x.detach());
  }
  return stack(rows);
}

}  // namespace

void put_back(const Tensor& tensor, const Tensor& dense) {
  if (tensor.storage() == dense.storage()) return tensor.storage()->bump_version();
  const NoGradGuard no_grad;
  Tensor(tensor.detach()).copy_(dense);
}

ProcessGroup ProcessGroup::start(const ProcessGroupOptions& options) {
  ProcessGroup group(std::make_shared<Impl>(
      [&] {
        Impl::Opened opened{open_transport(options), {}};
        if (opened.transport) opened.neighbours = find_neighbours(*opened.transport);
        return opened;
      },
      options.timeout));
  const double cores = group.impl_->neighbours().cores;
  if (cores > 0) suggest_num_threads(static_cast<int>(cores + 0.5));
  return group;
}

std::vector<ProcessGroup> ProcessGroup::simulate(int size, const ProcessGroupOptions& options) {
  std::vector<ProcessGroup> groups;
  for (auto& transport : open_thread_transports(size, options.timeout))
    groups.push_back(ProcessGroup(std::make_shared<Impl>(
        [&] {
          const int rank = transport->rank();
          return Impl::Opened{std::move(transport), {.local_rank = rank}};
        },
        options.timeout)));
  return groups;
}

void ProcessGroup::abandon() const noexcept { impl_->abandon(); }
int ProcessGroup::rank() const { return impl_->rank(); }
int ProcessGroup::size() const { return impl_->size(); }
int ProcessGroup::local_rank() const { return impl_->neighbours().local_rank; }

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

void ProcessGroup::reduce(const Tensor& tensor, int destination, ReduceOp op) const {
  check_op("reduce", tensor, op);
  check_rank("reduce", destination, size());
  const NoGradGuard no_grad;
  const Tensor dense = rank() == destination ? dense_of(tensor) : tensor.detach().clone();
  impl_
      ->submit(dense, Intent::of(Kind::Reduce, dense, destination, op),
               [&](const Tensor& there) { impl_->all_reduce(there, op, destination); })
      .get();
  if (rank() == destination) put_back(tensor, dense);
}

Tensor ProcessGroup::reduce_scatter(const std::vector<Tensor>& tensors, ReduceOp op) const {
  const Tensor rows = rows_of("reduce_scatter", tensors, size());
  reduce_scatter_async(rows, op).get();
  return rows[rank()].clone();
}

std::vector<Tensor> ProcessGroup::all_to_all(const std::vector<Tensor>& tensors) const {
  const Tensor rows = rows_of("all_to_all", tensors, size());
  impl_
      ->submit(rows, Intent::of(Kind::AllToAll, rows[0]),
               [&](const Tensor& there) { impl_->all_to_all(there); })
      .get();
  std::vector<Tensor> theirs;
  for (int r = 0; r < size(); ++r) theirs.push_back(rows[r].clone());
  return theirs;
}

void ProcessGroup::broadcast(const Tensor& tensor, int source) const {
  check_rank("broadcast", source, size());
  const Tensor dense = dense_of(tensor);
  impl_
      ->submit(dense, Intent::of(Kind::Broadcast, dense, source),
               [&](const Tensor& there) { impl_->broadcast(there, source); })
      .get();
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

Tensor ProcessGroup::all_gather_into_tensor(const Tensor& tensor) const {
  const NoGradGuard no_grad;
  Shape shape = tensor.shape();
  shape.insert(0, size());
  const Tensor rows = empty(std::move(shape), {.dtype = tensor.dtype(), .device = tensor.device()});
  rows[rank()].copy_(tensor.detach());
  all_gather_async(rows).get();
  return rows;
}

std::vector<Tensor> ProcessGroup::all_gather(const Tensor& tensor) const {
  const Tensor rows = all_gather_into_tensor(tensor);
  std::vector<Tensor> all;
  for (int r = 0; r < size(); ++r) all.push_back(rows[r].clone());
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
  check_op("all_reduce", row, op);
  TERN_CHECK(row.is_contiguous(), ValueError, "all_reduce_async: expected a dense tensor");
  return impl_->submit(row, Intent::of(Kind::AllReduce, row, 0, op),
                       [impl = impl_.get(), op](const Tensor& there) { impl->all_reduce(there, op); });
}

std::shared_future<void> ProcessGroup::all_gather_async(const Tensor& rows) const {
  check_rows("all_gather_async", rows, size());
  return impl_->submit(rows, Intent::of(Kind::AllGather, rows[0]), [impl = impl_.get()](const Tensor& there) {
    const Tensor all = there.view({impl->size(), there.numel() / impl->size()});
    impl->all_gather(all[impl->rank()].clone(), all);
  });
}

std::shared_future<void> ProcessGroup::reduce_scatter_async(const Tensor& rows, ReduceOp op) const {
  check_rows("reduce_scatter_async", rows, size());
  check_op("reduce_scatter", rows, op);
  return impl_->submit(rows, Intent::of(Kind::ReduceScatter, rows[0], 0, op),
                       [impl = impl_.get(), op](const Tensor& there) { impl->all_to_all(there, op); });
}

std::optional<ProcessGroup> ProcessGroup::new_group(std::vector<int> ranks) const {
  TERN_CHECK(!impl_->is_part(), ValueError, "new_group: make it of the group that all processes are in");
  TERN_CHECK(!ranks.empty(), ValueError, "new_group: a group has at least one process");
  for (const int rank : ranks) check_rank("new_group", rank, size());
  std::sort(ranks.begin(), ranks.end());
  TERN_CHECK(std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end(), ValueError,
             "new_group: a rank occurs twice");
  Shape members;
  for (const int rank : ranks) members.push_back(rank);
  const Intent mine{.shape = Intent::hash_of(members), .kind = Kind::NewGroup};
  int number = 0;
  impl_->run([&] {
    impl_->agree(mine);
    number = impl_->next_group();
  });
  if (!std::binary_search(ranks.begin(), ranks.end(), rank())) return std::nullopt;
  return ProcessGroup(std::make_shared<Impl>(
      [&] {
        Impl::Opened opened{nullptr, impl_->neighbours()};
        if (ranks.size() > 1)
          opened.transport =
              open_part_transport(std::shared_ptr<Transport>(impl_, impl_->transport()), ranks, number,
                                  [whole = impl_.get()] { whole->look_after_sends(); });
        return opened;
      },
      impl_->timeout(), /*is_part=*/true));
}

}  // namespace tern::dist
