// Recording of events, and their table. The trace is in profiler_trace.cpp.
#include "tern/kernels/profiler.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "tern/base/check.h"
#include "tern/device/registry.h"
#include "tern/device/scope.h"
#include "tern/kernels/work.h"

namespace tern {

namespace {

void wait_for_all_devices() {
  for (const Device& device : available_devices()) detail::wait_for_streams(device);
}

std::string rate_text(double amount, double seconds, const char* unit) {
  if (amount == 0 || seconds == 0) return "";
  const double rate = amount / seconds;
  return rate >= 1e9 ? fmt::format("{:.2f} G{}", rate / 1e9, unit)
                     : fmt::format("{:.2f} M{}", rate / 1e6, unit);
}

double amount_of(const ProfileRow& row, ProfileOrder order) {
  switch (order) {
    case ProfileOrder::Mean:
      return row.seconds / static_cast<double>(row.calls);
    case ProfileOrder::Calls:
      return static_cast<double>(row.calls);
    case ProfileOrder::Bytes:
      return row.bytes;
    case ProfileOrder::Flops:
      return row.flops;
    case ProfileOrder::Time:
      break;
  }
  return row.seconds;
}

}  // namespace

class Profiler::Recorder final : public LaunchObserver {
 public:
  explicit Recorder(ProfilerOptions options) : options_(options) {}

  uint64_t started(const Activity& activity) noexcept override {
    ProfileEvent event;
    event.kind = activity.kind;
    event.stream = activity.stream;
    event.name = event.kernel = activity.name;
    event.bytes = static_cast<double>(activity.nbytes);
    if (activity.kind == Activity::Kind::Kernel) {
      const Work work = work_of(activity.kernel, activity.args);
      event.name = work.op;
      event.bytes = work.bytes;
      event.flops = work.flops;
    }
    const Scope& scope = detail::scope;
    if (scope.backward_of && activity.kind == Activity::Kind::Kernel)
      event.name = std::string("backward of ") + scope.backward_of;
    if (scope.module_path) event.module = *scope.module_path;
    const std::lock_guard lock(mutex_);
    if (events_.size() >= options_.max_events) {
      ++dropped_;
      return kDropped;
    }
    events_.push_back(std::move(event));
    return events_.size() - 1;
  }

  void ran(uint64_t number, Clock::time_point begin, Clock::time_point end) noexcept override {
    if (number == kDropped) return;
    const std::lock_guard lock(mutex_);
    events_[number].begin = std::chrono::duration<double>(begin - start_).count();
    events_[number].duration = std::chrono::duration<double>(end - begin).count();
  }

  void start() {
    TERN_CHECK(detail::launch_observer.load() == nullptr, ValueError,
               "Profiler: another one is recording already: stop it first");
    events_.clear();
    dropped_ = 0;
    start_ = Clock::now();
    set_launch_observer(this);
    recording_ = true;
  }
  void stop() {
    if (!recording_) return;
    set_launch_observer(nullptr);
    wait_for_all_devices();
    recording_ = false;
  }

  const std::vector<ProfileEvent>& events() const noexcept { return events_; }
  uint64_t dropped() const noexcept { return dropped_; }

 private:
  static constexpr uint64_t kDropped = ~uint64_t{0};

  const ProfilerOptions options_;
  bool recording_ = false;
  Clock::time_point start_{};
  std::mutex mutex_;
  std::vector<ProfileEvent> events_;
  uint64_t dropped_ = 0;
};

Profiler::Profiler(ProfilerOptions options) : recorder_(std::make_unique<Recorder>(options)) {}
Profiler::~Profiler() { stop(); }
void Profiler::start() { recorder_->start(); }
void Profiler::stop() { recorder_->stop(); }
const std::vector<ProfileEvent>& Profiler::events() const { return recorder_->events(); }
uint64_t Profiler::dropped() const { return recorder_->dropped(); }

std::vector<ProfileRow> Profiler::averages(ProfileOrder order) const {
  std::map<std::string, ProfileRow> by_name;
  for (const ProfileEvent& event : events()) {
    if (event.kind == Activity::Kind::Wait) continue;
    ProfileRow& row = by_name[event.name];
    row.name = event.name;
    ++row.calls;
    row.seconds += event.duration;
    row.bytes += event.bytes;
    row.flops += event.flops;
  }
  std::vector<ProfileRow> rows;
  for (auto& [name, row] : by_name) rows.push_back(std::move(row));
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [&](const ProfileRow& row) { return amount_of(row, order); });
  return rows;
}

std::string Profiler::table(size_t limit, ProfileOrder order) const {
  const std::vector<ProfileRow> rows = averages(order);
  double total = 0;
  for (const ProfileRow& row : rows) total += row.seconds;
  size_t width = 8;
  for (size_t i = 0; i < std::min(limit, rows.size()); ++i) width = std::max(width, rows[i].name.size());
  std::string text = fmt::format("{:<{}}  {:>6}  {:>10}  {:>8}  {:>10}  {:>12}  {:>12}\n", "operator", width,
                                 "share", "time", "calls", "mean", "memory", "arithmetic");
  for (size_t i = 0; i < std::min(limit, rows.size()); ++i) {
    const ProfileRow& row = rows[i];
    text +=
        fmt::format("{:<{}}  {:>5.1f}%  {:>7.3f} ms  {:>8}  {:>7.2f} us  {:>12}  {:>12}\n", row.name, width,
                    total > 0 ? 100 * row.seconds / total : 0, row.seconds * 1e3, row.calls,
                    row.seconds * 1e6 / static_cast<double>(row.calls),
                    rate_text(row.bytes, row.seconds, "B/s"), rate_text(row.flops, row.seconds, "FLOP/s"));
  }
  if (rows.size() > limit) text += fmt::format("... and {} more\n", rows.size() - limit);
  text += fmt::format("{} events, {:.3f} ms on all devices together", events().size(), total * 1e3);
  if (dropped() > 0) text += fmt::format("; {} later events were not recorded", dropped());
  return text + "\n";
}

}  // namespace tern
