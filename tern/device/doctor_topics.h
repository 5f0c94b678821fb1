// The topics of the doctor, one function each. Internal to doctor*.cpp.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "tern/device/doctor.h"
#include "tern/device/visible_devices.h"

namespace tern::detail {

/// The examination and the findings so far.
struct Chart {
  const Machine& machine;
  const GpuReadings& readings;
  const std::optional<std::vector<ProgramGpu>>& program;
  const std::string& absence;
  bool expected;  ///< gpu_expected()
  std::vector<Finding>& findings;

  void add(Severity severity, std::string_view subject, std::string looked_at, std::string found,
           std::string to_do = "") const {
    findings.push_back(
        {severity, std::string(subject), std::move(looked_at), std::move(found), std::move(to_do)});
  }
  bool in_container() const { return !machine.container.empty(); }
  /// NVML has answered, which takes a loaded driver, whatever a sandbox shows of /sys and /proc.
  bool answers() const { return readings.state == GpuReadings::State::kReady; }
  bool driver_loaded() const { return machine.driver.module_loaded || answers(); }
  /// The driver's GPUs that it gives to programs.
  std::vector<DriverGpu> served() const;
  /// In the order of nvidia-smi; empty where nobody tells.
  std::vector<GpuIdentity> identities() const;
};

/// "a, b and c".
std::string and_list(const std::vector<std::string>& words);
/// "1 GPU", "2 GPUs".
std::string gpu_count(size_t count);
/// How to go on without a GPU.
std::string without_gpu(const Machine& machine);

// doctor.cpp
void examine_place(const Chart& chart);
void examine_simulated(const Chart& chart);
void examine_program(const Chart& chart);
void examine_complaints(const Chart& chart);
// doctor_driver.cpp
void examine_displays(const Chart& chart);
void examine_driver(const Chart& chart);
void examine_served(const Chart& chart);
void examine_nodes(const Chart& chart);
// doctor_libraries.cpp
void examine_libraries(const Chart& chart);
void examine_nvml(const Chart& chart);
void examine_runtime(const Chart& chart);
void examine_plugin(const Chart& chart);
// doctor_use.cpp
void examine_visible_devices(const Chart& chart);
void examine_order(const Chart& chart);
void examine_load(const Chart& chart);

}  // namespace tern::detail
