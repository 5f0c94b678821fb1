// The doctor on the use of GPUs: which the environment leaves to a program, in what order, and what others do
// with them.
#include <unistd.h>

#include <algorithm>
#include <set>

#include "tern/device/doctor_topics.h"

namespace tern::detail {
namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

std::string size_text(uint64_t nbytes) {
  const double mib = static_cast<double>(nbytes) / (1 << 20);
  return mib >= 1024 ? fmt::format("{:.1f} GiB", mib / 1024) : fmt::format("{:.0f} MiB", mib);
}

std::string visible_remedy(size_t count) {
  if (count == 0) return "Unset CUDA_VISIBLE_DEVICES to have all GPUs.";
  return fmt::format(
      "Unset CUDA_VISIBLE_DEVICES to have all GPUs, or name {} with distinct numbers {} ('nvidia-smi -L' has "
      "their "
      "UUIDs).",
      gpu_count(count), count == 1 ? "0" : fmt::format("from 0 to {}", count - 1));
}

void examine_mig(const Chart& chart) {
  const auto& visible = chart.machine.options.environment.cuda_visible_devices;
  for (const GpuReading& gpu : chart.readings.gpus) {
    if (gpu.mig_enabled != true) continue;
    const std::string looked_at = fmt::format("MIG mode of GPU {} ({})", gpu.index, gpu.name);
    if (gpu.mig_uuids.empty())
      chart.add(
          Severity::kProblem, "mig", looked_at,
          "MIG is on, but no MIG device was made: CUDA finds nothing here",
          "Make one ('sudo nvidia-smi mig -cgi 0 -C', sizes: 'nvidia-smi mig -lgip'), or switch MIG off "
          "('sudo nvidia-smi -mig 0').");
    else if (!visible || visible->find("MIG-") == std::string::npos)
      chart.add(
          Severity::kNote, "mig", looked_at,
          fmt::format("MIG is on: of its {} MIG device{} a program sees the first only", gpu.mig_uuids.size(),
                      gpu.mig_uuids.size() == 1 ? "" : "s"),
          fmt::format("To choose: CUDA_VISIBLE_DEVICES={} ('nvidia-smi -L' lists them).", gpu.mig_uuids[0]));
  }
}

/// Free memory and who has the rest.
void examine_memory(const Chart& chart, const GpuReading& gpu) {
  const std::string looked_at = fmt::format("memory and processes of GPU {} ({})", gpu.index, gpu.name);
  std::vector<std::string> others, pids;
  const auto own = static_cast<uint32_t>(::getpid());
  for (const GpuProcess& process : gpu.processes) {
    if (process.pid == own) continue;
    pids.push_back(std::to_string(process.pid));
    others.push_back(
        fmt::format("{} {}{}", process.pid,
                    process.name.empty() ? "(in another container or hidden)" : printable(process.name),
                    process.nbytes ? " " + size_text(*process.nbytes) : ""));
  }
  const uint64_t total = gpu.memory_total.value_or(0), used = std::min(gpu.memory_used.value_or(0), total);
  const std::string state = total == 0 ? "its memory is not known"
                                       : fmt::format("{} of {} are taken, {} are free", size_text(used),
                                                     size_text(total), size_text(total - used));
  const bool tight = total > 0 && (total - used) < total / 4;
  const std::string by = others.empty() ? "" : "; by process " + and_list(others);
  if (tight)
    chart.add(Severity::kWarning, "memory", looked_at, state + by,
              pids.empty()
                  ? "No process is visible from here: it may belong to another user or container; look with "
                    "'sudo nvidia-smi'."
                  : fmt::format("Wait for them, end those that are yours ('kill {}'), use smaller batches, "
                                "or choose another GPU with CUDA_VISIBLE_DEVICES.",
                                pids[0]));
  else
    chart.add(others.empty() ? Severity::kOk : Severity::kNote, "memory", looked_at, state + by);
  if (gpu.compute_mode == 2)
    chart.add(Severity::kProblem, "compute-mode", looked_at,
              "its compute mode is 'prohibited': no program may use it",
              fmt::format("'sudo nvidia-smi -i {} -c DEFAULT' allows programs again.", gpu.index));
  if (gpu.compute_mode == 1 || gpu.compute_mode == 3)
    chart.add(others.empty() ? Severity::kNote : Severity::kProblem, "compute-mode", looked_at,
              fmt::format("its compute mode is 'exclusive': one process at a time{}",
                          others.empty() ? "" : ", and there is one already"),
              fmt::format("Wait for that process, or allow several: 'sudo nvidia-smi -i {} -c DEFAULT'.",
                          gpu.index));
}

}  // namespace

void examine_visible_devices(const Chart& chart) {
  const auto& text = chart.machine.options.environment.cuda_visible_devices;
  if (!text) {
    if (chart.expected)
      chart.add(Severity::kOk, "visible-devices", kVisible, "not set: no GPU is hidden by it");
    return;
  }
  const auto gpus = chart.identities();
  const VisibleDevices visible = read_visible_devices(*text, gpus);
  const std::string looked_at = fmt::format("{}={}", kVisible, printable(*text, 120));
  // On a machine without GPUs it changes nothing.
  const Severity severity = chart.expected ? Severity::kProblem : Severity::kNote;
  if (visible.entries.empty()) {
    chart.add(severity, "visible-devices", looked_at, "it is set and empty, which hides every GPU",
              visible_remedy(gpus.size()));
    return;
  }
  bool ended = false;
  for (size_t i = 0; i < visible.entries.size(); ++i) {
    const VisibleEntry& entry = visible.entries[i];
    const std::string name = fmt::format("entry {} ('{}')", i + 1, printable(entry.text, 60));
    if (!entry.remark.empty())
      chart.add(Severity::kWarning, "visible-devices", looked_at, fmt::format("{}: {}", name, entry.remark),
                "Write plain numbers with commas between.");
    if (entry.fault.empty() || ended) continue;
    ended = true;
    std::string result;
    if (visible.repeated)
      result = "with a repeated entry CUDA gives no GPU at all";
    else if (visible.count == 0)
      result = "CUDA ends the list here, and no GPU is left";
    else
      result = fmt::format("CUDA ends the list here: the program sees {}, those before it",
                           gpu_count(static_cast<size_t>(visible.count)));
    const bool hidden_after = i + 1 < visible.entries.size() && !visible.repeated;
    chart.add(severity, "visible-devices", looked_at,
              fmt::format("{} is wrong: {}; {}{}", name, entry.fault, result,
                          hidden_after ? fmt::format(" ({} behind it)", visible.entries.size() - i - 1) : ""),
              visible_remedy(gpus.size()));
  }
  if (ended) return;
  const auto count = static_cast<size_t>(visible.count);
  if (!gpus.empty() && count < gpus.size())
    chart.add(Severity::kNote, "visible-devices", looked_at,
              fmt::format("it leaves {} of {} to the program, numbered from cuda:0 in the order of the list",
                          count, gpu_count(gpus.size())),
              "Unset it to have all.");
  else
    chart.add(chart.expected ? Severity::kOk : Severity::kNote, "visible-devices", looked_at,
              gpus.empty() ? "it is set; there is no GPU to compare it with" : "every GPU is in it");
}

void examine_order(const Chart& chart) {
  const auto& order = chart.machine.options.environment.cuda_device_order;
  const std::string looked_at = fmt::format("CUDA_DEVICE_ORDER{}, models of the GPUs",
                                            order ? "=" + printable(*order, 40) : " (not set)");
  if (order && *order != "PCI_BUS_ID" && *order != "FASTEST_FIRST") {
    chart.add(Severity::kWarning, "device-order", looked_at,
              fmt::format("'{}' is no order that CUDA knows; it takes FASTEST_FIRST", printable(*order, 40)),
              "Set it to PCI_BUS_ID (nvidia-smi's order) or FASTEST_FIRST, in capitals.");
    return;
  }
  std::vector<std::string> models;
  for (const GpuReading& gpu : chart.readings.gpus) models.push_back(gpu.name);
  if (models.empty())
    for (const DriverGpu& gpu : chart.served()) models.push_back(gpu.model);
  const bool different = std::set<std::string>(models.begin(), models.end()).size() > 1;
  if (!different || order == "PCI_BUS_ID") {
    if (models.size() > 1)
      chart.add(Severity::kOk, "device-order", looked_at,
                different ? "CUDA and nvidia-smi count in the same order, that of the PCI bus"
                          : "all GPUs are of one model, so that CUDA counts them as nvidia-smi does");
    return;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < models.size(); ++i) names.push_back(fmt::format("{} {}", i, models[i]));
  chart.add(
      Severity::kWarning, "device-order", looked_at,
      fmt::format(
          "the GPUs differ, and CUDA counts the fastest first, while nvidia-smi counts by PCI bus ({}): "
          "cuda:0 may be another GPU than nvidia-smi's 0",
          and_list(names)),
      "Set CUDA_DEVICE_ORDER=PCI_BUS_ID, and both count alike.");
}

void examine_load(const Chart& chart) {
  if (!chart.expected) return;
  examine_mig(chart);
  for (const GpuReading& gpu : chart.readings.gpus)
    if (gpu.error.empty()) examine_memory(chart, gpu);
}

}  // namespace tern::detail
