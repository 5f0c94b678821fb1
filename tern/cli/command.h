// The subcommands of the program. Each adds itself to the parser; what it does runs after the whole line is
// understood.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "tern/core/device.h"

namespace tern::cli {

/// What the command line asks for; returns the exit code.
using Action = std::function<int()>;

void add_train(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_demo(CLI::App& app, Action& action);
void add_launch(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_diff(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_merge(CLI::App& app, Action& action);
void add_average(CLI::App& app, Action& action);
void add_version(CLI::App& app, Action& action);

/// Options that several commands have.
struct CommonOptions {
  std::string device = "cpu";
  int threads = 0;  ///< 0: as many as the process has cores

  void add_to(CLI::App& command);
  /// Sets the number of threads. Throws UsageError for text that is no device, DeviceError for one that is
  /// not there.
  Device apply() const;
};

/// `--data`.
inline constexpr const char* kDataHelp =
    "digits (generated), mnist:DIR, fashion:DIR, cifar10:DIR (binary files), or images:DIR (a folder for "
    "each class, in "
    "train/ and test/ if there are such)";

}  // namespace tern::cli
