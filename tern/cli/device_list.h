// What `tern devices` knows of the devices, and how it looks as a table and as JSON. The command is in
// devices.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tern/device/backend.h"
#include "tern/device/nvml.h"

namespace tern::cli {

struct ListedDevice {
  Device device;
  std::string backend;
  DeviceProperties properties;
  MemoryStats own;                      ///< of this process
  std::optional<uint64_t> memory_used;  ///< bytes in use by all, as far as known
  GpuReading reading;                   ///< of the driver; empty for others than real GPUs
};

struct DeviceList {
  std::vector<ListedDevice> devices;
  std::vector<GpuReading> unused;  ///< GPUs of the machine that this program does not have
  std::string driver_version;      ///< empty: no NVIDIA driver
  std::string cuda_version;        ///< the newest that the driver runs; empty where it does not say
  std::string runtime_version;     ///< of the CUDA toolkit that is installed; empty: none
};

/// The root folder of the machine that is looked at: `given` (by --root), else TERN_MACHINE_ROOT, else "/".
/// Throws UsageError for one that is not there.
std::string machine_folder(const std::string& given = {});

/// What stays the same between two looks, and the connection to the driver.
class DeviceLister {
 public:
  /// Throws UsageError as machine_folder.
  DeviceLister();
  DeviceList list();

 private:
  std::unique_ptr<GpuMonitor> monitor_;
  std::string driver_version_, runtime_version_;
};

/// Lines of at most `width` characters, where the names allow it.
std::string as_table(const DeviceList& list, size_t width);
/// One line.
std::string as_json(const DeviceList& list);

}  // namespace tern::cli
