// `tern devices` and `tern version`.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tern/base/error.h"
#include "tern/base/parallel.h"
#include "tern/cli/command.h"
#include "tern/cli/usage.h"
#include "tern/device/registry.h"

namespace tern::cli {
namespace {

std::string size_text(uint64_t bytes) {
  const double gib = static_cast<double>(bytes) / (1024.0 * 1024 * 1024);
  return gib >= 1 ? fmt::format("{:.1f} GiB", gib) : fmt::format("{:.0f} MiB", gib * 1024);
}

int print_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Device& device : available_devices()) {
    const DeviceProperties properties = backend_of(device.type).properties(device.index);
    list.push_back({{"device", device.str()},
                    {"name", properties.name},
                    {"backend", std::string(backend_of(device.type).name())},
                    {"memory_bytes", properties.total_memory},
                    {"processors", properties.processors},
                    {"simulated", properties.simulated}});
  }
  fmt::print("{}\n", nlohmann::ordered_json{{"devices", list}}.dump());
  return 0;
}

int print_table() {
  struct Row {
    std::string device, name, memory, processors;
  };
  std::vector<Row> rows = {{"device", "name", "memory", "processors"}};
  for (const Device& device : available_devices()) {
    const DeviceProperties p = backend_of(device.type).properties(device.index);
    rows.push_back({device.str(), p.name + (p.simulated ? " (simulated)" : ""), size_text(p.total_memory),
                    fmt::format("{} {}", p.processors, device.is_cpu() ? "cores" : "multiprocessors")});
  }
  auto widest = [&](std::string Row::*column) {
    size_t width = 0;
    for (const Row& row : rows) width = std::max(width, (row.*column).size());
    return width;
  };
  const size_t device = widest(&Row::device), name = widest(&Row::name), memory = widest(&Row::memory);
  for (const Row& row : rows)
    fmt::print("{:<{}}  {:<{}}  {:>{}}  {}\n", row.device, device, row.name, name, row.memory, memory,
               row.processors);
  return 0;
}

}  // namespace

void CommonOptions::add_to(CLI::App& command) {
  command.add_option("--device", device, "Where to compute: cpu, cuda or cuda:N (see 'tern devices')")
      ->type_name("D")
      ->capture_default_str();
  command.add_option("--threads", threads, "CPU threads; by default one for each core")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
}

Device CommonOptions::apply() const {
  if (threads > 0) set_num_threads(threads);
  Device parsed;
  try {
    parsed = Device(device);
  } catch (const DeviceError& error) {
    throw UsageError(std::string("--device: ") + error.what());
  }
  const auto all = available_devices();
  if (parsed.is_cuda() && parsed.index < 0) parsed.index = 0;
  if (std::find(all.begin(), all.end(), parsed) == all.end()) {
    std::string names;
    for (const Device& each : all) names += (names.empty() ? "" : ", ") + each.str();
    throw DeviceError(fmt::format("--device: there is no {} here; there is: {}", parsed.str(), names));
  }
  return parsed;
}

void add_devices(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("devices", "List the devices that tensors can be put on");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print one JSON object instead of a table");
  command->footer("Examples:\n  tern devices\n  tern devices --json");
  command->callback([json, &action] { action = [json] { return *json ? print_json() : print_table(); }; });
}

void add_version(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->callback([&action] {
    action = [] {
      fmt::print("tern {}\n", TERN_VERSION);
      return 0;
    };
  });
}

}  // namespace tern::cli
