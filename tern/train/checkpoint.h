// Checkpoint: everything that a run needs to go on as if it had never stopped. The loop that writes and
// resumes them is in trainer.h, files and their formats are io's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tern/core/generator.h"
#include "tern/core/state_dict.h"
#include "tern/data/data_loader.h"
#include "tern/io/serialize.h"
#include "tern/optim/state.h"
#include "tern/train/metrics.h"
#include "tern/train/run_log.h"

namespace tern::train {

/// The state of a run. As a file it is a dict that `torch.load(path, weights_only=True)` opens:
///
///     {'format': 'tern-checkpoint', 'version': 1,
///      'model': OrderedDict, 'optimizer': {'state': ..., 'param_groups': ...}, 'scheduler': {...} or None,
///      'scheduler_name': 'StepLR' where there is one, 'grad_scaler': {...} where there is one,
///      'epoch': finished epochs, 'step': steps, 'awaits_test': bool,
///      'data': {'seed', 'sampler_seed', 'epoch', 'batch', 'batch_size', 'dataset_size'},
///      'random': {'seed', 'position'} or bytes of a Mersenne Twister, 'settings': {...}, 'info': {...},
///      'random_of_others': [as 'random', ...] where there were several processes,
///      'metrics': {'epoch': [...], 'interval': [...], 'history': [{...}, ...], 'log_size': bytes}}
struct Checkpoint {
  StateDict model;
  optim::OptimizerState optimizer;
  std::optional<optim::StateMap> scheduler;
  std::string scheduler_name;  ///< its class; empty in files of older versions
  std::optional<optim::StateMap> grad_scaler;
  int64_t epoch = 0;         ///< epochs that are finished
  int64_t step = 0;          ///< steps that are done
  bool awaits_test = false;  ///< the epoch after those is trained, but not tested and reported yet
  data::DataLoaderState data;
  std::vector<uint8_t> random = Generator().bytes();   ///< of the default generator: Generator::bytes()
  std::vector<std::vector<uint8_t>> random_of_others;  ///< of the processes from rank 1 on
  ValueDict settings;  ///< what the caller wants to be the same when the run goes on
  ValueDict info;      ///< what the caller wants to find again; may differ when the run goes on
  Averages::Sums epoch_sums;
  Averages::Sums interval_sums;
  std::vector<EpochReport> history;
  uint64_t log_size = 0;  ///< bytes of metrics.jsonl

  Value to_value() const;
  /// Throws CheckpointError for anything that is not such a dict.
  static Checkpoint from_value(const Value& value);
  /// True when the value claims to be a checkpoint of this kind, whole or not.
  static bool is_checkpoint(const Value& value);

  /// In one step: when anything fails (IoError) the file that was there before is untouched.
  void save(const std::filesystem::path& path) const;
  /// Tensors are loaded onto the CPU. Throws IoError, and CheckpointError naming the file.
  static Checkpoint load(const std::filesystem::path& path);
};

}  // namespace tern::train
