// `tern devices` and `tern version`, and the options that commands share. What is known of devices and how it
// is shown is in device_list.h.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "tern/base/error.h"
#include "tern/base/parallel.h"
#include "tern/cli/command.h"
#include "tern/cli/device_list.h"
#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/device/registry.h"
#include "tern/train/interrupt.h"
#include "tern/train/terminal.h"

namespace tern::cli {
namespace {

struct DevicesOptions {
  bool json = false;
  double watch_seconds = 0;  ///< 0: look once
};

void print(const DeviceList& list, bool json, const train::Terminal& terminal) {
  const auto width = static_cast<size_t>(terminal.is_terminal ? terminal.columns : 1000);
  fmt::print("{}", json ? as_json(list) : as_table(list, width));
}

/// Looks again and again. On a terminal each look takes the place of the one before; elsewhere they follow
/// each other. Returns when a signal comes: 128 and its number, as a shell has it.
int watch(const DevicesOptions& options) {
  using Clock = std::chrono::steady_clock;
  const train::Terminal terminal = train::Terminal::of(1);
  const bool redraw = terminal.cursor && !options.json;
  const train::Interrupt interrupt;
  DeviceLister lister;
  const auto pause =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.watch_seconds));
  auto next = Clock::now();
  for (bool first = true; !interrupt.requested(); first = false) {
    const DeviceList list = lister.list();
    if (redraw)
      fmt::print("\033[H\033[2J");
    else if (!first && !options.json)
      fmt::print("\n");
    print(list, options.json, terminal);
    check_output();
    next = std::max(next + pause, Clock::now());
    // In short steps, so that Ctrl-C is answered at once.
    while (!interrupt.requested() && Clock::now() < next)
      std::this_thread::sleep_for(
          std::min<Clock::duration>(next - Clock::now(), std::chrono::milliseconds(50)));
  }
  return 128 + interrupt.signal();
}

int run(const DevicesOptions& options) {
  if (options.watch_seconds > 0) return watch(options);
  print(DeviceLister().list(), options.json, train::Terminal::of(1));
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
  auto options = std::make_shared<DevicesOptions>();
  command->add_flag("--json", options->json, "Print one JSON object instead of a table");
  command
      ->add_option("--watch", options->watch_seconds,
                   "Look again every so many seconds (2 if none are given), until Ctrl-C")
      ->type_name("SECONDS")
      ->expected(0, 1)
      ->default_str("2")
      ->check(number_from(0.1, 3600));
  command->footer("Examples:\n  tern devices\n  tern devices --json\n  tern devices --watch 1");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

void add_version(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->footer("");
  command->callback([&action] {
    action = [] {
      fmt::print("tern {}\n", TERN_VERSION);
      return 0;
    };
  });
}

}  // namespace tern::cli
