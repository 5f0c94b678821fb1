// Events through the backend of the stream that they are recorded on.
#include "tern/device/event.h"

#include <thread>

#include "tern/base/check.h"
#include "tern/device/cuda.h"
#include "tern/device/launch.h"
#include "tern/device/recorder.h"
#include "tern/device/registry.h"

namespace tern {

void EventRecord::wait_until_done() const noexcept {
  while (!done()) std::this_thread::yield();
}

void Event::record(Stream stream) {
  Recorder* recorder = detail::this_recorder();
  if (recorder) recorder->end_segment();
  record_ = std::make_shared<std::shared_ptr<EventRecord>>(
      backend_of(stream.device.type).record_event(stream, options_.enable_timing));
  if (recorder) recorder->event_recorded(record_, stream, options_.enable_timing);
}

void Event::record() {
  record(current_stream(cuda::is_available() ? Device(DeviceType::CUDA, cuda::current_device()) : kCPU));
}

void Event::wait(Stream stream) const {
  if (record_ && !stream.device.is_cpu()) {
    if (Recorder* recorder = detail::this_recorder()) recorder->event_waited(record_, stream);
    return backend_of(stream.device.type).wait_event(stream, *record_);
  }
  synchronize();  // work on the CPU runs at once: whoever queues it waits
}

bool Event::query() const noexcept { return !record_ || last().done(); }

void Event::synchronize() const {
  if (!record_) return;
  if (!last().done()) detail::host_reads("Event::synchronize");
  detail::observed({.kind = Activity::Kind::Wait, .name = "wait for event"},
                   [&] { (*record_)->synchronize(); });
}

void Event::wait_until_done() const noexcept {
  if (record_) last().wait_until_done();
}

double Event::elapsed_time(const Event& end) const {
  TERN_CHECK(options_.enable_timing && end.options_.enable_timing, ValueError,
             "elapsed_time: both events must be made with enable_timing: Event({{.enable_timing = true}})");
  TERN_CHECK(record_ && end.record_, ValueError,
             "elapsed_time: both events must be recorded before calculating elapsed time");
  TERN_CHECK(last().done() && end.last().done(), ValueError,
             "elapsed_time: both events must be completed: call synchronize() on the end event first");
  return (end.last().seconds() - last().seconds()) * 1e3;
}

}  // namespace tern
