// The checkpoint files of a run's folder: which there are, which stay, and which is the best. What is in one
// is checkpoint.h, the writing async_saver.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tern/train/async_saver.h"
#include "tern/train/checkpoint.h"

namespace tern::train {

/// The name of the newest checkpoint in a run's folder.
inline constexpr const char* kCheckpointName = "checkpoint.pt";
/// Where checkpoints are kept, that of the best one.
inline constexpr const char* kBestName = "best.pt";

/// A file that a run in `folder` would replace or remove: an earlier run's checkpoint or log, checkpoint.pt
/// before others; empty where there is none. Throws IoError where the folder cannot be read.
std::filesystem::path earlier_run_in(const std::filesystem::path& folder);

/// Writes a run's checkpoints, in the background, and removes those that need not stay.
class RunCheckpoints {
 public:
  /// What a checkpoint is judged by after the epoch of `report`; the lowest is the best.
  using Metric = std::function<double(const EpochReport& report)>;

  /// Throws CheckpointError where there is nothing to resume in `folder`, or a run that is neither resumed
  /// nor overwritten; IoError where the folder cannot be read. Makes it.
  static void check_beginning(const std::filesystem::path& folder, bool resume, bool overwrite);

  /// With `keep` above 0 the last so many stay as checkpoint-STEP.pt, and the best one.
  RunCheckpoints(std::filesystem::path folder, int64_t keep, Metric metric);

  /// Writes the first checkpoint of a new run, and waits until it is there.
  void begin(const Checkpoint& first);
  /// Removes what begin() found, `others` too.
  void forget_earlier(const std::vector<std::filesystem::path>& others);
  /// Goes on with the run of `history`. A best checkpoint that cannot be read is told to `notice`.
  void go_on(const std::vector<EpochReport>& history, const std::function<void(const std::string&)>& notice);

  /// Begins to write. `report`: of the epoch that the checkpoint is taken after, by which it is judged.
  void write(const Checkpoint& checkpoint, const EpochReport* report = nullptr);
  /// Waits until all is written. The best checkpoint; empty where there is none.
  std::filesystem::path finish();

 private:
  using ByStep = std::map<int64_t, std::filesystem::path>;
  std::filesystem::path path_of(int64_t step) const;
  ByStep found() const;
  void adopt(const ByStep& found, const std::vector<EpochReport>& history);
  void restore_best(ByStep& found, const std::vector<EpochReport>& history,
                    const std::function<void(const std::string&)>& notice) const;

  std::filesystem::path folder_;
  int64_t keep_;
  Metric metric_;
  ByStep earlier_;
  std::unique_ptr<AsyncSaver> saver_;
};

}  // namespace tern::train
