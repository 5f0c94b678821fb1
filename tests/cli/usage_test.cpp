// Help, wrong use, exit codes, the list of devices.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "tern/io/save.h"
#include "tern/ops/creation.h"
#include "tests/cli/program.h"
#include "tests/support/temporary_folder.h"

namespace tern::cli {
namespace {

size_t count_lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Usage, HelpIsComplete) {
  const Outcome help = run_program({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  for (const char* command :
       {"train", "eval", "predict", "demo", "devices", "version", "Examples:", "Exit codes:"})
    EXPECT_NE(help.out.find(command), std::string::npos) << command;
  const std::vector<std::pair<const char*, std::vector<const char*>>> commands = {
      {"train", {"--model",   "--data",     "--epochs",       "--batch-size", "--optimizer",
                 "--lr",      "--momentum", "--weight-decay", "--schedule",   "--seed",
                 "--out",     "--resume",   "--overwrite",    "--device",     "--threads",
                 "--workers", "--json",     "--limit",        "--save-every", "--keep"}},
      {"eval", {"--checkpoint", "--data", "--model", "--split", "--device", "--json"}},
      {"predict", {"--checkpoint", "--top", "--json", "IMAGE"}},
      {"demo", {"--out", "--epochs"}},
      {"launch", {"--nproc-per-node", "--nnodes", "--node-rank", "--master-addr", "--tag-output"}},
      {"devices", {"--json"}},
  };
  for (const auto& [command, options] : commands) {
    const Outcome outcome = run_program({command, "--help"});
    EXPECT_EQ(outcome.code, 0) << command;
    EXPECT_NE(outcome.out.find("Examples:"), std::string::npos) << command;
    for (const char* option : options)
      EXPECT_NE(outcome.out.find(option), std::string::npos) << command << " " << option;
  }
}

TEST(Usage, Version) {
  const Outcome flag = run_program({"--version"}), command = run_program({"version"});
  EXPECT_EQ(flag.code, 0);
  EXPECT_EQ(flag.out.rfind("tern ", 0), 0u) << flag.out;
  EXPECT_EQ(command.out, flag.out);
  const Outcome help = run_program({"version", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.out.find("Examples:"), std::string::npos) << help.out;
}

TEST(Usage, WrongUseIsOneLineAndTwo) {
  struct Case {
    std::vector<std::string> arguments;
    std::string said;
  };
  const std::vector<Case> cases = {
      {{}, "a command is missing"},
      {{"trian"}, "did you mean 'train'?"},
      {{"frobnicate"}, "unknown command 'frobnicate'"},
      {{"--verbose"}, "--verbose"},
      {{"train", "--epoch", "3"}, "did you mean '--epochs'?"},
      {{"train", "--lerning-rate", "3"}, "unknown option '--lerning-rate'"},
      {{"train", "extra"}, "extra"},
      {{"train", "--epochs"}, "--epochs"},
      {{"train", "--epochs", "many"}, "many"},
      {{"train", "--epochs", "0"}, "--epochs"},
      {{"train", "--batch-size", "-1"}, "--batch-size"},
      {{"train", "--lr", "-0.1"}, "--lr"},
      {{"train", "--model", "lenett"}, "did you mean 'lenet'?"},
      {{"train", "--data", "mnist"}, "mnist:DIR"},
      {{"train", "--data", "minst:x"}, "did you mean 'mnist'?"},
      {{"train", "--data", "digits:x"}, "take no folder"},
      {{"train", "--optimizer", "sdg"}, "did you mean 'sgd'?"},
      {{"train", "--optimizer", "adam", "--momentum", "0.9"}, "not for adam"},
      {{"train", "--schedule", "step"}, "step:EPOCHS"},
      {{"train", "--schedule", "step:x"}, "whole number"},
      {{"train", "--schedule", "exponential:0"}, "positive"},
      {{"train", "--schedule", "linear"}, "unknown name 'linear'"},
      {{"train", "--schedule", "restarts"}, "restarts:EPOCHS:FACTOR"},
      {{"train", "--schedule", "restarts:2:0"}, "must be at least 1, got 2 and 0"},
      {{"train", "--schedule", "polynomial:0"}, "the power of polynomial must be positive"},
      {{"train", "--optimizer", "nadan"}, "did you mean 'nadam'?"},
      {{"train", "--optimizer", "radam", "--momentum", "0.5"},
       "--momentum is for sgd and rmsprop, not for radam"},
      {{"train", "--device", "gpu"}, "--device"},
      {{"train", "--devices", "gpu"}, "--devices"},
      {{"train", "--devices", "cpu"}, "write --device cpu"},
      {{"train", "--device", "cpu", "--devices", "all"}, "exclude each other"},
      {{"train", "--resume"}, "--out"},
      {{"train", "--resume", "--overwrite", "--out", "x"}, "exclude each other"},
      {{"launch", "-n", "2"}, "the program that is to be started is missing"},
      {{"launch", "-n", "0", "true"}, "--nproc-per-node"},
      {{"launch", "--grace", "nan", "true"}, "--grace: expected a number from 0"},
      {{"eval"}, "--checkpoint is required"},
      {{"eval", "--checkpoint", "x", "--split", "all"}, "--split"},
      {{"predict", "--checkpoint", "x"}, "images is required"},
      {{"predict", "--checkpoint", "x", "--top", "0", "y"}, "--top"},
      {{"train", "--lr", "nan"}, "--lr: expected a number from 0 to 1000000, got 'nan'"},
      {{"train", "--weight-decay", "inf"}, "--weight-decay: expected a number from 0 to 1000000, got 'inf'"},
      {{"train", "--seed", "99999999999999999999"}, "expected a whole number from 0 to 18446744073709551615"},
      {{"train", "--seed", "-1"}, "got '-1'"},
      {{"train", "--limit", "0"}, "--limit: Value 0 not in range 1 to 1073741824"},
      {{"diff", "a", "b", "--tolerance", "nan"}, "--tolerance: expected a number from 0 on, got 'nan'"},
      {{"diff", "a", "b", "--tolerance", "-1"}, "--tolerance: expected a number from 0 on, got '-1'"},
      {{"devices", "--watch", "nan"}, "--watch: expected a number from 0.1 to 3600, got 'nan'"},
      {{"convert", "a", "b.safetensors", "--shard", "abc"}, "got 'abc'"},
      {{"convert", "a", "b", "--only"}, "--only"},
      {{"merge", "a", "b"}, "expected at least 3 files, the last of them to be written, got 2"},
      {{"average", "a", "b"}, "expected at least 3 files, the last of them to be written, got 2"},
  };
  for (const Case& each : cases) {
    std::string line = "tern";
    for (const std::string& argument : each.arguments) line += " " + argument;
    const Outcome outcome = run_program(each.arguments);
    EXPECT_EQ(outcome.code, 2) << line;
    EXPECT_EQ(outcome.out, "") << line;
    EXPECT_EQ(count_lines(outcome.err), 1u) << line << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(each.said), std::string::npos) << line << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find("--help"), std::string::npos) << line << "\n" << outcome.err;
  }
}

TEST(Usage, FailureIsOneLineAndOne) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"train", "--data", "mnist:/nonexistent", "--out", "/tmp/tern-never"}, "/nonexistent"},
      {{"train", "--limit", "10", "--out", "/proc/tern"}, "/proc/tern"},
      {{"train", "--resume", "--out", "/nonexistent"}, "nothing to resume"},
      {{"train", "--device", "cuda:7"}, "cuda:7"},
      {{"train", "--devices", "cuda:7"}, "cuda:7"},
      {{"eval", "--checkpoint", "/nonexistent.pt"}, "/nonexistent.pt"},
      {{"eval", "--checkpoint", "/dev/null"}, "/dev/null"},
      {{"predict", "--checkpoint", "/nonexistent.pt", "x.png"}, "/nonexistent.pt"},
  };
  for (const auto& [arguments, said] : cases) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.code, 1) << said;
    EXPECT_EQ(outcome.err.rfind("tern: ", 0), 0u) << outcome.err;
    EXPECT_EQ(count_lines(outcome.err), 1u) << outcome.err;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  }
}

TEST(Usage, ExitCodesWhereStandardErrorCannotBeWritten) {
  for (const char* file : {static_cast<const char*>(nullptr), "/dev/full"}) {
    const RunOptions options{.streams = {{2, file}}};
    EXPECT_EQ(run_program({"inspect", "/nonexistent.pt"}, options).code, 1);
    EXPECT_EQ(run_program({"eval", "--checkpoint", "/nonexistent.pt"}, options).code, 1);
    EXPECT_EQ(run_program({"frobnicate"}, options).code, 2);
  }
}

TEST(Usage, NamesThatAreTooLong) {
  const std::string name(300, 'a');
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"train", "--resume", "--out", name}, {"demo", "--out", name}, {"inspect", name}}) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_NE(outcome.err.find("File name too long"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("filesystem error"), std::string::npos) << outcome.err;
  }
}

TEST(Usage, Devices) {
  const Outcome table = run_program({"devices"});
  EXPECT_EQ(table.code, 0);
  EXPECT_NE(table.out.find("cpu"), std::string::npos);
  const Outcome json = run_program({"devices", "--json"});
  EXPECT_EQ(json.code, 0);
  const auto devices = nlohmann::json::parse(json.out)["devices"];
  EXPECT_EQ(devices[0]["device"], "cpu");
  EXPECT_GT(devices[0]["memory_bytes"], 0);
  EXPECT_EQ(devices[0]["simulated"], false);
}

TEST(Usage, NumberOfThreadsFromTheEnvironment) {
  const TemporaryFolder folder;
  const std::tuple<const char*, const char*, const char*> rows[] = {{"", "3", "\"threads\":3"},
                                                                    {"2", "3", "\"threads\":2"}};
  for (const auto& [own, openmp, said] : rows) {
    const Outcome outcome =
        run_program({"train", "--limit", "64", "--epochs", "1", "--json", "--overwrite", "--out", "run"},
                    {.environment = {{"TERN_NUM_THREADS", own}, {"OMP_NUM_THREADS", openmp}},
                     .folder = folder.path().string()});
    EXPECT_NE(outcome.out.find(said), std::string::npos) << outcome.out << outcome.err;
  }
}

TEST(Usage, HelpIsACommandToo) {
  EXPECT_EQ(run_program({"help", "train"}).out, run_program({"train", "--help"}).out);
  EXPECT_EQ(run_program({"help"}).out, run_program({"--help"}).out);
  EXPECT_EQ(run_program({"help", "trian"}).code, 2);
}

TEST(Usage, WrongEnvironment) {
  const std::pair<const char*, const char*> rows[] = {
      {"TERN_NUM_THREADS", "expected an integer from 1 to 1024, got 'many'"},
      {"TERN_CPU_VARIANT", "expected one of the variants that this processor runs"}};
  for (const auto& [name, said] : rows) {
    const Outcome outcome = run_program({"devices"}, {.environment = {{name, "many"}}});
    EXPECT_EQ(outcome.code, 1) << name;
    EXPECT_EQ(count_lines(outcome.err), 1u) << outcome.err;
    EXPECT_NE(outcome.err.find("environment variable " + std::string(name)), std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  }
  const TemporaryFolder folder;
  save({{"w", ones({2})}}, folder / "good.pt");
  const Outcome verified = run_program({"verify", "--json", (folder / "good.pt").string()},
                                       {.environment = {{"TERN_CPU_VARIANT", "many"}}});
  EXPECT_EQ(verified.code, 1);
  EXPECT_EQ(verified.out.find("\"ok\""), std::string::npos) << "the file is not to blame";
  EXPECT_EQ(verified.err.find("pickle"), std::string::npos) << verified.err;
  const Outcome simulated =
      run_program({"devices"}, {.environment = {{"TERN_NUM_THREADS", "many"}, {"TERN_SIM_GPUS", "2"}}});
  EXPECT_EQ(simulated.code, 1) << simulated.err;
  EXPECT_EQ(count_lines(simulated.err), 1u) << simulated.err;
}

}  // namespace
}  // namespace tern::cli
