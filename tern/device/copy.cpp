// Staging, ordering and the lifetime of what asynchronous copies use.
#include "tern/device/copy.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>

#include "tern/base/check.h"
#include "tern/device/launch.h"
#include "tern/device/recorder.h"
#include "tern/device/registry.h"

namespace tern {
namespace {

/// Large copies from pageable memory are staged in pieces, so that filling one overlaps with moving another.
constexpr size_t kStagingBytes = size_t{4} << 20;
/// So many of them lie in pinned memory at a time.
constexpr size_t kMostPieces = 8;
/// Up to here a copy of its own costs less than what a device does about memory that is not pinned.
constexpr size_t kSmallBytes = 4096;

char* at(const StorageImpl& storage, size_t offset) { return static_cast<char*>(storage.data()) + offset; }

void check_range(const char* side, const StorageImpl& storage, size_t offset, size_t nbytes) {
  TERN_CHECK(offset <= storage.nbytes() && nbytes <= storage.nbytes() - offset, IndexError,
             "copy_bytes: bytes {}+{} are outside the {} storage of {} bytes", offset, nbytes, side,
             storage.nbytes());
}

void queue_copy(Stream stream, void* to, Device to_device, const void* from, Device from_device,
                size_t nbytes) {
  if (Recorder* recorder = detail::this_recorder())
    recorder->copied(stream, to, to_device, from, from_device, nbytes);
  backend_of(stream.device.type).enqueue_copy(stream, to, to_device, from, from_device, nbytes);
}

void copy_between_gpus(StorageImpl& to, size_t to_offset, const StorageImpl& from, size_t from_offset,
                       size_t nbytes) {
  const Stream source = current_stream(from.device()), target = current_stream(to.device());
  // The copy runs on the source's stream; what the target's stream still does with the memory comes before
  // it, and what it is given from now on after it.
  source.wait_stream(target);
  queue_copy(source, at(to, to_offset), to.device(), at(from, from_offset), from.device(), nbytes);
  target.wait_stream(source);
}

}  // namespace

namespace detail {

void copy_to_host_blocking(void* host, const StorageImpl& from, size_t offset, size_t nbytes) {
  const Stream stream = current_stream(from.device());
  Backend& backend = backend_of(stream.device.type);
  const Storage staging = nbytes <= kSmallBytes ? backend.allocate_pinned(nbytes) : Storage();
  void* const to = staging ? staging->data() : host;
  backend.enqueue_copy(stream, to, kCPU, at(from, offset), from.device(), nbytes);
  stream.synchronize();
  if (staging) std::memcpy(host, staging->data(), nbytes);
}

void copy_from_host_staged(StorageImpl& to, size_t offset, const void* host, size_t nbytes) {
  const Stream stream = current_stream(to.device());
  Backend& backend = backend_of(stream.device.type);
  std::deque<std::shared_ptr<EventRecord>> copied;
  for (size_t done = 0; done < nbytes; done += kStagingBytes) {
    const size_t piece = std::min(kStagingBytes, nbytes - done);
    if (copied.size() == kMostPieces) {
      copied.front()->wait_until_done();
      copied.pop_front();
    }
    const Storage staging = backend.allocate_pinned(piece);
    std::memcpy(staging->data(), static_cast<const char*>(host) + done, piece);
    backend.enqueue_copy(stream, at(to, offset + done), to.device(), staging->data(), kCPU, piece);
    backend.record_stream(*staging, stream);
    if (nbytes > kMostPieces * kStagingBytes) copied.push_back(backend.record_event(stream));
  }
}

}  // namespace detail

void copy_bytes(StorageImpl& to, size_t to_offset, const StorageImpl& from, size_t from_offset, size_t nbytes,
                bool non_blocking) {
  check_range("target", to, to_offset, nbytes);
  check_range("source", from, from_offset, nbytes);
  if (nbytes == 0) return;
  if (to.device().is_cpu() && from.device().is_cpu())
    return queue_copy({kCPU, 0}, at(to, to_offset), kCPU, at(from, from_offset), kCPU, nbytes);
  if (!to.device().is_cpu() && !from.device().is_cpu()) {
    copy_between_gpus(to, to_offset, from, from_offset, nbytes);
    return;
  }
  const StorageImpl& host = to.device().is_cpu() ? to : from;
  const StorageImpl& remote = to.device().is_cpu() ? from : to;
  Recorder* recorder = detail::this_recorder();
  if (recorder && to.device().is_cpu() && !(host.is_pinned() && non_blocking))
    recorder->host_reads("a copy to the cpu");
  if (recorder && !host.is_pinned()) {
    // Every replay takes the bytes that the host has there then.
    return recorder->call([stream = current_stream(to.device()), target = Storage(&to), to_offset,
                           source = Storage(const_cast<StorageImpl*>(&from)), from_offset, nbytes] {
      const StreamGuard guard(stream);
      detail::copy_from_host_staged(*target, to_offset, at(*source, from_offset), nbytes);
    });
  }
  if (!host.is_pinned()) {
    if (to.device().is_cpu())
      detail::copy_to_host_blocking(at(to, to_offset), from, from_offset, nbytes);
    else
      detail::copy_from_host_staged(to, to_offset, at(from, from_offset), nbytes);
    return;
  }
  const Stream stream = current_stream(remote.device());
  queue_copy(stream, at(to, to_offset), to.device(), at(from, from_offset), from.device(), nbytes);
  if (recorder)
    recorder->keep(host);
  else if (non_blocking)
    backend_of(stream.device.type).record_stream(host, stream);
  else
    stream.synchronize();
}

}  // namespace tern
