// RunLog: what a run writes down about itself, metrics.jsonl and TensorBoard's event files; and the two kinds
// of reports that stand in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "tern/train/append_file.h"
#include "tern/train/event_file.h"

namespace tern::train {

/// Averages over the steps since the report before. Accuracies are fractions, NaN where there is none.
struct StepReport {
  int64_t epoch = 0;  ///< from 1 on
  int64_t step = 0;   ///< steps since the beginning of the run
  double loss = std::numeric_limits<double>::quiet_NaN();
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  double lr = 0;                  ///< of the first group, in this step
  double samples_per_second = 0;  ///< since the report before
};

/// One epoch and the test after it; the test's numbers are NaN where there is none.
struct EpochReport {
  int64_t epoch = 0;
  int64_t step = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  double test_loss = std::numeric_limits<double>::quiet_NaN();
  double test_accuracy = std::numeric_limits<double>::quiet_NaN();
  double lr = 0;       ///< of the first group, at the end of the epoch
  double seconds = 0;  ///< for training and test; of a resumed epoch the part since then
};

/// `{"type":"step","epoch":1,"step":50,"loss":...,"accuracy":...,"lr":...,"samples_per_second":...}`. Numbers
/// are as long as is needed to read the same double again. A NaN that says "there is none" is left out, a
/// loss that is not finite is null.
std::string to_json(const StepReport& report);
/// `{"type":"epoch","epoch":1,"step":938,"loss":...,"accuracy":...,"test_loss":...,"test_accuracy":...,"lr":...,"seconds":...}`
std::string to_json(const EpochReport& report);

/// metrics.jsonl (one object a line) and an event file in a folder. Functions throw IoError.
class RunLog {
 public:
  /// Whether `path` has the name of what start() throws away, and says anything.
  static bool is_log(const std::filesystem::path& path);

  RunLog() = default;
  /// Opens the files. Throws CheckpointError when another process is writing there.
  explicit RunLog(const std::filesystem::path& folder);

  /// Forgets an earlier run: cuts its metrics away and removes its event files.
  void start();
  /// Goes on after the first `metrics_size` bytes of metrics.jsonl, which is what stood there at the
  /// checkpoint; lines after it belong to steps that are done again. TensorBoard is told to forget what is
  /// after `step`. False when the file has fewer bytes than that: then nothing is cut.
  bool resume(uint64_t metrics_size, int64_t step);

  bool is_open() const noexcept { return metrics_.is_open(); }
  void write(const StepReport& report);
  void write(const EpochReport& report);
  /// Bytes of metrics.jsonl, after they have reached the disk.
  uint64_t sync();

 private:
  std::filesystem::path folder_;
  AppendFile metrics_;
  EventFile events_;
};

}  // namespace tern::train
