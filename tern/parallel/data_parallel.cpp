// The devices of a call, and running the replicas.
#include "tern/parallel/data_parallel.h"

#include <algorithm>

#include "tern/base/check.h"
#include "tern/core/memory.h"
#include "tern/device/cuda.h"
#include "tern/parallel/turns.h"

namespace tern::parallel::detail {

std::vector<Device> checked_device_ids(const std::vector<Device>& device_ids) {
  std::vector<Device> devices;
  if (device_ids.empty())
    for (int i = 0; i < cuda::device_count(); ++i) devices.emplace_back(DeviceType::CUDA, i);
  for (const Device& given : device_ids) {
    TERN_CHECK(
        given.is_cuda(), DeviceError,
        "DataParallel: device_ids must be GPUs, got {}: leave device_ids out for all GPUs; without any, the "
        "module is called as it is",
        given.str());
    const Device device = with_context("DataParallel: device_ids", [&] { return resolve_device(given); });
    TERN_CHECK(std::find(devices.begin(), devices.end(), device) == devices.end(), ValueError,
               "DataParallel: device_ids has {} twice: every replica needs a device of its own",
               device.str());
    devices.push_back(device);
  }
  return devices;
}

void for_each_replica(const std::vector<Device>& devices, bool meet,
                      const std::function<void(size_t)>& body) {
  auto run = [&](size_t r) {
    const DeviceGuard guard(devices[r]);
    if (devices.size() == 1) return body(r);
    with_context(fmt::format("in replica {} on device {}", r, devices[r].str()), [&] { body(r); });
  };
  if (meet && devices.size() > 1) return Turns(devices.size()).run(run);
  for (size_t r = 0; r < devices.size(); ++r) run(r);
}

}  // namespace tern::parallel::detail
