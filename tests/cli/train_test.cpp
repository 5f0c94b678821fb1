// `tern train`: files, exact resumption after Ctrl-C and after a kill, refusals, what is shown where. Devices
// are in train_devices_test.cpp.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tern/data/image.h"
#include "tern/io/serialize.h"
#include "tern/ops/pointwise.h"
#include "tests/cli/program.h"
#include "tests/cli/train_run.h"
#include "tests/support/temporary_folder.h"

namespace tern::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

void expect_same_weights(const fs::path& a, const fs::path& b) {
  const StateDict left =
      load(a)["model"].exists() ? load(a)["model"].as_state_dict() : load(a).as_state_dict();
  const StateDict right =
      load(b)["model"].exists() ? load(b)["model"].as_state_dict() : load(b).as_state_dict();
  ASSERT_EQ(left.size(), right.size());
  for (const auto& [name, tensor] : left) {
    const Tensor& other = right.at(name);
    ASSERT_EQ(tensor.nbytes(), other.nbytes()) << name;
    EXPECT_EQ(std::memcmp(tensor.data_ptr(), other.data_ptr(), tensor.nbytes()), 0) << name;
  }
}

void expect_same_run(const fs::path& a, const fs::path& b) {
  EXPECT_EQ(read_metrics(a), read_metrics(b));
  expect_same_weights(a / "mlp.pt", b / "mlp.pt");
  expect_same_weights(a / "checkpoint.pt", b / "checkpoint.pt");
}

/// Sends a signal at the first line of the output for which `when` holds.
RunOptions signal_at(int signal, const char* text) {
  RunOptions options;
  options.watch = [signal, text, sent = false](pid_t process, const std::string& out) mutable {
    if (sent || out.find(text) == std::string::npos) return;
    sent = true;
    ::kill(process, signal);
  };
  return options;
}

class TrainTest : public testing::Test {
 protected:
  /// The run that is never stopped, made once.
  static const fs::path& whole_run() {
    static const TemporaryFolder folder;
    static const fs::path out = [] {
      const fs::path path = folder.path() / "whole";
      const Outcome outcome = run_program(small_run(path));
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      return path;
    }();
    return out;
  }
  TemporaryFolder folder_;
  fs::path out_ = folder_.path() / "run";
};

TEST_F(TrainTest, WritesEverything) {
  const fs::path& out = whole_run();
  for (const char* name : {"checkpoint.pt", "metrics.jsonl", "mlp.pt", "mlp.safetensors"})
    EXPECT_TRUE(fs::is_regular_file(out / name)) << name;
  int event_files = 0;
  for (const auto& entry : fs::directory_iterator(out))
    event_files += entry.path().filename().string().starts_with("events.out.tfevents.");
  EXPECT_EQ(event_files, 1);
  const auto metrics = read_metrics(out);
  ASSERT_EQ(metrics.size(), 60u / 7 + 3);
  EXPECT_EQ(metrics.front()["step"], 7);
  EXPECT_EQ(metrics.back()["type"], "epoch");
  EXPECT_EQ(metrics.back()["epoch"], 3);
  EXPECT_EQ(metrics.back()["step"], 60);
  EXPECT_GT(metrics.back()["test_accuracy"], 0.3);
  const Value checkpoint = load(out / "checkpoint.pt");
  EXPECT_EQ(checkpoint["epoch"].as_int(), 3);
  EXPECT_EQ(checkpoint["optimizer"]["param_groups"][0]["params"].length(), 4u);
}

TEST_F(TrainTest, ASecondRunGivesTheSameNumbers) {
  ASSERT_EQ(run_program(small_run(out_, {"--workers", "2"})).code, 0);
  expect_same_run(whole_run(), out_);
}

TEST_F(TrainTest, ResumesExactlyAfterCtrlC) {
  const Outcome first = run_program(small_run(out_, {"--json"}), signal_at(SIGINT, "\"step\":7,"));
  ASSERT_EQ(first.code, 130) << first.err;
  const Json last = Json::parse(first.out.substr(first.out.rfind('\n', first.out.size() - 2) + 1));
  EXPECT_EQ(last["type"], "stopped");
  EXPECT_LT(last["step"], 60);
  EXPECT_FALSE(fs::exists(out_ / "mlp.pt"));
  // Stopped once more, now between the epochs, by the other signal; with the settings from the checkpoint.
  const Outcome second =
      run_program({"train", "--resume", "--out", out_.string(), "--threads", "1", "--json"},
                  signal_at(SIGTERM, "\"epoch\":2"));
  EXPECT_EQ(second.code, 143) << second.err;
  const Outcome third = run_program(small_run(out_, {"--resume"}));
  ASSERT_EQ(third.code, 0) << third.err;
  expect_same_run(whole_run(), out_);
}

TEST_F(TrainTest, ResumesExactlyAfterAKill) {
  // Checkpoints inside the epochs, so that the kill comes at any moment between or in the writing of one.
  for (const char* at : {"\"step\":7,", "\"step\":28,", "\"step\":49,"}) {
    for (const bool keep : {false, true}) {
      fs::remove_all(out_);
      std::vector<std::string> more = {"--json", "--save-every", "3"};
      if (keep) more.insert(more.end(), {"--keep", "2"});
      const Outcome first = run_program(small_run(out_, more), signal_at(SIGKILL, at));
      ASSERT_EQ(first.code, 128 + SIGKILL);
      for (const auto& entry : fs::directory_iterator(out_))
        if (entry.path().extension() == ".pt") {
          EXPECT_EQ(load(entry.path())["version"].as_int(), 1);
        }
      const Outcome second = run_program(small_run(out_, {"--resume"}));
      ASSERT_EQ(second.code, 0) << second.err;
      expect_same_run(whole_run(), out_);
      EXPECT_EQ(fs::exists(out_ / "checkpoint-00000060.pt"), keep);
      for (const auto& entry : fs::directory_iterator(out_)) EXPECT_NE(entry.path().extension(), ".tmp");
    }
  }
}

TEST_F(TrainTest, ARecordedStepGivesTheSameNumbers) {
  const Outcome first =
      run_program(small_run(out_, {"--json", "--capture"}), signal_at(SIGINT, "\"step\":28,"));
  ASSERT_EQ(first.code, 130) << first.err;
  const Outcome second = run_program({"train", "--resume", "--out", out_.string(), "--threads", "1"});
  ASSERT_EQ(second.code, 0) << second.err;
  expect_same_run(whole_run(), out_);
}

TEST_F(TrainTest, MicroBatchesGiveTheNumbersOfBatches) {
  const Outcome first = run_program(small_run(out_, {"--json", "--capture", "--micro-batches", "3"}),
                                    signal_at(SIGINT, "\"step\":28,"));
  ASSERT_EQ(first.code, 130) << first.err;
  const Outcome second = run_program({"train", "--resume", "--out", out_.string(), "--threads", "1"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(load(out_ / "checkpoint.pt")["info"]["micro_batches"].as_int(), 3);
  expect_near(read_metrics(out_), read_metrics(whole_run()));
}

TEST_F(TrainTest, KeepsTheLastCheckpointsAndTheBest) {
  const Outcome first =
      run_program(small_run(out_, {"--json", "--keep", "2"}), signal_at(SIGINT, "\"epoch\":2"));
  ASSERT_EQ(first.code, 130) << first.err;
  const Outcome second =
      run_program({"train", "--resume", "--out", out_.string(), "--json", "--threads", "1"});
  ASSERT_EQ(second.code, 0) << second.err;
  expect_same_run(whole_run(), out_);
  const Json end = Json::parse(second.out.substr(second.out.rfind('\n', second.out.size() - 2) + 1));
  int64_t step = 0;
  double least = 1e9;
  for (const Json& line : read_metrics(out_))
    if (line["type"] == "epoch" && line["test_loss"] < least) {
      least = line["test_loss"];
      step = line["step"];
    }
  const fs::path best = out_ / ("checkpoint-000000" + std::to_string(step) + ".pt");
  EXPECT_EQ(end["best_checkpoint"], best.string());
  EXPECT_EQ(load(out_ / "best.pt")["step"].as_int(), step);
  EXPECT_EQ(load(out_ / "checkpoint.pt")["step"].as_int(), 60);
  std::set<std::string> kept;
  for (const auto& entry : fs::directory_iterator(out_))
    if (entry.path().filename().string().starts_with("checkpoint-")) kept.insert(entry.path().string());
  EXPECT_TRUE(kept.contains(best.string()));
  EXPECT_TRUE(kept.contains((out_ / "checkpoint-00000060.pt").string()));
  EXPECT_LE(kept.size(), 3u);
  const Outcome evaluated =
      run_program({"eval", "--checkpoint", (out_ / "best.pt").string(), "--limit", "10"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
}

TEST_F(TrainTest, ASecondCtrlCEndsAtOnce) {
  RunOptions options;
  options.watch = [](pid_t process, const std::string& out) {
    if (out.find("\"type\":\"start\"") != std::string::npos) ::kill(process, SIGINT);
  };
  // Every line of output brings one more signal: the second one comes before or after the checkpoint is
  // complete.
  const Outcome outcome =
      run_program(small_run(out_, {"--json", "--epochs", "50", "--log-every", "1"}), options);
  EXPECT_EQ(outcome.code, 130);
}

TEST_F(TrainTest, InTheBackgroundOnlySigtermStops) {
  for (const auto& [signal, code] : {std::pair{SIGINT, 0}, {SIGTERM, 143}}) {
    RunOptions options = signal_at(signal, "\"step\":7,");
    options.in_background = true;
    const Outcome outcome = run_program(small_run(out_, {"--json", "--overwrite"}), options);
    EXPECT_EQ(outcome.code, code) << outcome.err;
  }
}

TEST_F(TrainTest, ChangedSettingsAreRefused) {
  ASSERT_EQ(run_program(small_run(out_, {"--epochs", "1", "--schedule", "none"})).code, 0);
  const std::vector<std::pair<std::vector<std::string>, std::string>> changes = {
      {{"--seed", "6"}, "seed is 6, was 5"},
      {{"--batch-size", "10"}, "batch_size is 10, was 20"},
      {{"--model", "lenet"}, "model is 'lenet', was 'mlp'"},
      {{"--optimizer", "sgd"}, "optimizer is 'sgd', was 'adam'"},
      {{"--limit", "300"}, "limit is 300, was 400"},
      {{"--lr", "0.5"}, "lr is 0.5, was"},
  };
  for (const auto& [change, said] : changes) {
    std::vector<std::string> arguments = {"train", "--resume", "--out", out_.string()};
    arguments.insert(arguments.end(), change.begin(), change.end());
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.code, 1) << said;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  }
  // A longer run is not a change where the schedule does not depend on the length.
  const Outcome longer = run_program({"train", "--resume", "--out", out_.string(), "--epochs", "2"});
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_EQ(load(out_ / "checkpoint.pt")["epoch"].as_int(), 2);
}

TEST_F(TrainTest, AScheduleOverTheRunKeepsItsLength) {
  ASSERT_EQ(run_program(small_run(out_, {"--epochs", "1"})).code, 0);
  const Outcome longer = run_program({"train", "--resume", "--out", out_.string(), "--epochs", "2"});
  EXPECT_EQ(longer.code, 1);
  EXPECT_EQ(longer.err,
            "tern: resuming '" + (out_ / "checkpoint.pt").string() +
                "': its schedule, onecycle, is that of a run of 1 epoch, so that --epochs cannot become 2: "
                "train longer in another folder, or there with --schedule none, step, exponential or "
                "restarts, whose runs can be given more epochs later\n");
}

TEST_F(TrainTest, ARunKeepsItsSchedule) {
  ASSERT_EQ(run_program(small_run(out_, {"--epochs", "1", "--schedule", "cosine"})).code, 0);
  for (const char* other : {"none", "step:3", "cosine:0.1"}) {
    const Outcome resumed = run_program({"train", "--resume", "--out", out_.string(), "--schedule", other});
    EXPECT_EQ(resumed.code, 1);
    EXPECT_EQ(resumed.err,
              "tern: resuming '" + (out_ / "checkpoint.pt").string() +
                  "': the run has the schedule cosine, and --schedule " + other +
                  " is asked for: leave --schedule out to go on with the run's, or start anew in "
                  "another folder\n");
  }
  EXPECT_EQ(run_program({"train", "--resume", "--out", out_.string(), "--schedule", "bogus"}).code, 2);
}

TEST_F(TrainTest, EveryOptimizerAndScheduleLearnsAndGoesOn) {
  const std::vector<std::pair<const char*, const char*>> pairs = {
      {"adadelta", "polynomial:2"}, {"adagrad", "restarts:1:2"},   {"adamax", "polynomial"},
      {"adamw", "step:1:0.5"},      {"asgd", "restarts:2"},        {"nadam", "onecycle"},
      {"radam", "cosine"},          {"rmsprop", "exponential:0.9"}};
  for (const auto& [optimizer, schedule] : pairs) {
    SCOPED_TRACE(optimizer);
    const fs::path out = out_ / optimizer;
    ASSERT_EQ(
        run_program(small_run(out, {"--epochs", "2", "--optimizer", optimizer, "--schedule", schedule})).code,
        0);
    const std::vector<Json> lines = read_metrics(out);
    EXPECT_LT(lines.back()["loss"].get<double>(), 2.2);
    const Value saved = load(out / "checkpoint.pt");
    EXPECT_EQ(saved["settings"]["optimizer"].as_str(), optimizer);
    const Outcome resumed = run_program({"train", "--resume", "--out", out.string()});
    EXPECT_EQ(resumed.code, 0) << resumed.err;
  }
}

TEST_F(TrainTest, SaysThatTheCpuTrainsWhereAllDevicesAreNone) {
  const RunOptions no_gpus{.environment = {{"CUDA_VISIBLE_DEVICES", ""}}};
  const Outcome outcome = run_program(small_run(out_, {"--epochs", "1", "--devices", "all"}), no_gpus);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err,
            "tern: --devices all: no GPU was found, so that the CPU trains; 'tern doctor' says why\n");
  EXPECT_NE(outcome.out.find(" on cpu, 1 thread\n"), std::string::npos) << outcome.out;
}

TEST_F(TrainTest, PrecisionIsRememberedWithTheScaler) {
  ASSERT_EQ(run_program(small_run(out_, {"--epochs", "1", "--schedule", "none", "--precision", "fp16"})).code,
            0);
  const auto scaler = [&] { return load(out_ / "checkpoint.pt")["grad_scaler"]; };
  EXPECT_EQ(load(out_ / "checkpoint.pt")["settings"]["precision"].as_str(), "fp16");
  const int64_t steps = load(out_ / "checkpoint.pt")["step"].as_int();
  EXPECT_EQ(scaler()["_growth_tracker"].as_int(), steps);
  EXPECT_EQ(scaler()["scale"].as_float(), 65536);
  const Outcome other = run_program({"train", "--resume", "--out", out_.string(), "--precision", "bf16"});
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("precision is 'bf16', was 'fp16'"), std::string::npos) << other.err;
  const Outcome longer = run_program({"train", "--resume", "--out", out_.string(), "--epochs", "2"});
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_EQ(scaler()["_growth_tracker"].as_int(), 2 * steps);
  const Outcome refused = run_program(small_run(out_, {"--overwrite", "--precision", "fp8"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--precision: unknown name 'fp8'"), std::string::npos) << refused.err;
}

TEST_F(TrainTest, ADivergedRunSaysSoOnce) {
  const Outcome outcome = run_program(small_run(
      out_, {"--epochs", "2", "--optimizer", "sgd", "--lr", "100000", "--schedule", "none", "--seed", "1"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("tern: the loss is nan at step "), 0u) << outcome.err;
  EXPECT_EQ(outcome.err.rfind("the loss is nan"), std::string("tern: ").size()) << outcome.err;
}

TEST_F(TrainTest, ARunIsNotOverwrittenUnasked) {
  ASSERT_EQ(run_program(small_run(out_, {"--epochs", "1"})).code, 0);
  const Outcome refused = run_program(small_run(out_));
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.err,
            "tern: '" + (out_ / "checkpoint.pt").string() +
                "' is there already: go on with that run by --resume, replace it by --overwrite, "
                "or choose another folder with --out\n");
  EXPECT_EQ(run_program(small_run(out_, {"--epochs", "1", "--overwrite"})).code, 0);
}

TEST_F(TrainTest, NeitherIsWhatElseIsInTheFolder) {
  for (const char* name :
       {"best.pt", "checkpoint-00000063.pt", "metrics.jsonl", "lenet.pt", "lenet.safetensors"})
    for (const char* command : {"train", "demo"}) {
      const std::filesystem::path folder = out_ / command / name, file = folder / name;
      std::filesystem::create_directories(folder);
      std::ofstream(file) << "precious";
      std::vector<std::string> words = {command, "--epochs", "1", "--out", folder.string()};
      if (words[0] == "train") words.insert(words.end(), {"--limit", "64", "--keep", "1"});
      const Outcome refused = run_program(words);
      EXPECT_EQ(refused.code, 1) << name;
      EXPECT_NE(refused.err.find("'" + file.string() + "' is "), std::string::npos) << refused.err;
      std::string kept;
      std::ifstream(file) >> kept;
      EXPECT_EQ(kept, "precious") << command << name;
    }
}

TEST_F(TrainTest, FullDiskLeavesTheLastCheckpoint) {
  ASSERT_EQ(run_program(small_run(out_, {"--epochs", "1", "--schedule", "none"})).code, 0);
  RunOptions options;
  options.file_size_limit = 100'000;
  const Outcome full = run_program({"train", "--resume", "--out", out_.string(), "--epochs", "2"}, options);
  EXPECT_EQ(full.code, 1);
  EXPECT_EQ(full.err.rfind("tern: ", 0), 0u) << full.err;
  EXPECT_NE(full.err.find("checkpoint.pt"), std::string::npos) << full.err;
  EXPECT_EQ(load(out_ / "checkpoint.pt")["epoch"].as_int(), 1);
  EXPECT_EQ(run_program({"train", "--resume", "--out", out_.string(), "--epochs", "2"}).code, 0);
}

TEST_F(TrainTest, PlainLinesWhenPiped) {
  const Outcome outcome = run_program(small_run(out_));
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out.find('\r'), std::string::npos);
  EXPECT_EQ(outcome.out.find('\033'), std::string::npos);
  for (const char* text : {"epoch 1/3", "epoch 3/3", "test acc", "mlp.pt"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text;
}

TEST_F(TrainTest, ProgressBarOnATerminal) {
  RunOptions options;
  options.terminal_columns = 100;
  options.environment = {{"LC_ALL", "C.UTF-8"}, {"TERM", "xterm-256color"}, {"NO_COLOR", "1"}};
  const Outcome outcome = run_program(small_run(out_), options);
  EXPECT_EQ(outcome.code, 0);
  for (const char* text : {"\r", "epoch 1/3", "samples/s", "ETA", "loss", "acc", "▕"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text;
  EXPECT_EQ(outcome.out.find("\033[1m"), std::string::npos);
}

TEST_F(TrainTest, TheFirstSpeedIsTrueToo) {
  RunOptions options;
  options.terminal_columns = 100;
  options.environment = {{"LC_ALL", "C"}, {"TERM", "xterm"}};
  const std::string text = run_program(small_run(out_), options).out;
  size_t speeds = 0;
  for (size_t end = text.find(" samples/s"); end != std::string::npos;
       end = text.find(" samples/s", end + 1)) {
    std::string digits = text.substr(text.find_last_not_of("0123456789,", end - 1) + 1);
    std::erase(digits, ',');
    ++speeds;
    EXPECT_LT(std::stoll(digits), 5'000'000) << "no machine is so fast with batches of 20";
  }
  EXPECT_GE(speeds, 6u) << "of three epochs and three tests";
}

TEST_F(TrainTest, JsonIsOneObjectALine) {
  const Outcome outcome = run_program(small_run(out_, {"--json"}));
  std::istringstream stream(outcome.out);
  std::vector<std::string> types;
  for (std::string line; std::getline(stream, line);) types.push_back(Json::parse(line)["type"]);
  ASSERT_GE(types.size(), 5u);
  EXPECT_EQ(types.front(), "start");
  EXPECT_EQ(types.back(), "end");
}

TEST_F(TrainTest, SeveralProcessesShareARun) {
  const char* mpiexec = std::getenv("TERN_TEST_MPIEXEC");
  if (mpiexec == nullptr) GTEST_SKIP() << "TERN_TEST_MPIEXEC does not say how MPI starts programs";
  const auto with = [&](int processes, RunOptions options = {}) {
    options.launcher = {mpiexec, "-n", std::to_string(processes)};
    return options;
  };
  const Outcome three = run_program(small_run(out_), with(3));
  ASSERT_EQ(three.code, 0) << three.err;
  EXPECT_NE(three.out.find("on cpu, 1 thread, in 3 processes\n"), std::string::npos) << three.out;
  EXPECT_EQ(three.out.find('\033'), std::string::npos) << three.out;
  expect_near(read_metrics(out_), read_metrics(whole_run()));

  const fs::path on_gpus = folder_.path() / "gpus";
  const Outcome two = run_program(small_run(on_gpus, {"--device", "cuda"}),
                                  with(2, {.environment = {{"TERN_SIM_GPUS", "2"}}}));
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_NE(two.out.find("gradients by host memory: rank 0: nothing links sim GPUs\n"), std::string::npos)
      << two.out;
  expect_near(read_metrics(on_gpus), read_metrics(whole_run()));

  const fs::path cut = folder_.path() / "cut";
  const Outcome stopped = run_program(small_run(cut, {"--epochs", "200", "--schedule", "none"}),
                                      with(2, signal_at(SIGTERM, "epoch 2/200")));
  EXPECT_NE(stopped.code, 0);
  const Outcome alone = run_program({"train", "--resume", "--out", cut.string(), "--epochs", "200"},
                                    signal_at(SIGTERM, "epoch "));
  EXPECT_EQ(alone.code, 128 + SIGTERM) << alone.err;
  const Outcome refused = run_program(small_run(folder_.path() / "no", {"--capture"}), with(2));
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.err.find("--capture: a step of several processes cannot be recorded"), std::string::npos)
      << refused.err;
}

TEST(Train, ProfileWritesATraceAndATable) {
  const TemporaryFolder folder;
  const fs::path trace = folder / "trace.json";
  const Outcome run = run_program(small_run(folder / "run", {"--epochs", "1", "--profile", trace.string()}));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("backward of linear"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("FLOP/s"), std::string::npos) << run.out;
  const Json json = Json::parse(std::ifstream(trace));
  size_t kernels = 0, inside_module = 0;
  for (const Json& event : json.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("cat") != "kernel") continue;
    ++kernels;
    inside_module += event.at("args").at("module") != "";
    EXPECT_GE(event.at("dur").get<double>(), 0);
  }
  EXPECT_GT(kernels, 20u * 5);
  EXPECT_GT(inside_module, kernels / 4);
  const Outcome refused = run_program(small_run(folder / "other", {"--profile", "/nowhere/trace.json"}));
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("cannot write the trace '/nowhere/trace.json'"), std::string::npos);
}

TEST(Train, TheCommandToGoOnIsFitForAShell) {
  const TemporaryFolder folder;
  const fs::path out = folder / "it's mine";
  const Outcome outcome =
      run_program(small_run(out, {"--epochs", "100000"}), signal_at(SIGINT, "epoch 1/100000"));
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_NE(outcome.out.find("tern train --resume --out '" + folder.path().string() + "/it'\\''s mine'\n"),
            std::string::npos)
      << outcome.out;
}

TEST(Train, TextDoesNotGoIntoItsFiles) {
  const TemporaryFolder folder;
  const fs::path out = folder / "run";
  const Outcome closed = run_program(small_run(out, {"--json"}), {.streams = {{0, nullptr}, {1, nullptr}}});
  EXPECT_EQ(closed.code, 0) << closed.err;
  EXPECT_EQ(read_metrics(out).size(), 60u / 7 + 3);
  for (const auto& entry : fs::directory_iterator(out)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(bytes.find("\"type\":\"start\""), std::string::npos) << entry.path();
  }
}

TEST(Train, GoesOnWhenItsLinesCannotBeWritten) {
  const TemporaryFolder folder;
  const Outcome outcome = run_program(small_run(folder / "run", {"--json"}), {.streams = {{1, "/dev/full"}}});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "tern: standard output cannot be written\n");
  EXPECT_TRUE(fs::exists(folder / "run" / "mlp.pt"));
}

TEST(Train, NamesThatAreNotUtf8) {
  const TemporaryFolder folder;
  const Outcome outcome = run_program(small_run(folder / "r\xff", {"--json", "--epochs", "1"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(Json::accept(line)) << line;
  for (const char* name : {"cat", "caf\xe9"}) {
    fs::create_directories(folder / "pictures" / name);
    data::write_png((folder / "pictures" / name / "1.png").string(), {2, 2, 1, {0, 1, 2, 3}});
  }
  const Outcome refused = run_program(
      {"train", "--data", "images:" + (folder / "pictures").string(), "--out", (folder / "run").string()});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("/caf\\xe9' is not UTF-8, as checkpoints need it: rename the folder"),
            std::string::npos)
      << refused.err;
  EXPECT_FALSE(fs::exists(folder / "run"));
}

}  // namespace
}  // namespace tern::cli
