// Current devices and streams of each thread, and what a stream does through its backend.
#include "tern/device/stream.h"

#include <array>
#include <atomic>

#include "tern/base/check.h"
#include "tern/core/recording.h"
#include "tern/device/event.h"
#include "tern/device/launch.h"
#include "tern/device/registry.h"

namespace tern {

namespace detail {
constinit thread_local int current_gpu = 0;
constinit thread_local uint16_t current_streams[kMaxGpus] = {};
}  // namespace detail

void Stream::synchronize() const {
  detail::host_reads("synchronize");
  detail::observed({.kind = Activity::Kind::Wait, .stream = *this, .name = "synchronize"},
                   [&] { backend_of(device.type).synchronize(*this); });
}

bool Stream::query() const {
  detail::host_reads("query");
  return backend_of(device.type).query(*this);
}

void Stream::wait_stream(Stream other) const {
  if (*this == other) return;
  Event event;
  event.record(other);
  event.wait(*this);
}

void Stream::wait_event(const Event& event) const { event.wait(*this); }

Stream new_stream(Device device) {
  const Device where = resolve_device(device);
  if (where.is_cpu()) return Stream{where, 0};
  static std::array<std::atomic<uint32_t>, kMaxGpus> next{};
  const uint32_t turn = next[static_cast<size_t>(where.index)].fetch_add(1, std::memory_order_relaxed);
  return Stream{where, static_cast<uint16_t>(1 + turn % backend_of(where.type).num_pool_streams())};
}

void synchronize(Device device) {
  detail::host_reads("synchronize");
  const Device where = resolve_device(device);
  detail::observed({.kind = Activity::Kind::Wait, .stream = {where, 0}, .name = "synchronize"},
                   [&] { backend_of(where.type).synchronize_device(where.index); });
}

void detail::wait_for_streams(Device device) noexcept {
  uint16_t id = 0;
  const auto wait = [&](Backend& backend) {
    if (const Stream stream{device, id}; !backend.query(stream)) {
      backend.record_event(stream)->wait_until_done();
      backend.query(stream);  // which tells observers of what is done, more work behind it or not
    }
  };
  for (uint16_t last = 0; id <= last; ++id) try {
      Backend& backend = backend_of(device.type);
      last = backend.num_pool_streams();
      wait(backend);
    } catch (const Error&) {  // what is gone runs nothing
    }
}

DeviceGuard::DeviceGuard(Device device) : previous_(detail::current_gpu) {
  if (!device.is_cpu()) detail::current_gpu = resolve_device(device).index;
}

DeviceGuard::~DeviceGuard() { detail::current_gpu = previous_; }

StreamGuard::StreamGuard(Stream stream)
    : device_(stream.device), previous_(current_stream(resolve_device(stream.device))) {
  if (!stream.device.is_cpu()) detail::current_streams[previous_.device.index] = stream.id;
}

StreamGuard::~StreamGuard() {
  if (!previous_.device.is_cpu()) detail::current_streams[previous_.device.index] = previous_.id;
}

}  // namespace tern
