// `tern launch`: a program as several processes, on one machine or on many servers.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tern/cli/command.h"
#include "tern/cli/usage.h"
#include "tern/parallel/launch.h"

namespace tern::cli {
namespace {

constexpr const char* kLaunchFooter =
    R"(Starts PROGRAM N times. The processes find each other (dist::ProcessGroup::start(), in Python
tern.distributed.init_process_group()) by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which are set for them. When
one fails, the others are ended, and its exit code is that of the program. On several machines each starts its own
processes, with the address of the first.

Examples:
  tern launch -n 4 ./train --epochs 3
  tern launch -n 2 --tag-output python3 train.py
  tern launch -n 8 --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 ./train    # on 10.0.0.1
  tern launch -n 8 --nnodes 2 --node-rank 1 --master-addr 10.0.0.1 ./train    # on the other)";

struct LaunchArguments {
  dist::LaunchOptions options;
  double grace_s = 5;
  std::vector<std::string> command;
};

int run_launch(const LaunchArguments& arguments) {
  if (arguments.command.empty()) throw_usage("the program that is to be started is missing");
  dist::LaunchOptions options = arguments.options;
  options.grace = std::chrono::milliseconds(static_cast<int64_t>(arguments.grace_s * 1000));
  const dist::LaunchResult result = dist::launch(arguments.command, options);
  if (!result.reason.empty()) fmt::print(stderr, "tern launch: {}\n", result.reason);
  return result.exit_code;
}

}  // namespace

void add_launch(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<LaunchArguments>();
  dist::LaunchOptions& options = arguments->options;
  CLI::App* command = app.add_subcommand(
      "launch", "Start a program as several processes: tern launch [OPTIONS] PROGRAM [ARGUMENTS]...");
  command->add_option("-n,--nproc-per-node", options.nproc_per_node, "Processes on this machine")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--nnodes", options.nnodes, "Machines")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--node-rank", options.node_rank, "The number of this one, from 0 on")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--master-addr", options.master_addr, "The address of machine 0")
      ->capture_default_str();
  command
      ->add_option("--master-port", options.master_port,
                   "A port that is free there (0: any, on a single machine; else 29500)")
      ->capture_default_str();
  command->add_flag("--tag-output", options.tag_output, "Write the rank before every line");
  command
      ->add_option("--grace", arguments->grace_s,
                   "Seconds that the others have to end when one has failed, before they are ended")
      ->check(number_from(0, 1e6))
      ->capture_default_str();
  command->fallthrough(false);
  command->prefix_command();  // the rest is the program's own
  command->footer(kLaunchFooter);
  command->callback([arguments, command, &action] {
    arguments->command = command->remaining();
    action = [arguments] { return run_launch(*arguments); };
  });
}

}  // namespace tern::cli
