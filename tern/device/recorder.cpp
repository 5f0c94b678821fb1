// Recording what a step does to devices, and doing it again.
#include "tern/device/recorder.h"

#include <algorithm>
#include <cstring>

#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/device/caching_allocator.h"
#include "tern/device/launch.h"
#include "tern/device/registry.h"
#include "tern/device/scope.h"

namespace tern {
namespace {

/// " in the forward of LeNet.conv1, in the backward of conv2d, after kernel 'add'": where the thread is.
std::string whereabouts(const char* last_kernel) {
  const Scope& scope = detail::scope;
  std::string text;
  if (scope.backward_of) text += fmt::format(" in the backward of {}", scope.backward_of);
  if (scope.module_path)
    text += fmt::format("{} in the module {}", text.empty() ? "" : ",", *scope.module_path);
  if (last_kernel) text += fmt::format("{} after the kernel '{}'", text.empty() ? "" : ",", last_kernel);
  return text;
}

uint64_t read_word(const std::byte* args, size_t offset) {
  uint64_t word;
  std::memcpy(&word, args + offset, sizeof word);
  return word;
}

}  // namespace

namespace detail {

RecordingGuard::RecordingGuard(StepRecorder* recorder) noexcept : before_(step_recorder) {
  step_recorder = recorder;
  launch_followers += recorder ? 1 : 0;
}

RecordingGuard::~RecordingGuard() {
  launch_followers -= step_recorder ? 1 : 0;
  step_recorder = before_;
}

}  // namespace detail

Recorder::~Recorder() {
  if (segment_.backend) try {  // the step has thrown
      segment_.backend->end_recording(segment_.stream);
    } catch (...) {
    }
  for (Device device : devices_) detail::wait_for_streams(device);
  kept_.clear();
  changed_.clear();
  for (CachingAllocator* allocator : allocators_) allocator->release_private(this);
}

void Recorder::host_reads(const char* operation) {
  TERN_THROW(CaptureError,
             "capture: {} reads a tensor on the host, or waits for a device{}: a replay runs on the device "
             "alone, so "
             "that item(), printing, to_vector(), cpu(), synchronize() and shapes that depend on data "
             "(nonzero(), masks "
             "as indices) cannot be part of it: move them out of the step, and read results after replay()",
             operation, whereabouts(last_kernel_));
}

void Recorder::host_writes(StorageImpl& to, size_t offset, const void* host, size_t nbytes) {
  const Storage target(&to);
  const auto* bytes = static_cast<const std::byte*>(host);
  call([target, offset, copy = std::vector<std::byte>(bytes, bytes + nbytes)] {
    copy_from_host(*target, offset, copy.data(), copy.size());
  });
}

void Recorder::changed(StorageImpl& storage) {
  if (std::find(changed_.begin(), changed_.end(), Storage(&storage)) == changed_.end())
    changed_.emplace_back(&storage);
}

void Recorder::finish() {
  end_segment();
  if (failure_) std::rethrow_exception(failure_);
  // What nobody else has is the step's own.
  std::erase_if(changed_, [](const Storage& storage) { return storage->use_count() == 1; });
}

void Recorder::random_reserved(const Generator& generator, Generator::State first, uint64_t counters) {
  const auto found = std::find_if(draws_.begin(), draws_.end(),
                                  [&](const auto& draws) { return draws->generator.same_as(generator); });
  if (found == draws_.end()) {
    draws_.push_back(std::make_unique<Draws>(Draws{generator, first, counters}));
    return;
  }
  Draws& draws = **found;
  TERN_CHECK(first.seed == draws.first.seed && first.position == draws.first.position + draws.counters,
             CaptureError,
             "capture: the step sets the state of a generator that it draws from{}: every replay would draw "
             "the same "
             "numbers: seed outside the step",
             whereabouts(nullptr));
  draws.counters += counters;
}

bool Recorder::in_segment(Backend& backend, Stream stream) {
  if (segment_.backend == &backend && segment_.stream == stream) return true;
  end_segment();
  if (!backend.begin_recording(stream)) return false;
  segment_ = {&backend, stream};
  return true;
}

void Recorder::end_segment() {
  if (!segment_.backend) return;
  Backend& backend = *segment_.backend;
  segment_.backend = nullptr;
  auto work = backend.end_recording(segment_.stream);
  work->run();
  ops_.emplace_back(SegmentOp{std::move(work)});
}

void Recorder::try_end_segment() noexcept {
  try {
    end_segment();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void Recorder::works_on(Device device) {
  if (!device.is_cpu() && std::find(devices_.begin(), devices_.end(), device) == devices_.end())
    devices_.push_back(device);
}

void Recorder::check_unconditional(const char* what) const {
  TERN_CHECK(!condition, CaptureError,
             "capture: {}: an optimizer whose step a gradient scaler may skip does more in it than the fused "
             "update of contiguous parameters and gradients{}",
             what, whereabouts(nullptr));
}

void Recorder::launched(Backend& backend, Stream stream, const Launch& launch) {
  check_unconditional(launch.name);
  ++num_launches_;
  last_kernel_ = launch.name;
  works_on(stream.device);
  // Numbers are other ones at every replay, so that their kernel is started by itself.
  if (launch.random.position_offset == 0 && in_segment(backend, stream)) return;
  end_segment();
  LaunchOp op{&backend, stream, KeptLaunch(launch), nullptr, 0};
  if (launch.random.position_offset != 0) {
    const uint64_t seed = read_word(op.kept.args(), launch.random.seed_offset);
    const uint64_t position = read_word(op.kept.args(), launch.random.position_offset);
    for (const auto& draws : draws_)
      if (seed == draws->first.seed && position - draws->first.position < draws->counters) {
        op.draws = draws.get();
        op.position = position - draws->first.position;
      }
  }
  ops_.emplace_back(std::move(op));
}

void Recorder::copied(Stream stream, void* to, Device to_device, const void* from, Device from_device,
                      size_t nbytes) {
  check_unconditional("copy");
  works_on(stream.device);
  end_segment();
  ops_.emplace_back(CopyOp{stream, to, to_device, from, from_device, nbytes});
}

void Recorder::event_recorded(const RecordedEvent& event, Stream stream, bool timed) {
  ops_.emplace_back(RecordOp{event, stream, timed});
  events_.push_back(event);
}

void Recorder::event_waited(const RecordedEvent& event, Stream stream) {
  end_segment();
  // What was recorded before the step lies in the past of every replay.
  if (std::find(events_.begin(), events_.end(), event) != events_.end())
    ops_.emplace_back(WaitOp{event, stream});
}

void Recorder::call(std::function<void()> action) {
  if (condition)
    action = [wanted = condition, action = std::move(action)] {
      if (*wanted) action();
    };
  end_segment();
  {
    const detail::RecordingGuard pause(nullptr);
    action();
  }
  ops_.emplace_back(CallOp{std::move(action)});
}

void Recorder::allocates_from(CachingAllocator& allocator) {
  if (std::find(allocators_.begin(), allocators_.end(), &allocator) != allocators_.end()) return;
  allocators_.push_back(&allocator);
  // A device with a storage on it counts as in use.
  kept_.push_back(allocator.allocate(1));
}

void Recorder::replay() {
  for (const Storage& storage : changed_) storage->bump_version();
  for (const auto& draws : draws_) draws->now = draws->generator.reserve(draws->counters);
  for (auto& each : ops_) {
    if (const auto* op = std::get_if<LaunchOp>(&each)) {
      if (op->draws) {
        const uint64_t position = op->draws->now.position + op->position;
        std::memcpy(op->kept.args() + op->kept.launch().random.seed_offset, &op->draws->now.seed,
                    sizeof(uint64_t));
        std::memcpy(op->kept.args() + op->kept.launch().random.position_offset, &position, sizeof position);
      }
      detail::launch_slowly(*op->backend, op->stream, op->kept.launch());
    } else if (const auto* copy = std::get_if<CopyOp>(&each)) {
      backend_of(copy->stream.device.type)
          .enqueue_copy(copy->stream, copy->to, copy->to_device, copy->from, copy->from_device, copy->nbytes);
    } else if (const auto* mark = std::get_if<RecordOp>(&each)) {
      *mark->event = backend_of(mark->stream.device.type).record_event(mark->stream, mark->timed);
    } else if (const auto* wait = std::get_if<WaitOp>(&each)) {
      backend_of(wait->stream.device.type).wait_event(wait->stream, *wait->event);
    } else if (auto* segment = std::get_if<SegmentOp>(&each)) {
      segment->work->run();
    } else {
      std::get<CallOp>(each).action();
    }
  }
}

size_t Recorder::num_bytes() const {
  size_t sum = 0;
  for (const CachingAllocator* allocator : allocators_) sum += allocator->private_bytes(this);
  return sum;
}

}  // namespace tern
