// What the NVIDIA driver measures: memory, load, temperature, power and processes of each GPU, through its
// management library (NVML), which is looked up at run time and never linked. Behind an interface, so that
// tests give answers of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tern {

struct GpuProcess {
  uint32_t pid = 0;
  std::string name;                ///< from /proc; empty where the process is not visible from here
  std::optional<uint64_t> nbytes;  ///< of GPU memory; nothing where the driver does not tell
};

/// One GPU, in nvidia-smi's order. What the driver does not know of this model is absent.
struct GpuReading {
  int index = 0;
  std::string name, uuid, pci_bus_id;
  std::optional<uint64_t> memory_total, memory_used;  ///< bytes
  std::optional<int> utilization_percent;
  std::optional<int> temperature_celsius;
  std::optional<double> power_watts, power_limit_watts;
  std::optional<int> major, minor;  ///< compute capability
  std::optional<int> compute_mode;  ///< 0 default, 2 prohibited, 3 one process at a time
  std::optional<bool> mig_enabled;
  std::vector<std::string> mig_uuids;
  std::vector<GpuProcess> processes;
  std::string error;  ///< why this GPU gave no answer
};

struct GpuReadings {
  enum class State { kNotAsked, kNoLibrary, kFailed, kReady };
  State state = State::kNotAsked;
  std::string reason;  ///< why it is not ready
  int error_code = 0;  ///< of NVML, where it failed
  std::string driver_version;
  std::optional<int> cuda_major, cuda_minor;  ///< the newest CUDA that the driver runs
  std::vector<GpuReading> gpus;
};

/// Asks about all GPUs of the machine.
class GpuMonitor {
 public:
  virtual ~GpuMonitor() = default;
  /// Blocks for some milliseconds. Throws nothing but std::bad_alloc.
  virtual GpuReadings read() = 0;
};

/// The driver's own; where the library is missing every read() says so. It stays initialised until the
/// monitor goes.
std::unique_ptr<GpuMonitor> nvml_monitor();

/// The same over functions that `symbol` finds by the names they have in NVML; null where it has none.
std::unique_ptr<GpuMonitor> nvml_monitor(const std::function<void*(const char* name)>& symbol);

/// NVML's numbers for errors that have an explanation of their own.
inline constexpr int kNvmlNoPermission = 4;
inline constexpr int kNvmlDriverNotLoaded = 9;
inline constexpr int kNvmlGpuIsLost = 15;
inline constexpr int kNvmlVersionMismatch = 18;

}  // namespace tern
