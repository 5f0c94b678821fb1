// From a file to a network: checkpoints of runs, state dicts and whole models in PyTorch's formats,
// safetensors.
#pragma once

#include <optional>
#include <string>

#include "tern/cli/data_source.h"
#include "tern/nn/any_module.h"

namespace tern::cli {

struct TrainedModel {
  std::string name;  ///< "lenet"
  nn::AnyModule net;
  PictureFormat format;      ///< what it takes
  bool format_known = true;  ///< false: the file does not say, and it was guessed from the sizes
};

struct LoadModelOptions {
  std::string model = {};  ///< empty: found from the names of the tensors
  std::string kind =
      {};  ///< of the pictures, as in DataSource; empty: as the file says, or guessed from the sizes
  Device device = kCPU;  ///< where the network goes
};

/// Says on standard error which GPUs a checkpoint's tensors were on that are not here, and that they are on
/// `device` now. Reads no numbers. Throws as load().
void tell_absent_devices(const std::string& path, Device device);

/// The network in a file: of its state dict, wherever that stands and whatever wrapper's prefix its names
/// have, or of the whole model. Tells absent devices. Throws UsageError for an unknown name, IoError, and
/// CheckpointError naming the file for one that holds no such network.
TrainedModel load_model(const std::string& path, const LoadModelOptions& options);

}  // namespace tern::cli
