// The folder of `tern train`: which one is taken without --out, and what becomes of the files of an earlier
// run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/cli/program.h"
#include "tests/support/temporary_folder.h"

namespace tern::cli {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  Outcome train(std::vector<std::string> more, RunOptions options = {}) const {
    std::vector<std::string> arguments = {"train", "--limit", "64", "--epochs", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    options.folder = folder_.path().string();
    return run_program(arguments, options);
  }
  /// Names in a folder, without those of event files.
  std::set<std::string> names_in(const std::string& name) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / name))
      if (entry.path().filename().string().rfind("events.", 0) != 0) names.insert(entry.path().filename());
    return names;
  }
  TemporaryFolder folder_;
};

TEST_F(RunFolderTest, RunsThatStartAtOnceTakeDifferentFolders) {
  std::ofstream(folder_ / "run-3") << "a file";
  fs::create_symlink("nowhere", folder_ / "run-4");
  const std::string script = "cd '" + folder_.path().string() + "' || exit 1\n" +
                             "for i in 1 2 3 4; do\n"
                             "  { \"$TERN_PROGRAM\" train --model mlp --limit 64 --epochs 1 >out-$i 2>&1 || "
                             "touch failed-$i; } &\n"
                             "done\n"
                             "wait\n";
  ASSERT_EQ(std::system(script.c_str()), 0);
  for (const char* name : {"run", "run-2", "run-5", "run-6"})
    EXPECT_TRUE(fs::exists(folder_ / name / "mlp.pt")) << name;
  EXPECT_EQ(names_in("."), (std::set<std::string>{"out-1", "out-2", "out-3", "out-4", "run", "run-2", "run-3",
                                                  "run-4", "run-5", "run-6"}));
}

TEST_F(RunFolderTest, TheTraceMayLieInTheNewFolder) {
  const Outcome outcome = train({"--model", "mlp", "--out", "a/b", "--profile", "a/b/trace.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GT(fs::file_size(folder_ / "a/b/trace.json"), 1000u);
  EXPECT_TRUE(fs::exists(folder_ / "a/b/mlp.pt"));
}

TEST_F(RunFolderTest, WhatDoesNotBeginLeavesNoFolder) {
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"--profile", "/nowhere/trace.json"}, {"--data", "mnist:nowhere"}, {"--optimizer", "none"}}) {
    EXPECT_NE(train(options).code, 0);
    EXPECT_FALSE(fs::exists(folder_ / "run")) << options[1];
  }
}

TEST_F(RunFolderTest, OverwritingRemovesTheWeightsOfTheEarlierRun) {
  const std::set<std::string> mlp = {"checkpoint.pt", "metrics.jsonl", "mlp.pt", "mlp.safetensors"};
  const std::set<std::string> lenet = {"checkpoint.pt", "metrics.jsonl", "lenet.pt", "lenet.safetensors"};
  const auto with = [](std::set<std::string> names, const std::string& name) {
    names.insert(name);
    return names;
  };
  RunOptions stopped;
  stopped.watch = [sent = false](pid_t process, const std::string& out) mutable {
    if (sent || out.find("\"type\":\"epoch\"") == std::string::npos) return;
    sent = true;
    ::kill(process, SIGTERM);
  };
  ASSERT_EQ(train({"--model", "mlp", "--out", "run"}).code, 0);
  EXPECT_EQ(names_in("run"), mlp);
  std::ofstream(folder_ / "run/notes.txt") << "mine";
  EXPECT_EQ(train({"--model", "lenet", "--out", "run", "--overwrite"}).code, 0);
  EXPECT_EQ(names_in("run"), with(lenet, "notes.txt"));
  // Before the new run has weights of its own, too.
  EXPECT_EQ(
      train({"--model", "lenet", "--out", "run", "--overwrite", "--epochs", "100000", "--json"}, stopped)
          .code,
      143);
  EXPECT_EQ(names_in("run"), (std::set<std::string>{"checkpoint.pt", "metrics.jsonl", "notes.txt"}));
  // The stopped run has not written it.
  std::ofstream(folder_ / "run/lenet.pt") << "mine";
  EXPECT_EQ(train({"--model", "mlp", "--out", "run", "--overwrite"}).code, 0);
  EXPECT_EQ(names_in("run"), with(with(mlp, "notes.txt"), "lenet.pt"));
  // A checkpoint that cannot be read says nothing about other files, and is replaced.
  std::ofstream(folder_ / "run/checkpoint.pt") << "broken";
  EXPECT_EQ(train({"--model", "mlp", "--out", "run", "--overwrite"}).code, 0);
  EXPECT_EQ(names_in("run"), with(with(mlp, "notes.txt"), "lenet.pt"));
}

}  // namespace
}  // namespace tern::cli
