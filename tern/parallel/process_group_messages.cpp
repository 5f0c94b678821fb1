// Messages between two processes of a group, and what is made of them: gather and scatter.
#include <algorithm>

#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/device/event.h"
#include "tern/device/recorder.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/parallel/collectives.h"
#include "tern/parallel/process_group_impl.h"

namespace tern::dist {
namespace {

/// So many bytes of a tensor travel at a time.
constexpr size_t kMessageBytes = size_t{16} << 20;

template <class Body>
void in_pieces(size_t nbytes, const Body& body) {
  for (size_t first = 0; first < nbytes; first += kMessageBytes)
    body(first, std::min(kMessageBytes, nbytes - first));
}

void send_bytes(Transport& transport, const Tensor& host, int destination, int channel) {
  in_pieces(host.nbytes(), [&](size_t first, size_t count) {
    transport.send(static_cast<const char*>(host.data_ptr()) + first, count, destination, channel);
  });
}
void receive_bytes(Transport& transport, const Tensor& host, int source, int channel) {
  in_pieces(host.nbytes(), [&](size_t first, size_t count) {
    transport.receive(static_cast<char*>(host.data_ptr()) + first, count, source, channel);
  });
}

/// What goes before the numbers of a message.
Intent header_of(const Tensor& tensor) { return Intent::of(Kind::Barrier, tensor); }

/// Dense, in host memory.
Tensor on_host(const Tensor& tensor) { return tensor.detach().cpu().contiguous(); }

Tensor host_like(const Tensor& tensor) {
  return empty(tensor.shape(), {.dtype = tensor.dtype(), .device = kCPU});
}

void check_peer(const char* operation, int peer, int rank, int size) {
  check_rank(operation, peer, size);
  TERN_CHECK(peer != rank, ValueError, "{}: rank {} is this process itself", operation, peer);
}

}  // namespace

void ProcessGroup::send(const Tensor& tensor, int destination) const {
  check_peer("send", destination, rank(), size());
  check_not_recorded();
  const Tensor host = on_host(tensor);
  const Intent header = header_of(tensor);
  const std::lock_guard lock(impl_->sending);
  impl_->transport()->send(&header, sizeof header, destination, Transport::kMessages);
  send_bytes(*impl_->transport(), host, destination, Transport::kMessages);
  impl_->look_after_sends();
}

void ProcessGroup::recv(const Tensor& tensor, int source) const { irecv(tensor, source).get(); }

std::shared_future<void> ProcessGroup::irecv(const Tensor& tensor, int source) const {
  check_peer("recv", source, rank(), size());
  check_not_recorded();
  Event ready;
  if (!tensor.is_cpu()) ready.record(current_stream(tensor.device()));
  return impl_->receive_in_turn(source, [tensor, source, ready, transport = impl_->transport()]() mutable {
    Intent theirs;
    transport->receive(&theirs, sizeof theirs, source, Transport::kMessages);
    const Intent mine = header_of(tensor);
    const bool fits = theirs == mine;
    const Tensor host =
        fits ? host_like(tensor) : empty({theirs.numel}, {.dtype = theirs.dtype, .device = kCPU});
    receive_bytes(*transport, host, source, Transport::kMessages);
    TERN_CHECK(fits, DistributedError, "recv: rank {} has sent {} {}, the tensor has {} {}{}", source,
               theirs.numel, name(theirs.dtype), mine.numel, name(mine.dtype),
               theirs.numel == mine.numel && theirs.dtype == mine.dtype ? ", in another shape" : "");
    if (tensor.is_cpu()) return put_back(tensor, host);
    const Stream stream = current_stream(tensor.device());
    ready.wait(stream);
    put_back(tensor, host);
    stream.synchronize();
  });
}

std::vector<Tensor> ProcessGroup::gather(const Tensor& tensor, int destination) const {
  check_rank("gather", destination, size());
  std::vector<Tensor> all;
  const Tensor mine = on_host(tensor);
  impl_->run([&] {
    impl_->agree(Intent::of(Kind::Gather, tensor, destination));
    if (rank() != destination)
      return send_bytes(*impl_->transport(), mine, destination, Transport::kOperations);
    for (int r = 0; r < size(); ++r) {
      all.push_back(r == rank() ? mine : host_like(tensor));
      if (r != rank()) receive_bytes(*impl_->transport(), all.back(), r, Transport::kOperations);
    }
  });
  for (Tensor& theirs : all) theirs = theirs.to(tensor.device(), {.copy = true});
  return all;
}

void ProcessGroup::scatter(const Tensor& tensor, const std::vector<Tensor>& parts, int source) const {
  check_rank("scatter", source, size());
  std::vector<Tensor> sent;
  if (rank() == source) {
    TERN_CHECK(parts.size() == static_cast<size_t>(size()), ValueError,
               "scatter: expected a part for each of the {} processes, got {}", size(), parts.size());
    for (const Tensor& part : parts) {
      TERN_CHECK(part.shape() == tensor.shape(), ShapeError, "scatter: the tensor has shape {}, a part {}",
                 to_string(tensor.shape()), to_string(part.shape()));
      TERN_CHECK(part.dtype() == tensor.dtype(), DTypeError, "scatter: the tensor is {}, a part {}",
                 name(tensor.dtype()), name(part.dtype()));
      sent.push_back(on_host(part));
    }
  }
  const Tensor mine = rank() == source ? sent[static_cast<size_t>(source)] : host_like(tensor);
  impl_->run([&] {
    impl_->agree(Intent::of(Kind::Scatter, tensor, source));
    if (rank() != source) return receive_bytes(*impl_->transport(), mine, source, Transport::kOperations);
    for (int r = 0; r < size(); ++r)
      if (r != source)
        send_bytes(*impl_->transport(), sent[static_cast<size_t>(r)], r, Transport::kOperations);
  });
  put_back(tensor, mine);
}

}  // namespace tern::dist
