// `tern inspect` on every file of ../shared/checkpoints: what expected.json says of the good ones, and an
// answer in time for the bad ones. TERN_SHARED_DIR names the folder above; without it these are skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "tests/cli/program.h"
#include "tests/support/checkpoint_corpus.h"

namespace tern::cli {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

bool close(const Json& a, const Json& b, double tolerance) {
  return tern::close(number_of(a), number_of(b), tolerance);
}

/// Checks the tensors that `tern inspect --json --values` prints; returns how many.
size_t compare(const Json& printed, const Json& expected) {
  std::map<std::string, const Json*> found;
  for (const Json& tensor : printed["tensors"]) found.emplace(tensor["name"], &tensor);
  for (const Json& tensor : expected["tensors"]) {
    const std::string path = tensor["path"];
    SCOPED_TRACE(path);
    if (!found.contains(path)) {
      ADD_FAILURE() << "there is no such tensor";
      continue;
    }
    const Json& entry = *found[path];
    if (tensor.contains("dtype")) {
      EXPECT_EQ(entry["dtype"], tensor["dtype"]);
    }
    EXPECT_EQ(entry["shape"], tensor["shape"]);
    if (tensor.contains("location")) {
      EXPECT_EQ(entry["device"], tensor["location"]);
    }
    if (!tensor.contains("sum")) continue;
    if (entry["sum"].is_null()) {
      ADD_FAILURE() << "no sum";
      continue;
    }
    const double tolerance = tensor["abs_sum"].is_string() ? 0 : 1e-9 * tensor["abs_sum"].get<double>();
    EXPECT_TRUE(close(entry["sum"], tensor["sum"], tolerance)) << entry["sum"] << " " << tensor["sum"];
    EXPECT_EQ(entry["first"].size(), tensor["first4"].size());
    for (size_t i = 0; i < std::min(entry["first"].size(), tensor["first4"].size()); ++i)
      EXPECT_TRUE(close(entry["first"][i], tensor["first4"][i], 0)) << entry["first"] << tensor["first4"];
  }
  return expected["tensors"].size();
}

TEST(CheckpointCorpus, InspectGivesWhatIsExpected) {
  TERN_NEED_CHECKPOINTS();
  size_t files = 0, tensors = 0;
  for (const char* folder : {"made", "real"})
    for (const auto& entry : fs::directory_iterator(shared_checkpoints() / folder)) {
      if (!entry.path().string().ends_with(".expected.json")) continue;
      fs::path file = entry.path();
      file.replace_extension().replace_extension();
      SCOPED_TRACE(file.filename().string());
      const Outcome outcome = run_program({"inspect", file.string(), "--json", "--values"});
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      if (outcome.code != 0) continue;
      ++files;
      tensors += compare(Json::parse(outcome.out), read_expected(entry.path()));
    }
  EXPECT_GT(files, 150u);
  EXPECT_GT(tensors, 2000u);
  // The same tensors from shards, whichever file or folder is given.
  const Json sharded = read_expected(shared_checkpoints() / "made/sharded/expected.json");
  for (const char* index : {"model.safetensors.index.json", "pytorch_model.bin.index.json"}) {
    const Outcome outcome = run_program(
        {"inspect", (shared_checkpoints() / "made/sharded" / index).string(), "--json", "--values"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const Json& tensor : sharded["tensors"]) {
      const Json printed = Json::parse(outcome.out);
      bool found = false;
      for (const Json& each : printed["tensors"])
        found = found || (each["name"] == tensor["path"] && each["sum"] == tensor["sum"]);
      EXPECT_TRUE(found) << tensor["path"];
    }
  }
}

/// A code other than 0 comes with one line on standard error that names the command.
void expect_one_line(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_THAT(outcome.err, ::testing::StartsWith("tern inspect: "));
}

TEST(CheckpointCorpus, BadFilesGetOneLineInTime) {
  TERN_NEED_CHECKPOINTS();
  const std::vector<BadCheckpoint> files = bad_checkpoints();
  EXPECT_GT(files.size(), 200u);
  for (const auto& [path, what, verdict, remark] : files) {
    SCOPED_TRACE(what);
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = run_program({"inspect", path.string()});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kMaxAnswerTime);
    if (outcome.code == 0 && verdict == "EITHER")
      EXPECT_EQ(outcome.err, "");
    else
      expect_one_line(outcome);
  }
  EXPECT_FALSE(fs::exists("/tmp/PWNED"));
}

TEST(CheckpointCorpus, FilesOfScannersAreRefused) {
  TERN_NEED_CHECKPOINTS();
  for (const auto& entry : fs::directory_iterator(shared_checkpoints() / "real")) {
    if (!entry.path().filename().string().starts_with("mal_")) continue;
    SCOPED_TRACE(entry.path().filename().string());
    expect_one_line(run_program({"inspect", entry.path().string()}));
  }
}

}  // namespace
}  // namespace tern::cli
