// One training run of the program: from settings to files, with progress on the terminal. Used by `train` and
// `demo`.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tern/cli/run_folder.h"
#include "tern/cli/train_settings.h"
#include "tern/core/device.h"
#include "tern/nn/any_module.h"
#include "tern/parallel/process_group.h"
#include "tern/train/trainer.h"

namespace tern::cli {

struct TrainingOptions {
  std::filesystem::path out = {};  ///< empty: as RunFolder chooses
  bool resume = false;
  bool overwrite = false;
  std::optional<PictureFormat> resumed = {};  ///< with `resume`: what the run began with, where that is known
  std::vector<Device> devices = {kCPU};       ///< several: each batch is split over them
  /// Several processes share each batch; files and lines are those of the first.
  std::optional<dist::ProcessGroup> group = {};
  std::string device_choice = "cpu";  ///< how the user named them, "all" for example
  int64_t workers = -1;  ///< -1: none for sets in memory, one for each core for pictures in files
  int64_t log_every = 50;
  int64_t save_every = 0;
  int64_t keep = 0;  ///< checkpoints that stay beside the newest, and the best; 0: none
  int64_t micro_batches = 1;
  bool capture = false;      ///< record the step and replay it
  std::string profile = {};  ///< where a trace of all kernels, copies and waits goes; empty: none is recorded
  bool json = false;
  bool is_demo =
      false;  ///< leaves a mark in the checkpoint, by which the next demo knows that it may replace it
};

struct Training {
  nn::AnyModule net;
  PictureFormat format;
  train::FitResult result;
  int signal = 0;       ///< the signal that stopped it, or 0
  WeightFiles weights;  ///< written at the end
};

/// Trains, and writes <out>/<model>.pt and <out>/<model>.safetensors at the end. What happens is told on
/// standard output, the progress bar is drawn on standard error. Throws what reading, training and writing
/// throw, and CheckpointError for other classes than `resumed` has.
Training run_training(const TrainSettings& settings, TrainingOptions options);

/// The metadata of the safetensors file, from which the kind of pictures is known again.
std::map<std::string, std::string> safetensors_metadata(const std::string& model,
                                                        const PictureFormat& format);

}  // namespace tern::cli
