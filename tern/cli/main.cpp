// The program `tern`: parsing of the command line, and how errors become exit codes: 0 done, 1 failure, 2
// wrong use, 130 and 143 stopped by SIGINT and SIGTERM. The commands are in the files beside this one.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "tern/base/env.h"
#include "tern/base/error.h"
#include "tern/cli/command.h"
#include "tern/cli/output.h"
#include "tern/cli/usage.h"
#include "tern/device/simulation.h"
#include "tern/device/stream.h"

namespace tern::cli {
namespace {

constexpr int kFailure = 1;
constexpr int kWrongUse = 2;

constexpr const char* kProgramFooter = R"(Examples:
  tern demo
  tern train --data mnist:mnist --epochs 5 --out run
  tern train --resume --out run
  tern eval --checkpoint run/lenet.pt --data mnist:mnist
  tern predict --checkpoint run/checkpoint.pt seven.png
  tern inspect model.pt

`tern COMMAND --help` has the options and examples of a command.
Exit codes: 0 done, 1 failure, 2 wrong use, 130 stopped by Ctrl-C.
`--json`, where a command has it, makes a failure an object too: {"type":"error","error":"..."}.)";

/// The command that was being parsed, else the program itself.
CLI::App& active(CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : *chosen.back();
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// What CLI11 says, or about an option that does not exist which one may be meant.
std::string explain(const CLI::ParseError& error, const CLI::App& app, const CLI::App& command) {
  // What a command does not know it hands to the program.
  std::vector<std::string> words = command.remaining();
  for (const std::string& word : app.remaining()) words.push_back(word);
  for (const std::string& word : words) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string name = word.substr(0, word.find('='));
    const std::string hint = nearest(name, option_names(command));
    return fmt::format("unknown option '{}'{}", name,
                       hint.empty() ? "" : fmt::format(", did you mean '{}'?", hint));
  }
  return error.what();
}

int wrong_use(const std::string& who, std::string_view text) {
  print_failure(who,
                fmt::format("{} (see '{} --help')", text.substr(0, text.find_last_not_of('\n') + 1), who));
  return kWrongUse;
}

int fail(std::string_view text) noexcept {
  print_failure("tern", text);
  return kFailure;
}

int run(int argc, char** argv) {
  CLI::App app("Tern trains neural networks, saves them in PyTorch's format, and tests them.");
  app.name("tern");
  app.footer(kProgramFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", "tern " TERN_VERSION, "Print the version and exit");
  app.get_formatter()->column_width(34);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.fallthrough();  // options of the program may stand after the command too
  int sim_gpus = 0;
  CLI::Option* simulate = app.add_option(
      "--sim-gpus", sim_gpus, "Simulate N GPUs on the CPU; TERN_SIM=... has more options for them");
  simulate->type_name("N")->check(CLI::Range(0, kMaxGpus));
  Action action;
  add_train(app, action);
  add_eval(app, action);
  add_predict(app, action);
  add_demo(app, action);
  add_launch(app, action);
  add_devices(app, action);
  add_doctor(app, action);
  add_inspect(app, action);
  add_convert(app, action);
  add_diff(app, action);
  add_verify(app, action);
  add_merge(app, action);
  add_average(app, action);
  add_version(app, action);

  if (std::find(argv, argv + argc, std::string_view("--json")) != argv + argc) tell_failures_as_json();
  if (argc < 2)
    return wrong_use(
        "tern", "a command is missing: train, eval, predict, demo, launch, devices, doctor, inspect, ...");
  char help[] = "--help";
  std::string first = argv[1];
  if (first == "help") {  // tern help COMMAND
    argv[1] = argc > 2 ? argv[2] : help;
    if (argc > 2) argv[2] = help;
    argc = std::min(argc, 3);
    first = argv[1];
  }
  if (first.empty() || first[0] != '-') {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(command->get_name());
    if (std::find(names.begin(), names.end(), first) == names.end()) {
      const std::string hint = nearest(first, names);
      return wrong_use("tern", fmt::format("unknown command '{}'{}", first,
                                           hint.empty() ? "" : fmt::format(", did you mean '{}'?", hint)));
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& shown) {
    return app.exit(shown);
  } catch (const CLI::ParseError& error) {
    CLI::App& command = active(app);
    return wrong_use(&command == &app ? "tern" : "tern " + command.get_name(), explain(error, app, command));
  }
  try {
    if (simulate->count() > 0) {
      SimulationOptions options = parse_simulation(env_text("TERN_SIM").value_or(""));
      options.gpus = sim_gpus;
      simulate_gpus(options);
    }
    return action();
  } catch (const UsageError& error) {
    return wrong_use("tern " + active(app).get_name(), error.what());
  }
}

}  // namespace
}  // namespace tern::cli

int main(int argc, char** argv) {
  if (!tern::cli::open_standard_streams()) return tern::cli::kFailure;
  tern::cli::survive_file_size_limit();
  try {
    const int code = tern::cli::run(argc, argv);
    if (code != tern::cli::kWrongUse) tern::cli::check_output();
    return code;
  } catch (const std::bad_alloc&) {
    return tern::cli::fail("out of memory");
  } catch (const std::exception& error) {
    return tern::cli::fail(error.what());
  }
}
