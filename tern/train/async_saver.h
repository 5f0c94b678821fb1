// AsyncSaver: checkpoints are written by a thread of their own while training goes on. Saving at once is io's
// save(); the trainer's own checkpoints are in checkpoint.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "tern/io/serialize.h"

namespace tern::train {

enum class Best : uint8_t { Lowest, Highest };

struct AsyncSaverOptions {
  /// How many of the files that this saver wrote stay: after each save the oldest beyond these are removed.
  /// 0: all.
  int keep_last = 0;
  /// Which metric is better. The file with the best one is never removed.
  Best best = Best::Lowest;
  /// A second name that the file written last always has too (a hard link, or a copy where there are none).
  /// Empty: none. Never removed, as the next one too.
  std::filesystem::path latest = {};
  /// The same for the file with the best metric.
  std::filesystem::path best_copy = {};
  SaveOptions save = {};
  /// Called by the writing thread with the bytes that are written and those to be written, each time that
  /// they have grown by 1/100 or more, and at the end.
  std::function<void(uint64_t written, uint64_t total)> progress = {};
};

/// Saves states in the background, one after the other. `save` copies the numbers and returns: from GPUs to
/// pinned memory, on the CPU to memory that is used again for the next state; what is on a GPU and had the
/// same version at the save before (a frozen part of the model) is not copied again. So the memory for one
/// state is needed beside the state, and storages of the last state live on until the next save. Only changes
/// by operators count versions: call `forget` after writing to a GPU's memory in another way. One thread may
/// use a saver at a time.
class AsyncSaver {
 public:
  /// Throws ValueError for a negative keep_last, and for a second name that ends in .safetensors.
  explicit AsyncSaver(AsyncSaverOptions options = {});
  AsyncSaver(const AsyncSaver&) = delete;
  AsyncSaver& operator=(const AsyncSaver&) = delete;
  /// Waits until all is written. An error that nobody has seen is printed to the standard error stream.
  ~AsyncSaver();

  /// Copies `state` and begins to write it to `path`; waits before when the state before it is not written
  /// yet. Rethrows the error of an earlier save, once; nothing has begun then. `metric` makes the file a
  /// candidate for the best one. Throws ValueError for a name that ends in .safetensors, as tern::save does.
  void save(const Value& state, const std::filesystem::path& path, std::optional<double> metric = {});

  /// Counts a file of an earlier run as one that this saver wrote, the newest so far; does nothing when it is
  /// not there. Waits until all is written.
  void adopt(const std::filesystem::path& path, std::optional<double> metric = {});

  /// Waits until all is written. Rethrows the error of an earlier save, once.
  void wait();
  bool busy() const;

  /// The file with the best metric so far; empty when there was none.
  std::filesystem::path best_path() const;
  std::optional<double> best_metric() const;

  /// The next save copies everything.
  void forget();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tern::train
