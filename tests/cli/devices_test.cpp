// `tern devices` and `tern doctor`: tables, JSON, watching, exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/temporary_folder.h"

namespace tern::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

/// A machine with an NVIDIA GPU whose driver is not loaded.
void write_machine(const TemporaryFolder& folder) {
  const auto device = folder / "sys/bus/pci/devices/0000:01:00.0";
  std::filesystem::create_directories(device);
  std::ofstream(device / "class") << "0x030200\n";
  std::ofstream(device / "vendor") << "0x10de\n";
  std::ofstream(device / "device") << "0x2335\n";
}

TEST(Devices, TheTableMarksSimulatedGpus) {
  const Outcome outcome = run_program({"devices"}, {.environment = {{"TERN_SIM_GPUS", "2"}}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* word : {"NVIDIA driver:", "CUDA runtime:", "device", "memory", "load", "temp", "power",
                           "compute", "cpu ", "cuda:0 ", "cuda:1 "})
    EXPECT_THAT(outcome.out, HasSubstr(word));
  EXPECT_EQ(count_of(outcome.out, "(simulated)"), 2u) << outcome.out;
}

TEST(Devices, SimulatedGpusNeverAppearUnasked) {
  const Outcome outcome = run_program({"devices"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(count_of(outcome.out, "simulated"), 0u) << outcome.out;
}

TEST(Devices, JsonHasEveryField) {
  const Outcome outcome = run_program({"devices", "--json"}, {.environment = {{"TERN_SIM_GPUS", "1"}}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(count_of(outcome.out, "\n"), 1u);
  const Json report = Json::parse(outcome.out);
  for (const char* key : {"driver_version", "cuda_driver_version", "cuda_runtime_version", "unusable_gpus"})
    EXPECT_TRUE(report.contains(key)) << key;
  ASSERT_EQ(report["devices"].size(), 2u);
  for (const Json& device : report["devices"])
    for (const char* key :
         {"device", "name", "backend", "simulated", "processors", "memory_bytes", "memory_used_bytes",
          "memory_allocated_bytes", "memory_reserved_bytes", "compute_capability", "pci_bus_id", "uuid",
          "utilization_percent", "temperature_celsius", "power_watts", "power_limit_watts", "processes"})
      EXPECT_TRUE(device.contains(key)) << key;
  EXPECT_EQ(report["devices"][0]["device"], "cpu");
  EXPECT_EQ(report["devices"][1]["device"], "cuda:0");
  EXPECT_EQ(report["devices"][1]["simulated"], true);
  EXPECT_EQ(report["devices"][1]["backend"], "sim");
  EXPECT_LE(report["devices"][0]["memory_used_bytes"], report["devices"][0]["memory_bytes"]);
}

TEST(Devices, WatchLooksAgainUntilStopped) {
  for (const std::string argument : {"--watch=0.1", "--watch"}) {
    const size_t looks = argument == "--watch" ? 1 : 3;
    const Outcome outcome =
        run_program({"devices", argument}, {.watch = [looks](pid_t process, const std::string& out) {
                      if (count_of(out, "cpu ") >= looks) ::kill(process, SIGINT);
                    }});
    EXPECT_EQ(outcome.code, 130) << argument << outcome.err;
    EXPECT_GE(count_of(outcome.out, "NVIDIA driver:"), looks);
    EXPECT_EQ(count_of(outcome.out, "\033"), 0u);
  }
  const Outcome json = run_program({"devices", "--json", "--watch", "0.1"},
                                   {.watch = [](pid_t process, const std::string& out) {
                                     if (count_of(out, "\n") >= 2) ::kill(process, SIGTERM);
                                   }});
  EXPECT_EQ(json.code, 143);
  EXPECT_TRUE(Json::accept(json.out.substr(0, json.out.find('\n')))) << json.out;
}

TEST(Devices, WatchRedrawsATerminal) {
  const Outcome outcome =
      run_program({"devices", "--watch", "0.1"}, {.environment = {{"TERM", "xterm"}},
                                                  .terminal_columns = 60,
                                                  .watch = [](pid_t process, const std::string& out) {
                                                    if (count_of(out, "\033[H") >= 2) ::kill(process, SIGINT);
                                                  }});
  EXPECT_EQ(outcome.code, 130);
  EXPECT_THAT(outcome.out, StartsWith("\033[H\033[2J"));
}

TEST(Devices, ARootThatIsNotThereIsWrongUse) {
  const Outcome outcome = run_program({"devices"}, {.environment = {{"TERN_MACHINE_ROOT", "/nonexistent"}}});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("TERN_MACHINE_ROOT: there is no folder '/nonexistent'"));
}

TEST(Devices, WrongWatch) {
  for (const char* value : {"0", "-1", "often", "1e9"}) {
    const Outcome outcome = run_program({"devices", "--watch", value});
    EXPECT_EQ(outcome.code, 2) << value;
    EXPECT_THAT(outcome.err, HasSubstr("--watch"));
  }
}

TEST(Doctor, Help) {
  EXPECT_THAT(run_program({"--help"}).out, HasSubstr("doctor"));
  const Outcome help = run_program({"doctor", "--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* word : {"--json", "--root", "TERN_MACHINE_ROOT", "Examples:", "Exit codes:"})
    EXPECT_THAT(help.out, HasSubstr(word));
}

TEST(Doctor, ThisMachine) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome text = run_program({"doctor"}), json = run_program({"doctor", "--json"});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_THAT(text.out, HasSubstr("looked at"));
  const Json report = Json::parse(json.out);
  EXPECT_EQ(report["root"], "/");
  EXPECT_EQ(json.code, report["problems"] > 0 ? 1 : 0);
  EXPECT_EQ(text.code, json.code);
  EXPECT_THAT(text.out, HasSubstr(report["conclusion"].get<std::string>()));
  ASSERT_FALSE(report["findings"].empty());
  for (const Json& finding : report["findings"])
    for (const char* key : {"severity", "subject", "looked_at", "found", "to_do"})
      EXPECT_TRUE(finding[key].is_string()) << key;
}

TEST(Doctor, NothingIsWrongWithoutAGpu) {
  const TemporaryFolder folder;
  const Outcome outcome = run_program({"doctor", "--root", folder.path().string()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("TERN_SIM_GPUS=2"));
  EXPECT_THAT(outcome.out, HasSubstr("No NVIDIA GPU is here, and nothing is wrong."));
}

TEST(Doctor, AProblemIsOne) {
  const TemporaryFolder folder;
  write_machine(folder);
  const std::string root = folder.path().string();
  // Whatever is hidden from this process is no problem of that machine.
  const std::pair<std::string, std::string> visible{"CUDA_VISIBLE_DEVICES", "0"};
  const Outcome option = run_program({"doctor", "--root", root}, {.environment = {visible}});
  EXPECT_EQ(option.code, 1);
  EXPECT_THAT(option.out, HasSubstr("the NVIDIA driver is not loaded"));
  EXPECT_THAT(option.out, HasSubstr("2 problems"));
  const Outcome variable =
      run_program({"doctor", "--json"}, {.environment = {visible, {"TERN_MACHINE_ROOT", root}}});
  EXPECT_EQ(variable.code, 1);
  const Json report = Json::parse(variable.out);
  EXPECT_EQ(report["root"], root);
  EXPECT_EQ(report["problems"], 2);
  EXPECT_EQ(report["gpu_expected"], true);
}

TEST(Doctor, TheEnvironmentIsExamined) {
  const TemporaryFolder folder;
  write_machine(folder);
  const Outcome outcome = run_program({"doctor", "--json", "--root", folder.path().string()},
                                      {.environment = {{"CUDA_VISIBLE_DEVICES", "-1\xff\x1b[31m"}}});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(Json::accept(outcome.out)) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("entry 1 ('-1??[31m') is wrong"));
}

TEST(Doctor, ARootThatIsNotThereIsWrongUse) {
  EXPECT_EQ(run_program({"doctor", "--root", "/nonexistent"}).code, 2);
  const Outcome variable = run_program({"doctor"}, {.environment = {{"TERN_MACHINE_ROOT", "/nonexistent"}}});
  EXPECT_EQ(variable.code, 2);
  EXPECT_THAT(variable.err, HasSubstr("TERN_MACHINE_ROOT: there is no folder '/nonexistent'"));
}

TEST(Doctor, TextFitsTheTerminal) {
  const TemporaryFolder folder;
  write_machine(folder);
  const Outcome outcome =
      run_program({"doctor", "--root", folder.path().string()},
                  {.environment = {{"TERM", "xterm"}, {"NO_COLOR", "1"}}, .terminal_columns = 60});
  EXPECT_EQ(count_of(outcome.out, "\033"), 0u);
  size_t longest = 0, begin = 0;
  for (size_t end = outcome.out.find('\n'); end != std::string::npos; end = outcome.out.find('\n', begin)) {
    if (outcome.out.substr(begin, end - begin).find("  ") == 0) longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  EXPECT_LE(longest, 62u) << outcome.out;
}

}  // namespace
}  // namespace tern::cli
