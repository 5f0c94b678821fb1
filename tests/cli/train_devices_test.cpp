// `tern train` on several devices: other numbers of them, those that are not here, those it was on.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tern/io/serialize.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tests/cli/program.h"
#include "tests/cli/train_run.h"
#include "tests/support/temporary_folder.h"

namespace tern::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

TEST(Train, GoesOnWithAnotherNumberOfDevices) {
  const TemporaryFolder folder;
  const RunOptions four_gpus{.environment = {{"TERN_SIM_GPUS", "4"}}};
  const auto run = [&](const std::string& name, const char* epochs, std::vector<std::string> more) {
    more.insert(more.end(), {"--epochs", epochs, "--schedule", "none", "--json"});
    const Outcome outcome = run_program(small_run(folder / name, more), four_gpus);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out.substr(0, outcome.out.find('\n')));
  };
  run("whole", "2", {"--device", "cuda:0"});
  const StateDict expected = load(folder / "whole" / "mlp.pt").as_state_dict();
  const Json first = run("first", "1", {"--devices", "all"});
  EXPECT_EQ(first["devices"], Json({"cuda:0", "cuda:1", "cuda:2", "cuda:3"}));
  for (const char* devices : {"cuda:0", "cuda:0,cuda:1", "cuda:2,cuda:0,cuda:1", "all"}) {
    fs::remove_all(folder / "next");
    fs::copy(folder / "first", folder / "next", fs::copy_options::recursive);
    run("next", "2", {"--resume", "--devices", devices});
    const StateDict dict = load(folder / "next" / "mlp.pt").as_state_dict();
    ASSERT_EQ(dict.size(), expected.size());
    for (const auto& [name, tensor] : expected)  // the names have no prefix
      EXPECT_LT((dict.at(name) - tensor).abs().max().item<double>(), 1e-3) << devices << " " << name;
  }
}

TEST(Train, SaysWhatWasOnDevicesThatAreNotHere) {
  const TemporaryFolder folder;
  const fs::path out = folder / "run";
  const RunOptions four_gpus{.environment = {{"TERN_SIM_GPUS", "4"}}};
  const RunOptions two_gpus{.environment = {{"TERN_SIM_GPUS", "2"}}};
  const auto first =
      run_program(small_run(out, {"--epochs", "1", "--schedule", "none", "--device", "cuda:3"}), four_gpus);
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string checkpoint = (out / "checkpoint.pt").string();
  ASSERT_TRUE(Json::parse(run_program({"inspect", checkpoint, "--json"}).out)["tensors"][0]["device"] ==
              "cuda:3");
  const auto said = [](const Outcome& outcome) {  // without the sizes
    const size_t from = outcome.err.find(" ("), to = outcome.err.find(')');
    return outcome.err.substr(0, from) + outcome.err.substr(to == std::string::npos ? from : to + 1);
  };
  const std::string absent = "tern: cuda:3 is not here: what was there is on ";
  const std::vector<std::string> eval = {"eval", "--checkpoint", checkpoint, "--limit", "10", "--json"};
  const auto with = [](std::vector<std::string> arguments, const char* device) {
    arguments.insert(arguments.end(), {"--device", device});
    return arguments;
  };
  const Outcome on_cpu = run_program(eval);
  EXPECT_EQ(on_cpu.code, 0);
  EXPECT_EQ(said(on_cpu), absent + "cpu\n");
  EXPECT_TRUE(Json::accept(on_cpu.out));
  EXPECT_EQ(said(run_program(with(eval, "cuda:1"), two_gpus)), absent + "cuda:1\n");
  EXPECT_EQ(run_program(with(eval, "cuda:1"), four_gpus).err, "");
  const Outcome resumed = run_program(
      {"train", "--resume", "--out", out.string(), "--epochs", "2", "--json", "--device", "cuda:0"},
      two_gpus);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(said(resumed), absent + "cuda:0\n");
}

TEST(Train, GoesOnOnTheDevicesThatItWasOn) {
  const TemporaryFolder folder;
  const fs::path out = folder / "run";
  const RunOptions two_gpus{.environment = {{"TERN_SIM_GPUS", "2"}}};
  struct Case {
    std::vector<std::string> first;
    Json devices;  ///< of the run that goes on
  };
  for (const Case& each : std::vector<Case>{{{"--device", "cuda:1"}, {"cuda:1"}},
                                            {{"--devices", "cuda:1,cuda:0"}, {"cuda:1", "cuda:0"}},
                                            {{"--devices", "all"}, {"cuda:0", "cuda:1"}},
                                            {{}, {"cpu"}}}) {
    fs::remove_all(out);
    std::vector<std::string> arguments = small_run(out, each.first);
    arguments.insert(arguments.end(), {"--schedule", "none", "--epochs", "1"});
    const Outcome first = run_program(arguments, two_gpus);
    ASSERT_EQ(first.code, 0) << first.err;
    const auto resume = [&](const RunOptions& options, std::vector<std::string> more) {
      fs::remove_all(folder / "next");
      fs::copy(out, folder / "next", fs::copy_options::recursive);
      more.insert(more.begin(),
                  {"train", "--resume", "--out", (folder / "next").string(), "--epochs", "2", "--json"});
      Outcome outcome = run_program(more, options);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      outcome.out.erase(outcome.out.find('\n'));
      return outcome;
    };
    const Outcome same = resume(two_gpus, {});
    EXPECT_EQ(Json::parse(same.out)["devices"], each.devices);
    EXPECT_EQ(same.err, "");
    const Outcome chosen = resume(two_gpus, {"--device", "cuda:0"});
    EXPECT_EQ(Json::parse(chosen.out)["devices"], Json({"cuda:0"}));
    EXPECT_EQ(chosen.err, "");
    const Outcome without = resume({.environment = {{"CUDA_VISIBLE_DEVICES", ""}}}, {});
    EXPECT_EQ(Json::parse(without.out)["devices"], Json({"cpu"}));
    EXPECT_EQ(std::count(without.err.begin(), without.err.end(), '\n'), each.first.empty() ? 0 : 1)
        << without.err;
  }
}

}  // namespace
}  // namespace tern::cli
