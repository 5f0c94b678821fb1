// Parsing devices, and wrapping a network.
#include "tern/cli/training_devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "tern/base/error.h"
#include "tern/cli/usage.h"
#include "tern/device/cuda.h"

namespace tern::cli {

std::vector<Device> parse_training_devices(const std::string& text) {
  std::vector<Device> devices;
  const int gpus = cuda::device_count();
  if (text == "all") {
    for (int i = 0; i < gpus; ++i) devices.emplace_back(DeviceType::CUDA, i);
    if (devices.empty()) devices.push_back(kCPU);
    return devices;
  }
  for (const std::string& part : split(text, ',')) {
    Device device;
    try {
      device = Device(part);
    } catch (const DeviceError& error) {
      throw_usage("--devices: {}", error.what());
    }
    if (device.is_cpu())
      throw_usage("--devices: expected all, or GPUs such as cuda:0,cuda:1; for the CPU write --device cpu");
    if (device.index < 0) device.index = 0;
    if (device.index >= gpus)
      throw DeviceError(fmt::format("--devices: there is no {} here; there {} {} GPU{}", device.str(),
                                    gpus == 1 ? "is" : "are", gpus, gpus == 1 ? "" : "s"));
    if (std::find(devices.begin(), devices.end(), device) != devices.end())
      throw_usage("--devices: {} occurs twice", device.str());
    devices.push_back(device);
  }
  return devices;
}

std::string device_names(const std::vector<Device>& devices) {
  std::string names;
  for (const Device& device : devices) names += (names.empty() ? "" : ", ") + device.str();
  return names;
}

PlacedNetwork::PlacedNetwork(nn::AnyModule& net, const std::vector<Device>& devices) : net_(net) {
  net_->to(devices.at(0));
  if (devices.size() > 1) many_.emplace(net_, parallel::DataParallelOptions{.device_ids = devices});
}

train::Network PlacedNetwork::for_training() {
  if (!many_) return net_;
  train::Network network(many_->module);
  network.forward = [this](const Tensor& x) { return (*many_)(x); };
  return network;
}

}  // namespace tern::cli
