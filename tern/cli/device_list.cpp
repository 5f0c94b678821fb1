// Gathering and printing of what is known of the devices.
#include "tern/cli/device_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/device/machine.h"
#include "tern/device/registry.h"

namespace tern::cli {
namespace {

std::string size_text(uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return mib >= 1024 ? fmt::format("{:.1f} GiB", mib / 1024) : fmt::format("{:.0f} MiB", mib);
}

/// The number of a line such as "MemAvailable:   123456 kB", in bytes.
std::optional<uint64_t> meminfo(const std::string& text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = text.find_first_of("0123456789", at);
  if (begin == std::string::npos) return std::nullopt;
  uint64_t kib = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), kib);
  if (error != std::errc() || kib > UINT64_MAX / 1024) return std::nullopt;
  return kib * 1024;
}

/// Of the whole system; nothing where `total`, what the process may use, is not the system's memory.
std::optional<uint64_t> system_memory_used(uint64_t total) {
  std::ifstream file("/proc/meminfo");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto all = meminfo(text, "MemTotal:"), available = meminfo(text, "MemAvailable:");
  if (!all || !available || *available > *all || *all > total + total / 64 || total > *all + *all / 64)
    return std::nullopt;
  return *all - *available;
}

/// The driver's reading of a GPU that the program has; taken out of `readings`.
GpuReading take_reading(std::vector<GpuReading>& readings, const DeviceProperties& properties) {
  const auto found = std::find_if(readings.begin(), readings.end(), [&properties](const GpuReading& reading) {
    if (!properties.uuid.empty() && properties.uuid == reading.uuid) return true;
    return !properties.pci_bus_id.empty() &&
           normal_pci_address(properties.pci_bus_id) == normal_pci_address(reading.pci_bus_id);
  });
  if (found == readings.end()) return {};
  GpuReading reading = std::move(*found);
  readings.erase(found);
  return reading;
}

template <class T, class Text>
std::string or_dash(const std::optional<T>& value, Text text) {
  return value ? text(*value) : "-";
}

std::string power_text(const GpuReading& reading) {
  if (!reading.power_watts) return "-";
  return reading.power_limit_watts
             ? fmt::format("{:.0f} / {:.0f} W", *reading.power_watts, *reading.power_limit_watts)
             : fmt::format("{:.0f} W", *reading.power_watts);
}

std::string process_text(const GpuReading& reading) {
  std::string text;
  for (const GpuProcess& process : reading.processes)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", process.pid,
                        process.name.empty() ? "?" : process.name,
                        process.nbytes ? " " + size_text(*process.nbytes) : "");
  return text;
}

std::string memory_text(std::optional<uint64_t> used, uint64_t total) {
  if (total == 0) return "-";
  return used ? fmt::format("{} / {}", size_text(*used), size_text(total)) : size_text(total);
}

std::string capability_of(int major, int minor) {
  return major > 0 ? fmt::format("{}.{}", major, minor) : std::string();
}

struct Row {
  std::string device, name, memory, load, temperature, power, compute;
  std::vector<std::string> below;  ///< lines of their own, under the name
};

Row row_of(const ListedDevice& listed) {
  const DeviceProperties& properties = listed.properties;
  const GpuReading& reading = listed.reading;
  Row row;
  row.device = listed.device.str();
  row.name = printable(properties.name, 60) + (properties.simulated ? " (simulated)" : "");
  row.memory = memory_text(listed.memory_used, properties.total_memory);
  row.load = or_dash(reading.utilization_percent, [](int value) { return fmt::format("{}%", value); });
  row.temperature =
      or_dash(reading.temperature_celsius, [](int value) { return fmt::format("{} C", value); });
  row.power = power_text(reading);
  row.compute = capability_of(properties.major, properties.minor);
  if (row.compute.empty()) row.compute = "-";
  std::string where = fmt::format("{} {}{}", properties.processors,
                                  listed.device.is_cpu() || properties.simulated ? "core" : "multiprocessor",
                                  properties.processors == 1 ? "" : "s");
  for (const std::string& word : {properties.pci_bus_id, properties.uuid})
    if (!word.empty()) where += "  " + printable(word, 60);
  row.below.push_back(std::move(where));
  if (const std::string text = process_text(reading); !text.empty())
    row.below.push_back("processes: " + text);
  return row;
}

Row row_of(const GpuReading& reading) {
  Row row;
  row.device = fmt::format("GPU {}", reading.index);
  row.name = reading.name.empty() ? "unknown" : reading.name;
  row.memory = memory_text(reading.memory_used, reading.memory_total.value_or(0));
  row.load = or_dash(reading.utilization_percent, [](int value) { return fmt::format("{}%", value); });
  row.temperature =
      or_dash(reading.temperature_celsius, [](int value) { return fmt::format("{} C", value); });
  row.power = power_text(reading);
  row.compute = capability_of(reading.major.value_or(0), reading.minor.value_or(0));
  if (row.compute.empty()) row.compute = "-";
  if (!reading.error.empty()) row.below.push_back(reading.error);
  if (!reading.pci_bus_id.empty() || !reading.uuid.empty())
    row.below.push_back(fmt::format("{}  {}", reading.pci_bus_id, reading.uuid));
  if (const std::string text = process_text(reading); !text.empty())
    row.below.push_back("processes: " + text);
  return row;
}

nlohmann::ordered_json optional_json(const auto& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json text_json(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

void add_reading(nlohmann::ordered_json& json, const GpuReading& reading) {
  json["utilization_percent"] = optional_json(reading.utilization_percent);
  json["temperature_celsius"] = optional_json(reading.temperature_celsius);
  json["power_watts"] = optional_json(reading.power_watts);
  json["power_limit_watts"] = optional_json(reading.power_limit_watts);
  nlohmann::ordered_json processes = nlohmann::ordered_json::array();
  for (const GpuProcess& process : reading.processes)
    processes.push_back(
        {{"pid", process.pid}, {"name", text_json(process.name)}, {"bytes", optional_json(process.nbytes)}});
  json["processes"] = std::move(processes);
}

}  // namespace

std::string machine_folder(const std::string& given) {
  const std::string root = given.empty() ? machine_root() : given;
  std::error_code error;
  if (!std::filesystem::is_directory(root, error))
    throw_usage("{}: there is no folder '{}'", given.empty() ? "TERN_MACHINE_ROOT" : "--root", root);
  return std::filesystem::equivalent(root, "/", error) ? "/" : root;
}

DeviceLister::DeviceLister() {
  MachineOptions options;
  options.root = machine_folder();
  const Machine machine = read_machine(std::move(options));
  // A machine that only has files cannot be asked.
  if (machine.real()) monitor_ = nvml_monitor();
  if (machine.driver.version) driver_version_ = machine.driver.version->text;
  if (machine.runtime) runtime_version_ = machine.runtime->version.text;
}

DeviceList DeviceLister::list() {
  DeviceList list;
  GpuReadings readings = monitor_ ? monitor_->read() : GpuReadings{};
  list.driver_version = readings.driver_version.empty() ? driver_version_ : readings.driver_version;
  list.runtime_version = runtime_version_;
  if (readings.cuda_major)
    list.cuda_version = fmt::format("{}.{}", *readings.cuda_major, readings.cuda_minor.value_or(0));
  for (const Device& device : available_devices()) {
    Backend& backend = backend_of(device.type);
    ListedDevice listed{device,
                        std::string(backend.name()),
                        backend.properties(device.index),
                        backend.memory_stats(device.index),
                        {},
                        {}};
    if (device.is_cuda() && !listed.properties.simulated) {
      listed.reading = take_reading(readings.gpus, listed.properties);
      listed.memory_used = listed.reading.memory_used;
    }
    if (device.is_cpu()) listed.memory_used = system_memory_used(listed.properties.total_memory);
    if (!listed.memory_used) listed.memory_used = listed.own.reserved;
    list.devices.push_back(std::move(listed));
  }
  list.unused = std::move(readings.gpus);
  return list;
}

std::string as_table(const DeviceList& list, size_t width) {
  std::vector<Row> rows = {{"device", "name", "memory", "load", "temp", "power", "compute", {}}};
  for (const ListedDevice& listed : list.devices) rows.push_back(row_of(listed));
  const size_t first_unused = rows.size();
  for (const GpuReading& reading : list.unused) rows.push_back(row_of(reading));
  using Column = std::string Row::*;
  const Column columns[] = {&Row::device,      &Row::name,  &Row::memory, &Row::load,
                            &Row::temperature, &Row::power, &Row::compute};
  std::vector<size_t> widths;
  for (Column column : columns) {
    size_t widest = 0;
    for (const Row& row : rows) widest = std::max(widest, (row.*column).size());
    widths.push_back(widest);
  }
  std::string text = fmt::format(
      "NVIDIA driver: {}{}; CUDA runtime: {}\n\n", list.driver_version.empty() ? "none" : list.driver_version,
      list.cuda_version.empty() ? "" : fmt::format(" (CUDA up to {})", list.cuda_version),
      list.runtime_version.empty() ? "none" : list.runtime_version);
  const std::string indent(widths[0] + 2, ' ');
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i == first_unused) text += "\nOn this machine, but not usable here ('tern doctor' says why):\n";
    std::string line;
    for (size_t c = 0; c < std::size(columns); ++c)
      line += c < 2 ? fmt::format("{:<{}}  ", rows[i].*columns[c], widths[c])
                    : fmt::format("{:>{}}  ", rows[i].*columns[c], widths[c]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    for (const std::string& below : rows[i].below) {
      std::string under = indent + below;
      if (under.size() > width && width > indent.size() + 3) under = under.substr(0, width - 3) + "...";
      text += under + "\n";
    }
  }
  return text;
}

std::string as_json(const DeviceList& list) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array(), unused = nlohmann::ordered_json::array();
  for (const ListedDevice& listed : list.devices) {
    const DeviceProperties& properties = listed.properties;
    nlohmann::ordered_json json = {
        {"device", listed.device.str()},
        {"name", properties.name},
        {"backend", listed.backend},
        {"simulated", properties.simulated},
        {"processors", properties.processors},
        {"memory_bytes", properties.total_memory},
        {"memory_used_bytes", optional_json(listed.memory_used)},
        {"memory_allocated_bytes", listed.own.allocated},
        {"memory_reserved_bytes", listed.own.reserved},
        {"compute_capability", text_json(capability_of(properties.major, properties.minor))},
        {"pci_bus_id", text_json(properties.pci_bus_id)},
        {"uuid", text_json(properties.uuid)},
    };
    add_reading(json, listed.reading);
    devices.push_back(std::move(json));
  }
  for (const GpuReading& reading : list.unused) {
    nlohmann::ordered_json json = {
        {"index", reading.index},
        {"name", reading.name},
        {"memory_bytes", optional_json(reading.memory_total)},
        {"memory_used_bytes", optional_json(reading.memory_used)},
        {"compute_capability",
         text_json(capability_of(reading.major.value_or(0), reading.minor.value_or(0)))},
        {"pci_bus_id", text_json(reading.pci_bus_id)},
        {"uuid", text_json(reading.uuid)},
        {"error", text_json(reading.error)},
    };
    add_reading(json, reading);
    unused.push_back(std::move(json));
  }
  const nlohmann::ordered_json report = {{"driver_version", text_json(list.driver_version)},
                                         {"cuda_driver_version", text_json(list.cuda_version)},
                                         {"cuda_runtime_version", text_json(list.runtime_version)},
                                         {"devices", devices},
                                         {"unusable_gpus", unused}};
  return json_text(report);
}

}  // namespace tern::cli
