// The calls to NVML. The declarations are those of its public header that are needed here, checked against
// NVIDIA's Python binding nvidia-ml-py 13.615.
#include "tern/device/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "tern/device/machine.h"

namespace tern {
namespace {

using nvmlDevice = void*;
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr unsigned kMaxNvmlGpus = 256, kMaxMigDevices = 64, kMaxProcesses = 4096;

struct nvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct nvmlMemory {
  unsigned long long total, free, used;
};
struct nvmlUtilization {
  unsigned gpu, memory;
};
struct nvmlProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(nvmlPciInfo) == 68 && sizeof(nvmlProcessInfo) == 24, "the layout of NVML's structs");

/// The functions that are used; null where a driver is too old to have one.
struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*cuda_version)(int*) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, nvmlDevice*) = nullptr;
  int (*name)(nvmlDevice, char*, unsigned) = nullptr;
  int (*uuid)(nvmlDevice, char*, unsigned) = nullptr;
  int (*pci)(nvmlDevice, nvmlPciInfo*) = nullptr;
  int (*memory)(nvmlDevice, nvmlMemory*) = nullptr;
  int (*utilization)(nvmlDevice, nvmlUtilization*) = nullptr;
  int (*temperature)(nvmlDevice, unsigned, unsigned*) = nullptr;
  int (*power)(nvmlDevice, unsigned*) = nullptr;
  int (*power_limit)(nvmlDevice, unsigned*) = nullptr;
  int (*capability)(nvmlDevice, int*, int*) = nullptr;
  int (*compute_mode)(nvmlDevice, int*) = nullptr;
  int (*mig_mode)(nvmlDevice, unsigned*, unsigned*) = nullptr;
  int (*mig_count)(nvmlDevice, unsigned*) = nullptr;
  int (*mig_handle)(nvmlDevice, unsigned, nvmlDevice*) = nullptr;
  int (*compute_processes)(nvmlDevice, unsigned*, nvmlProcessInfo*) = nullptr;
  int (*graphics_processes)(nvmlDevice, unsigned*, nvmlProcessInfo*) = nullptr;

  explicit Nvml(const std::function<void*(const char*)>& symbol) {
    auto find = [&symbol](auto& function, std::initializer_list<const char*> names) {
      for (const char* each : names)
        if (void* address = symbol(each)) {
          function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
          return;
        }
    };
    find(init, {"nvmlInit_v2"});
    find(shutdown, {"nvmlShutdown"});
    find(error_string, {"nvmlErrorString"});
    find(driver_version, {"nvmlSystemGetDriverVersion"});
    find(cuda_version, {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
    find(count, {"nvmlDeviceGetCount_v2"});
    find(handle, {"nvmlDeviceGetHandleByIndex_v2"});
    find(name, {"nvmlDeviceGetName"});
    find(uuid, {"nvmlDeviceGetUUID"});
    find(pci, {"nvmlDeviceGetPciInfo_v3"});
    find(memory, {"nvmlDeviceGetMemoryInfo"});
    find(utilization, {"nvmlDeviceGetUtilizationRates"});
    find(temperature, {"nvmlDeviceGetTemperature"});
    find(power, {"nvmlDeviceGetPowerUsage"});
    find(power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
    find(capability, {"nvmlDeviceGetCudaComputeCapability"});
    find(compute_mode, {"nvmlDeviceGetComputeMode"});
    find(mig_mode, {"nvmlDeviceGetMigMode"});
    find(mig_count, {"nvmlDeviceGetMaxMigDeviceCount"});
    find(mig_handle, {"nvmlDeviceGetMigDeviceHandleByIndex"});
    // Versions before 2 have a smaller struct.
    find(compute_processes,
         {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
    find(graphics_processes,
         {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"});
  }
};

/// True when the function is there and does not fail.
template <class... Parameters, class... Args>
bool ask(int (*function)(Parameters...), Args... args) {
  return function && function(args...) == kSuccess;
}

/// A text that NVML writes into a buffer of ours.
template <class... Parameters, class... Args>
std::string ask_text(int (*function)(Parameters...), Args... args) {
  std::array<char, 96> buffer{};
  if (!ask(function, args..., buffer.data(), static_cast<unsigned>(buffer.size()))) return "";
  buffer.back() = '\0';
  return printable(buffer.data());
}

std::string process_name(unsigned pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return printable(name, 64);
}

class NvmlMonitor final : public GpuMonitor {
 public:
  NvmlMonitor(const std::function<void*(const char*)>& symbol, std::string missing)
      : nvml_(symbol), missing_(std::move(missing)) {}
  ~NvmlMonitor() override {
    if (ready_ && nvml_.shutdown) nvml_.shutdown();
  }

  GpuReadings read() override {
    GpuReadings readings;
    if (!nvml_.init || !nvml_.count || !nvml_.handle) {
      readings.state = GpuReadings::State::kNoLibrary;
      readings.reason = missing_;
      return readings;
    }
    unsigned count = 0;
    int code = ready_ ? kSuccess : nvml_.init();
    if (code == kSuccess) {
      ready_ = true;
      code = nvml_.count(&count);
    }
    readings.driver_version = ask_text(nvml_.driver_version);
    if (code != kSuccess) {
      readings.state = GpuReadings::State::kFailed;
      readings.error_code = code;
      readings.reason = error_text(code);
      return readings;
    }
    readings.state = GpuReadings::State::kReady;
    if (int version = 0; ask(nvml_.cuda_version, &version) && version > 0) {
      readings.cuda_major = version / 1000;
      readings.cuda_minor = version % 1000 / 10;
    }
    for (unsigned i = 0; i < std::min(count, kMaxNvmlGpus); ++i) readings.gpus.push_back(read_gpu(i));
    return readings;
  }

 private:
  std::string error_text(int code) const {
    const char* text = nvml_.error_string ? nvml_.error_string(code) : nullptr;
    return text ? printable(text) : fmt::format("error {}", code);
  }

  GpuReading read_gpu(unsigned index) const {
    GpuReading gpu;
    gpu.index = static_cast<int>(index);
    nvmlDevice device = nullptr;
    if (const int code = nvml_.handle(index, &device); code != kSuccess) {
      gpu.error = error_text(code);
      return gpu;
    }
    gpu.name = ask_text(nvml_.name, device);
    gpu.uuid = ask_text(nvml_.uuid, device);
    if (nvmlPciInfo info{}; ask(nvml_.pci, device, &info)) {
      info.bus_id[sizeof info.bus_id - 1] = '\0';
      gpu.pci_bus_id = normal_pci_address(printable(info.bus_id));
    }
    if (nvmlMemory info{}; ask(nvml_.memory, device, &info)) {
      gpu.memory_total = info.total;
      gpu.memory_used = info.used;
    }
    if (nvmlUtilization info{}; ask(nvml_.utilization, device, &info))
      gpu.utilization_percent = static_cast<int>(std::min(info.gpu, 100u));
    if (unsigned value = 0; ask(nvml_.temperature, device, /*sensor=*/0u, &value))
      gpu.temperature_celsius = static_cast<int>(value);
    // Power is in milliwatts.
    if (unsigned value = 0; ask(nvml_.power, device, &value)) gpu.power_watts = value / 1000.0;
    if (unsigned value = 0; ask(nvml_.power_limit, device, &value)) gpu.power_limit_watts = value / 1000.0;
    if (int major = 0, minor = 0; ask(nvml_.capability, device, &major, &minor)) {
      gpu.major = major;
      gpu.minor = minor;
    }
    if (int mode = 0; ask(nvml_.compute_mode, device, &mode)) gpu.compute_mode = mode;
    read_mig(device, gpu);
    read_processes(nvml_.compute_processes, device, gpu);
    read_processes(nvml_.graphics_processes, device, gpu);
    return gpu;
  }

  void read_mig(nvmlDevice device, GpuReading& gpu) const {
    unsigned now = 0, later = 0, count = 0;
    if (!ask(nvml_.mig_mode, device, &now, &later)) return;
    gpu.mig_enabled = now == 1;
    if (now != 1 || !ask(nvml_.mig_count, device, &count)) return;
    for (unsigned i = 0; i < std::min(count, kMaxMigDevices); ++i) {
      nvmlDevice part = nullptr;
      if (!ask(nvml_.mig_handle, device, i, &part)) continue;
      if (std::string uuid = ask_text(nvml_.uuid, part); !uuid.empty())
        gpu.mig_uuids.push_back(std::move(uuid));
    }
  }

  static void read_processes(int (*function)(nvmlDevice, unsigned*, nvmlProcessInfo*), nvmlDevice device,
                             GpuReading& gpu) {
    if (!function) return;
    std::vector<nvmlProcessInfo> list(32);
    // Processes may start between two calls.
    for (int tries = 0; tries < 4; ++tries) {
      auto count = static_cast<unsigned>(list.size());
      const int code = function(device, &count, list.data());
      if (code == kInsufficientSize && count <= kMaxProcesses) {
        list.resize(std::max<size_t>(count, list.size()) * 2);
        continue;
      }
      if (code != kSuccess) return;
      list.resize(std::min<size_t>(count, list.size()));
      break;
    }
    for (const nvmlProcessInfo& info : list) {
      const bool known = std::any_of(gpu.processes.begin(), gpu.processes.end(),
                                     [&info](const GpuProcess& process) { return process.pid == info.pid; });
      if (info.pid == 0 || known) continue;
      GpuProcess process{info.pid, process_name(info.pid), {}};
      if (info.used_memory != ~0ULL) process.nbytes = info.used_memory;
      gpu.processes.push_back(std::move(process));
    }
  }

  Nvml nvml_;
  std::string missing_;
  bool ready_ = false;
};

}  // namespace

std::unique_ptr<GpuMonitor> nvml_monitor(const std::function<void*(const char*)>& symbol) {
  return std::make_unique<NvmlMonitor>(symbol, "the library lacks functions that every NVML has");
}

std::unique_ptr<GpuMonitor> nvml_monitor() {
  // Not closed again: the driver's libraries keep threads and handlers of their own.
  std::string missing;
  for (const char* name : {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"}) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return nvml_monitor([library](const char* function) { return ::dlsym(library, function); });
    const char* error = ::dlerror();
    if (missing.empty()) missing = printable(error ? error : "dlopen failed", 300);
  }
  return std::make_unique<NvmlMonitor>([](const char*) -> void* { return nullptr; }, missing);
}

}  // namespace tern
