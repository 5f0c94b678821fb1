// The order of the examination, and what concerns the machine and the program as a whole. The driver is in
// doctor_driver.cpp, libraries in doctor_libraries.cpp, what programs do with the GPUs in doctor_use.cpp.
#include "tern/device/doctor.h"

#include <algorithm>
#include <charconv>
#include <new>

#include "tern/device/doctor_topics.h"

namespace tern {
namespace detail {

std::vector<DriverGpu> Chart::served() const {
  std::vector<DriverGpu> gpus;
  for (const DriverGpu& gpu : machine.driver.gpus)
    if (!gpu.excluded) gpus.push_back(gpu);
  return gpus;
}

std::vector<GpuIdentity> Chart::identities() const {
  std::vector<GpuIdentity> all;
  for (const GpuReading& gpu : readings.gpus)
    all.push_back({gpu.uuid, gpu.mig_uuids, gpu.mig_enabled.has_value()});
  if (all.empty())
    for (const DriverGpu& gpu : served()) all.push_back({gpu.uuid, {}, false});
  return all;
}

std::string and_list(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

std::string gpu_count(size_t count) { return fmt::format("{} GPU{}", count, count == 1 ? "" : "s"); }

std::string without_gpu(const Machine& machine) {
  if (machine.options.environment.sim_gpus)
    return "Compute on the CPU, or on the simulated GPUs that TERN_SIM_GPUS has switched on.";
  return "Compute on the CPU. To run programs written for several GPUs, set TERN_SIM_GPUS=2: cuda:0 and "
         "cuda:1 "
         "are then simulated on the CPU.";
}

void examine_place(const Chart& chart) {
  const Machine& machine = chart.machine;
  if (!machine.root_readable) {
    chart.add(Severity::kProblem, "machine", printable(machine.options.root),
              "there is no such folder, or it cannot be read: nothing is known about the machine",
              "Name the root folder of a machine with --root or TERN_MACHINE_ROOT, or leave both out.");
    return;
  }
  if (machine.wsl)
    chart.add(
        Severity::kNote, "machine", "/proc/sys/kernel/osrelease, /dev/dxg",
        fmt::format("this is WSL (kernel {}): GPUs belong to Windows and are reached through /dev/dxg, which "
                    "is {}",
                    machine.kernel.empty() ? "unknown" : machine.kernel,
                    machine.dxg_node ? "there" : "not there"),
        machine.dxg_node ? ""
                         : "In Windows, run 'wsl --update' and 'wsl --shutdown', and see that the "
                           "distribution runs as version 2 ('wsl -l -v').");
  if (!machine.container.empty())
    chart.add(Severity::kNote, "machine", "/.dockerenv, /run/.containerenv, /proc/1/cgroup",
              fmt::format("this is a container ({}): it sees only the GPUs that it was started with",
                          machine.container));
}

void examine_simulated(const Chart& chart) {
  const MachineEnvironment& environment = chart.machine.options.environment;
  if (!environment.sim_gpus && !environment.sim) return;
  std::string given;
  if (environment.sim_gpus) given = fmt::format("TERN_SIM_GPUS={}", printable(*environment.sim_gpus, 60));
  if (environment.sim)
    given += fmt::format("{}TERN_SIM={}", given.empty() ? "" : " ", printable(*environment.sim, 120));
  if (environment.sim_gpus) {
    const std::string& text = *environment.sim_gpus;
    int count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end != text.data() + text.size() || count < 0) {
      chart.add(Severity::kWarning, "simulated", given,
                fmt::format("'{}' is not a number of GPUs: no simulated GPU can be made of it",
                            printable(text, 60)),
                "Set TERN_SIM_GPUS to a whole number such as 2, or unset it.");
      return;
    }
  }
  size_t simulated = 0;
  if (chart.program)
    simulated = static_cast<size_t>(std::count_if(chart.program->begin(), chart.program->end(),
                                                  [](const ProgramGpu& gpu) { return gpu.simulated; }));
  chart.add(
      Severity::kNote, "simulated", given,
      fmt::format("simulated GPUs are switched on{}; they are marked as simulated and hide nothing: what "
                  "is said here about real GPUs holds with and without them",
                  chart.program ? fmt::format(", and the program has {}", simulated) : ""),
      "Unset TERN_SIM_GPUS and TERN_SIM to compute on real devices only.");
}

void examine_program(const Chart& chart) {
  if (!chart.program || !chart.expected) return;
  std::vector<std::string> names;
  for (size_t i = 0; i < chart.program->size(); ++i) {
    const ProgramGpu& gpu = (*chart.program)[i];
    if (!gpu.simulated) names.push_back(fmt::format("cuda:{} {}", i, printable(gpu.name)));
  }
  if (!names.empty()) {
    chart.add(Severity::kOk, "program", "the devices of this program", "it has " + and_list(names));
  } else if (!has_problem(chart.findings)) {
    chart.add(Severity::kProblem, "program", "the devices of this program",
              "it has no real GPU, although driver, libraries and plugin are in order: " +
                  (chart.absence.empty() ? std::string("the plugin was not loaded")
                                         : printable(chart.absence, 600)),
              "Start the program anew; if that does not help, build Tern and its plugin from one source.");
  }
}

void examine_complaints(const Chart& chart) {
  if (!chart.machine.root_readable) return;
  for (const std::string& complaint : chart.machine.complaints)
    chart.add(Severity::kWarning, "odd-file", complaint.substr(0, complaint.find(": ")),
              "something that should not be so: " + complaint,
              "If a GPU is missing, look at this file; it was left out of what is said here.");
}

}  // namespace detail

std::string_view severity_name(Severity severity) noexcept {
  switch (severity) {
    case Severity::kOk:
      return "ok";
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kProblem:
      break;
  }
  return "problem";
}

bool has_problem(const std::vector<Finding>& findings) noexcept {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::kProblem; });
}

bool gpu_expected(const Examination& examination) {
  const Machine& machine = examination.machine;
  if (machine.nvidia_displays() > 0 || !machine.driver.gpus.empty() || !examination.readings.gpus.empty())
    return true;
  return machine.wsl && machine.dxg_node && !machine.libcuda.empty();
}

std::vector<Finding> diagnose(const Examination& examination) {
  std::vector<Finding> findings;
  const detail::Chart chart{examination.machine, examination.readings,      examination.program,
                            examination.absence, gpu_expected(examination), findings};
  using Topic = void (*)(const detail::Chart&);
  const Topic topics[] = {
      detail::examine_place,      detail::examine_displays,
      detail::examine_driver,     detail::examine_served,
      detail::examine_nodes,      detail::examine_libraries,
      detail::examine_nvml,       detail::examine_runtime,
      detail::examine_plugin,     detail::examine_visible_devices,
      detail::examine_order,      detail::examine_load,
      detail::examine_simulated,  detail::examine_program,
      detail::examine_complaints,
  };
  for (Topic topic : topics) try {
      topic(chart);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      chart.add(Severity::kWarning, "odd-file", "this part of the examination",
                fmt::format("it could not be finished: {}", printable(error.what())),
                "The other findings hold; a report of this one is welcome.");
    }
  return findings;
}

}  // namespace tern
