// Names of checkpoints, and what becomes of those that are there.
#include "tern/train/run_checkpoints.h"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tern/base/check.h"
#include "tern/io/file.h"
#include "tern/train/run_log.h"

namespace tern::train {
namespace {

namespace fs = std::filesystem;

/// What is around the step in the names of checkpoints that are kept.
constexpr std::string_view kStepBegin = "checkpoint-", kStepEnd = ".pt";

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  TERN_CHECK(!error, IoError, "remove '{}': {}", path.string(), error.message());
}

/// The step in the name of a checkpoint that was kept.
std::optional<int64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kStepBegin) || !name.ends_with(kStepEnd)) return {};
  const char* begin = name.data() + kStepBegin.size();
  const char* end = name.data() + name.size() - kStepEnd.size();
  int64_t step = 0;
  const auto [stop, error] = std::from_chars(begin, end, step);
  if (error != std::errc() || stop != end || end - begin < 8) return {};
  return step;
}

/// Calls `f(path)` for everything in the folder.
template <class F>
void for_each_in(const fs::path& folder, F&& f) {
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
    f(it->path());
  TERN_CHECK(!failed, IoError, "cannot list the folder '{}': {}", folder.string(), failed.message());
}

}  // namespace

fs::path earlier_run_in(const fs::path& folder) {
  std::error_code error;
  const fs::path checkpoint = folder / kCheckpointName;
  const bool there = fs::exists(checkpoint, error);
  TERN_CHECK(!error, IoError, "cannot open '{}': {}", checkpoint.string(), error.message());
  if (there || !fs::exists(folder, error)) return there ? checkpoint : fs::path();
  fs::path first;
  for_each_in(folder, [&](const fs::path& path) {
    if ((path.filename() == kBestName || step_of(path) || RunLog::is_log(path)) &&
        (first.empty() || path < first))
      first = path;
  });
  return first;
}

void RunCheckpoints::check_beginning(const fs::path& folder, bool resume, bool overwrite) {
  const fs::path checkpoint = folder / kCheckpointName, earlier = earlier_run_in(folder);
  TERN_CHECK(!resume || earlier == checkpoint, CheckpointError, "nothing to resume: there is no '{}'",
             checkpoint.string());
  TERN_CHECK(
      resume || overwrite || earlier.empty(), CheckpointError,
      "'{}' is there already: go on with that run (resume), replace it (overwrite), or choose another folder",
      earlier.string());
  std::error_code error;
  fs::create_directories(folder, error);
  TERN_CHECK(!error, IoError, "cannot make the folder '{}': {}", folder.string(), error.message());
}

RunCheckpoints::RunCheckpoints(fs::path folder, int64_t keep, Metric metric)
    : folder_(std::move(folder)), keep_(keep), metric_(std::move(metric)) {
  AsyncSaverOptions options;
  if (keep_ > 0)
    options = {.keep_last = static_cast<int>(keep_),
               .latest = folder_ / kCheckpointName,
               .best_copy = folder_ / kBestName};
  saver_ = std::make_unique<AsyncSaver>(std::move(options));
}

fs::path RunCheckpoints::path_of(int64_t step) const {
  return folder_ / fmt::format("{}{:08}{}", kStepBegin, step, kStepEnd);
}

/// Those that are in the folder already.
RunCheckpoints::ByStep RunCheckpoints::found() const {
  ByStep found;
  for_each_in(folder_, [&](const fs::path& path) {
    if (const auto step = step_of(path)) found.emplace(*step, path);
  });
  return found;
}

void RunCheckpoints::begin(const Checkpoint& first) {
  earlier_ = found();
  write(first);
  saver_->wait();
  if (keep_ > 0) earlier_.erase(first.step);
}

void RunCheckpoints::forget_earlier(const std::vector<fs::path>& others) {
  for (const auto& [step, path] : earlier_) remove_file(path);
  remove_file(folder_ / kBestName);
  for (const fs::path& path : others) remove_file(path);
}

void RunCheckpoints::go_on(const std::vector<EpochReport>& history,
                           const std::function<void(const std::string&)>& notice) {
  if (keep_ == 0) return;
  ByStep there = found();
  restore_best(there, history, notice);
  adopt(there, history);
  const fs::path best = saver_->best_path();
  std::error_code absent;
  if (!best.empty() && !fs::equivalent(best, folder_ / kBestName, absent))
    io::link_atomically(best, folder_ / kBestName);
}

/// Where best.pt is the only name left of the best checkpoint, it gets the other one again.
void RunCheckpoints::restore_best(ByStep& found, const std::vector<EpochReport>& history,
                                  const std::function<void(const std::string&)>& notice) const {
  const fs::path path = folder_ / kBestName;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return;
  for (const auto& [step, other] : found)
    if (fs::equivalent(path, other, ignored)) return;
  std::optional<Checkpoint> best;
  try {
    best = Checkpoint::load(path);
  } catch (const Error& error) {
    return notice(error.what());
  }
  if (best->history.empty() || found.contains(best->step)) return;
  const EpochReport& tested = best->history.back();
  for (const EpochReport& report : history) {
    if (report.step != best->step || tested.step != best->step) continue;
    if (metric_(report) != metric_(tested)) continue;  // of another run
    io::link_atomically(path, path_of(best->step));
    found.emplace(best->step, path_of(best->step));
  }
}

void RunCheckpoints::adopt(const ByStep& found, const std::vector<EpochReport>& history) {
  for (const auto& [step, path] : found) {
    std::optional<double> metric;
    for (const EpochReport& report : history)
      if (report.step == step) metric = metric_(report);
    saver_->adopt(path, metric);
  }
}

void RunCheckpoints::write(const Checkpoint& checkpoint, const EpochReport* report) {
  saver_->save(checkpoint.to_value(), keep_ > 0 ? path_of(checkpoint.step) : folder_ / kCheckpointName,
               report ? std::optional(metric_(*report)) : std::nullopt);
}

fs::path RunCheckpoints::finish() {
  saver_->wait();
  return keep_ > 0 ? saver_->best_path() : fs::path();
}

}  // namespace tern::train
