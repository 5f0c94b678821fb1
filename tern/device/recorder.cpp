// Recording what a step does to devices, and doing it again.
#include "tern/device/recorder.h"

#include <algorithm>
#include <cstring>

#include "tern/base/check.h"
#include "tern/base/small_vector.h"
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
    draws_.push_back(std::make_unique<Draws>(Draws{generator, first, counters, first}));
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
  Segment ended = std::exchange(segment_, {});
  SegmentOp op{ended.backend->end_recording(ended.stream), std::move(ended.origins)};
  run(op);
  ops_.emplace_back(std::move(op));
}

void Recorder::run(const SegmentOp& segment) {
  SmallVector<PhiloxState, 4> origins;
  for (const Draws* draws : segment.origins) origins.push_back(draws->now);
  segment.work->run({origins.data(), origins.size()});
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

Recorder::Drawn Recorder::drawn_by(const Launch& launch) const {
  if (launch.random.position_offset == 0) return {nullptr, 0};
  const PhiloxState start = KeptLaunch(launch).random_start();
  for (const auto& draws : draws_)
    if (start.seed == draws->first.seed && start.position - draws->first.position < draws->counters)
      return {draws.get(), start.position - draws->first.position};
  return {nullptr, 0};
}

uint32_t Recorder::origin_of(Draws* draws) {
  std::vector<Draws*>& origins = segment_.origins;
  const auto found = std::find(origins.begin(), origins.end(), draws);
  const auto number = static_cast<uint32_t>(found - origins.begin()) + 1;
  if (number > kMostOrigins) return 0;
  if (found == origins.end()) origins.push_back(draws);
  return number;
}

const Launch& Recorder::launched(Backend& backend, Stream stream, const Launch& launch) {
  check_unconditional(launch.name);
  ++num_launches_;
  last_kernel_ = launch.name;
  works_on(stream.device);
  const Drawn drawn = drawn_by(launch);
  if (in_segment(backend, stream)) {
    if (drawn.draws == nullptr) return launch;
    if (const uint32_t origin = origin_of(drawn.draws)) {
      redirected_.emplace(launch);
      redirected_->set_random({0, drawn.position});
      redirected_->set_origin(origin);
      return redirected_->launch();
    }
  }
  end_segment();
  ops_.emplace_back(LaunchOp{&backend, stream, KeptLaunch(launch), drawn});
  return launch;
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
    if (auto* op = std::get_if<LaunchOp>(&each)) {
      if (op->drawn.draws) {
        const Generator::State& now = op->drawn.draws->now;
        op->kept.set_random({now.seed, now.position + op->drawn.position});
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
      run(*segment);
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
