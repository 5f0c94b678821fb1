// On which devices a run computes: the value of --devices, and the network as the trainer calls it there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tern/core/device.h"
#include "tern/nn/any_module.h"
#include "tern/parallel/data_parallel.h"
#include "tern/train/trainer.h"

namespace tern::cli {

/// "all", or GPUs separated by commas ("cuda:0,cuda:1"). Without a GPU "all" is the CPU. Throws UsageError
/// for anything else and for a GPU that occurs twice, DeviceError for one that is not there.
std::vector<Device> parse_training_devices(const std::string& text);

/// "cuda:0, cuda:1".
std::string device_names(const std::vector<Device>& devices);

/// A network on one device, or on several with a part of every batch each. Its state dict has no prefix, so
/// that a run can go on with another number of devices.
class PlacedNetwork {
 public:
  /// Moves `net`, which shares its tensors, to the first device.
  PlacedNetwork(nn::AnyModule& net, const std::vector<Device>& devices);
  PlacedNetwork(const PlacedNetwork&) = delete;
  PlacedNetwork& operator=(const PlacedNetwork&) = delete;

  /// Refers to this object and to `net`.
  train::Network for_training();

 private:
  nn::AnyModule& net_;
  std::optional<parallel::DataParallel<nn::AnyModule>> many_;
};

}  // namespace tern::cli
