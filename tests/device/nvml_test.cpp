// The calls to NVML, against functions that answer like it.
#include "tern/device/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <map>

namespace tern {
namespace {

using Handle = void*;

/// Two GPUs; the second knows nothing but its name.
struct MadeUpNvml {
  int init_result = 0, inits = 0, shutdowns = 0;
  int gpu_lost = -1;
  unsigned processes = 2;
  int process_calls = 0;
  std::string missing;  ///< functions whose name contains this are not there
};
MadeUpNvml nvml;

constexpr int kNotSupported = 3;
int number_of(Handle device) { return static_cast<int>(reinterpret_cast<uintptr_t>(device)) - 1; }
int first_only(Handle device) { return number_of(device) == 0 ? 0 : kNotSupported; }

int init() {
  ++nvml.inits;
  return nvml.init_result;
}
int shutdown() {
  ++nvml.shutdowns;
  return 0;
}
const char* error_string(int code) {
  return code == kNvmlGpuIsLost ? "GPU is lost" : "Driver/library version mismatch";
}
int put(char* buffer, unsigned size, const char* text) {
  if (std::strlen(text) >= size) return 7;
  std::strcpy(buffer, text);
  return 0;
}
int driver_version(char* buffer, unsigned size) { return put(buffer, size, "550.54.14"); }
int cuda_version(int* version) {
  *version = 12040;
  return 0;
}
int count(unsigned* number) {
  *number = 2;
  return 0;
}
int handle(unsigned index, Handle* device) {
  if (static_cast<int>(index) == nvml.gpu_lost) return kNvmlGpuIsLost;
  *device = reinterpret_cast<Handle>(uintptr_t{index} + 1);
  return 0;
}
int name(Handle device, char* buffer, unsigned size) {
  return put(buffer, size, number_of(device) == 0 ? "NVIDIA H200" : "NVIDIA \x1bT4");
}
int uuid(Handle device, char* buffer, unsigned size) {
  if (number_of(device) >= 100) return put(buffer, size, "MIG-part");
  return first_only(device) ? kNotSupported : put(buffer, size, "GPU-1234");
}
struct Pci {
  char legacy[16];
  unsigned numbers[5];
  char bus_id[32];
};
int pci(Handle device, Pci* info) {
  return first_only(device) ? kNotSupported : put(info->bus_id, 32, "00000000:65:00.0");
}
int memory(Handle device, unsigned long long* total_free_used) {
  total_free_used[0] = 100;
  total_free_used[2] = 40;
  return first_only(device);
}
int utilization(Handle device, unsigned* gpu_memory) {
  gpu_memory[0] = 87;
  return first_only(device);
}
int temperature(Handle device, unsigned sensor, unsigned* value) {
  *value = 41;
  return sensor == 0 ? first_only(device) : 2;
}
int power(Handle device, unsigned* milliwatts) {
  *milliwatts = 121500;
  return first_only(device);
}
int power_limit(Handle device, unsigned* milliwatts) {
  *milliwatts = 700000;
  return first_only(device);
}
int capability(Handle device, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return first_only(device);
}
int compute_mode(Handle device, int* mode) {
  *mode = 3;
  return first_only(device);
}
int mig_mode(Handle device, unsigned* now, unsigned* later) {
  *now = *later = 1;
  return first_only(device);
}
int mig_count(Handle, unsigned* number) {
  *number = 7;
  return 0;
}
int mig_handle(Handle, unsigned index, Handle* part) {
  *part = reinterpret_cast<Handle>(uintptr_t{101});
  return index == 0 ? 0 : 6;
}
struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned instances[2];
};
int processes(Handle device, unsigned* size, Process* list) {
  if (first_only(device)) return kNotSupported;
  ++nvml.process_calls;
  const unsigned room = *size;
  *size = nvml.processes;
  if (room < nvml.processes) return 7;
  for (unsigned i = 0; i < nvml.processes; ++i) list[i] = {i + 1'000'000'000, i == 0 ? ~0ULL : 5, {0, 0}};
  if (nvml.processes > 1) list[1].pid = static_cast<unsigned>(::getpid());
  return 0;
}

void* symbol(const char* wanted) {
  const std::map<std::string, void*> table = {
      {"nvmlInit_v2", reinterpret_cast<void*>(&init)},
      {"nvmlShutdown", reinterpret_cast<void*>(&shutdown)},
      {"nvmlErrorString", reinterpret_cast<void*>(&error_string)},
      {"nvmlSystemGetDriverVersion", reinterpret_cast<void*>(&driver_version)},
      {"nvmlSystemGetCudaDriverVersion_v2", reinterpret_cast<void*>(&cuda_version)},
      {"nvmlDeviceGetCount_v2", reinterpret_cast<void*>(&count)},
      {"nvmlDeviceGetHandleByIndex_v2", reinterpret_cast<void*>(&handle)},
      {"nvmlDeviceGetName", reinterpret_cast<void*>(&name)},
      {"nvmlDeviceGetUUID", reinterpret_cast<void*>(&uuid)},
      {"nvmlDeviceGetPciInfo_v3", reinterpret_cast<void*>(&pci)},
      {"nvmlDeviceGetMemoryInfo", reinterpret_cast<void*>(&memory)},
      {"nvmlDeviceGetUtilizationRates", reinterpret_cast<void*>(&utilization)},
      {"nvmlDeviceGetTemperature", reinterpret_cast<void*>(&temperature)},
      {"nvmlDeviceGetPowerUsage", reinterpret_cast<void*>(&power)},
      {"nvmlDeviceGetEnforcedPowerLimit", reinterpret_cast<void*>(&power_limit)},
      {"nvmlDeviceGetCudaComputeCapability", reinterpret_cast<void*>(&capability)},
      {"nvmlDeviceGetComputeMode", reinterpret_cast<void*>(&compute_mode)},
      {"nvmlDeviceGetMigMode", reinterpret_cast<void*>(&mig_mode)},
      {"nvmlDeviceGetMaxMigDeviceCount", reinterpret_cast<void*>(&mig_count)},
      {"nvmlDeviceGetMigDeviceHandleByIndex", reinterpret_cast<void*>(&mig_handle)},
      {"nvmlDeviceGetComputeRunningProcesses_v3", reinterpret_cast<void*>(&processes)},
      {"nvmlDeviceGetGraphicsRunningProcesses_v2", reinterpret_cast<void*>(&processes)},
  };
  const auto found = table.find(wanted);
  if (found == table.end()) return nullptr;
  if (!nvml.missing.empty() && std::string(wanted).find(nvml.missing) != std::string::npos) return nullptr;
  return found->second;
}

TEST(Nvml, ReadsAllThatAGpuTells) {
  nvml = {};
  {
    const auto monitor = nvml_monitor(symbol);
    const GpuReadings readings = monitor->read();
    ASSERT_EQ(readings.state, GpuReadings::State::kReady);
    EXPECT_EQ(readings.driver_version, "550.54.14");
    EXPECT_EQ(readings.cuda_major, 12);
    EXPECT_EQ(readings.cuda_minor, 4);
    ASSERT_EQ(readings.gpus.size(), 2u);
    const GpuReading& gpu = readings.gpus[0];
    EXPECT_EQ(gpu.name, "NVIDIA H200");
    EXPECT_EQ(gpu.uuid, "GPU-1234");
    EXPECT_EQ(gpu.pci_bus_id, "0000:65:00.0");
    EXPECT_EQ(gpu.memory_total, 100u);
    EXPECT_EQ(gpu.memory_used, 40u);
    EXPECT_EQ(gpu.utilization_percent, 87);
    EXPECT_EQ(gpu.temperature_celsius, 41);
    EXPECT_EQ(gpu.power_watts, 121.5);
    EXPECT_EQ(gpu.power_limit_watts, 700.0);
    EXPECT_EQ(gpu.major, 9);
    EXPECT_EQ(gpu.minor, 0);
    EXPECT_EQ(gpu.compute_mode, 3);
    EXPECT_EQ(gpu.mig_enabled, true);
    EXPECT_THAT(gpu.mig_uuids, ::testing::ElementsAre("MIG-part"));
    ASSERT_EQ(gpu.processes.size(), 2u);  // listed for computing and for graphics, counted once
    EXPECT_EQ(gpu.processes[0].name, "");
    EXPECT_FALSE(gpu.processes[0].nbytes);
    EXPECT_FALSE(gpu.processes[1].name.empty());
    EXPECT_EQ(gpu.processes[1].nbytes, 5u);
    const GpuReading& other = readings.gpus[1];
    EXPECT_EQ(other.index, 1);
    EXPECT_EQ(other.name, "NVIDIA ?T4");
    EXPECT_FALSE(other.memory_total || other.utilization_percent || other.power_watts || other.mig_enabled);
    EXPECT_THAT(other.processes, ::testing::IsEmpty());
    monitor->read();
    EXPECT_EQ(nvml.inits, 1);
    EXPECT_EQ(nvml.shutdowns, 0);
  }
  EXPECT_EQ(nvml.shutdowns, 1);
}

TEST(Nvml, ManyProcesses) {
  nvml = {};
  nvml.processes = 100;
  EXPECT_EQ(nvml_monitor(symbol)->read().gpus[0].processes.size(), 100u);
  nvml.processes = 1'000'000;
  nvml.process_calls = 0;
  EXPECT_THAT(nvml_monitor(symbol)->read().gpus[0].processes, ::testing::IsEmpty());
  EXPECT_EQ(nvml.process_calls, 2);
}

TEST(Nvml, FailuresAreSaid) {
  nvml = {};
  nvml.init_result = kNvmlVersionMismatch;
  {
    const GpuReadings readings = nvml_monitor(symbol)->read();
    EXPECT_EQ(readings.state, GpuReadings::State::kFailed);
    EXPECT_EQ(readings.error_code, kNvmlVersionMismatch);
    EXPECT_EQ(readings.reason, "Driver/library version mismatch");
  }
  EXPECT_EQ(nvml.shutdowns, 0);
  nvml = {};
  nvml.gpu_lost = 1;
  EXPECT_EQ(nvml_monitor(symbol)->read().gpus[1].error, "GPU is lost");
}

TEST(Nvml, FunctionsMayBeMissing) {
  nvml = {};
  nvml.missing = "DeviceGetCount";
  EXPECT_EQ(nvml_monitor(symbol)->read().state, GpuReadings::State::kNoLibrary);
  for (const char* missing : {"Power", "Mig", "Processes", "Memory", "Cuda", "ErrorString", "Pci"}) {
    nvml.missing = missing;
    EXPECT_EQ(nvml_monitor(symbol)->read().gpus.size(), 2u) << missing;
  }
}

TEST(Nvml, TheRealOneAnswersOrSaysWhyNot) {
  const GpuReadings readings = nvml_monitor()->read();
  EXPECT_NE(readings.state, GpuReadings::State::kNotAsked);
  if (readings.state != GpuReadings::State::kReady) {
    EXPECT_FALSE(readings.reason.empty());
  }
}

}  // namespace
}  // namespace tern
