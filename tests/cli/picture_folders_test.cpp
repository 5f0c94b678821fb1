// images:DIR: classes by their names in `tern eval` and `tern train --resume`, splitting of small folders,
// folders that are not there.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tern/data/image.h"
#include "tern/io/serialize.h"
#include "tests/cli/program.h"
#include "tests/support/temporary_folder.h"

namespace tern::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Names = std::vector<std::string>;

enum Colour { Red, Green, Blue };
/// What the pictures of a class show.
using Classes = std::map<std::string, Colour>;

void write_pictures(const fs::path& folder, Colour colour, int count) {
  fs::create_directories(folder);
  for (int i = 0; i < count; ++i) {
    data::Image image{4, 4, 3, data::Bytes(48, static_cast<uint8_t>(10 * i))};
    for (size_t at = colour; at < image.pixels.size(); at += 3) image.pixels[at] = 250;
    data::write_png((folder / (std::to_string(i) + ".png")).string(), image);
  }
}

/// "images:DIR" of a new folder with the parts train/ and test/.
std::string write_parts(const fs::path& folder, const Classes& classes) {
  for (const auto& [name, colour] : classes) {
    write_pictures(folder / "train" / name, colour, 6);
    write_pictures(folder / "test" / name, colour, 2);
  }
  return "images:" + folder.string();
}

const Classes kPets = {{"cat", Red}, {"dög", Green}, {"emp ty", Blue}};

class PicturesTest : public testing::Test {
 protected:
  /// A run that tells the pets apart.
  static const fs::path& trained() {
    static const TemporaryFolder folder;
    static const fs::path out = [] {
      const Outcome outcome =
          run_program({"train", "--model", "mlp", "--data", write_parts(folder / "pets", kPets), "--epochs",
                       "10", "--batch-size", "6", "--schedule", "none", "--out", (folder / "run").string()});
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_NE(outcome.out.rfind("test acc 100.00 %"), std::string::npos) << outcome.out;
      return folder / "run";
    }();
    return out;
  }
  TemporaryFolder folder_;
};

TEST_F(PicturesTest, ClassesAreMatchedByName) {
  struct Case {
    const char* checkpoint;
    Classes classes;
    double accuracy;
    Names names;
    std::vector<int> samples;
  };
  const Names pets = {"cat", "dög", "emp ty"};
  const std::vector<Case> cases = {
      {"checkpoint.pt", kPets, 1, pets, {2, 2, 2}},
      {"checkpoint.pt", {{"dög", Green}, {"emp ty", Blue}}, 1, pets, {0, 2, 2}},
      {"mlp.safetensors", {{"cat", Red}, {"emp ty", Blue}}, 1, pets, {2, 0, 2}},
      {"mlp.safetensors", {{"cat", Green}, {"emp ty", Blue}}, 0.5, pets, {2, 0, 2}},
      // Numbers are no names.
      {"checkpoint.pt", {{"0", Red}, {"1", Green}}, 1, pets, {2, 2, 0}},
      {"mlp.pt", {{"dög", Red}, {"emp ty", Green}}, 1, {"dög", "emp ty", "2"}, {2, 2, 0}},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const Case& each = cases[i];
    const fs::path outputs = folder_ / "outputs.pt";
    const Outcome outcome = run_program({"eval", "--checkpoint", (trained() / each.checkpoint).string(),
                                         "--data", write_parts(folder_ / std::to_string(i), each.classes),
                                         "--json", "--save-outputs", outputs.string()});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json json = Json::parse(outcome.out);
    EXPECT_EQ(json["accuracy"], each.accuracy);
    ASSERT_EQ(json["classes"].size(), each.names.size());
    std::vector<int64_t> targets;
    for (size_t c = 0; c < each.names.size(); ++c) {
      EXPECT_EQ(json["classes"][c]["name"], each.names[c]);
      EXPECT_EQ(json["classes"][c]["samples"], each.samples[c]);
      targets.insert(targets.end(), static_cast<size_t>(each.samples[c]), static_cast<int64_t>(c));
    }
    EXPECT_EQ(load(outputs)["targets"].as_tensor().to_vector<int64_t>(), targets);
  }
}

TEST_F(PicturesTest, AClassThatTheNetworkDoesNotKnowIsNamed) {
  const auto eval = [](const char* checkpoint, const std::string& data) {
    const Outcome outcome =
        run_program({"eval", "--checkpoint", (trained() / checkpoint).string(), "--data", data});
    EXPECT_EQ(outcome.code, 1) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  const std::string renamed = eval("checkpoint.pt", write_parts(folder_ / "a", {{"ant", Red}, {"cat", Red}}));
  EXPECT_NE(renamed.find("/a' has the class 'ant', which '"), std::string::npos) << renamed;
  EXPECT_NE(renamed.find("does not know; it tells 'cat', 'dög', 'emp ty' apart"), std::string::npos)
      << renamed;
  const std::string more =
      eval("mlp.pt", write_parts(folder_ / "b", {{"a", Red}, {"b", Red}, {"c", Red}, {"d", Red}}));
  EXPECT_NE(more.find("mlp.pt' tells 3 classes apart, '"), std::string::npos) << more;
  std::ofstream(folder_ / "test_batch.bin") << std::string(3073, '\0');
  const std::string other_kind = eval("checkpoint.pt", "cifar10:" + folder_.path().string());
  EXPECT_NE(other_kind.find("has the class 'airplane', which '"), std::string::npos) << other_kind;
}

TEST_F(PicturesTest, ARunGoesOnWithItsClassesOnly) {
  const fs::path out = folder_ / "run";
  fs::copy(trained(), out);
  const auto resume = [&](const std::string& data) {
    return run_program({"train", "--resume", "--out", out.string(), "--data", data, "--epochs", "11"});
  };
  const std::vector<std::pair<Classes, std::string>> others = {
      {{{"ant", Red}, {"dög", Green}, {"emp ty", Blue}}, "'cat' is missing, 'ant' is new"},
      {{{"dög", Green}, {"emp ty", Blue}, {"zebra", Red}}, "'cat' is missing, 'zebra' is new"},
      {{{"cat", Red}, {"dög", Green}}, "'emp ty' is missing"},
      {{{"cat", Red}, {"dög", Green}, {"emp ty", Blue}, {"zebra", Red}}, "'zebra' is new"},
      {{{"1", Red}, {"2", Red}, {"3", Red}, {"4", Red}, {"5", Red}, {"6", Red}},
       "'cat', 'dög', 'emp ty' are missing, '1', '2', '3', '4', ... (6 in all) are new"},
  };
  const auto written = fs::last_write_time(out / "checkpoint.pt");
  const size_t entries = static_cast<size_t>(std::distance(fs::directory_iterator(out), {}));
  for (size_t i = 0; i < others.size(); ++i) {
    const std::string name = "other" + std::to_string(i);
    const Outcome refused = resume(write_parts(folder_ / name, others[i].first));
    EXPECT_EQ(refused.code, 1);
    EXPECT_EQ(refused.out, "");
    EXPECT_NE(
        refused.err.find(name + "' has other classes than the run began with: " + others[i].second + "."),
        std::string::npos)
        << refused.err;
    EXPECT_EQ(fs::last_write_time(out / "checkpoint.pt"), written);
    EXPECT_EQ(static_cast<size_t>(std::distance(fs::directory_iterator(out), {})), entries);
  }
  const Outcome moved = resume(write_parts(folder_ / "moved", kPets));
  EXPECT_EQ(moved.code, 0) << moved.err;
  EXPECT_EQ(load(out / "checkpoint.pt")["epoch"].as_int(), 11);
}

TEST_F(PicturesTest, AFolderWithoutPartsIsSplit) {
  for (const auto& [each_class, expected] : std::map<int, std::array<int, 2>>{
           {1, {1, 1}}, {4, {7, 1}}, {5, {9, 1}}, {9, {17, 1}}, {10, {18, 2}}}) {
    SCOPED_TRACE(each_class);
    const fs::path folder = folder_ / std::to_string(each_class);
    write_pictures(folder / "cat", Red, each_class);
    write_pictures(folder / "dög", Green, each_class);
    const Outcome outcome = run_program({"train", "--model", "mlp", "--data", "images:" + folder.string(),
                                         "--epochs", "1", "--json", "--out", (folder / ".run").string()});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json start = Json::parse(outcome.out.substr(0, outcome.out.find('\n')));
    EXPECT_EQ(start["train_samples"], expected[0]);
    EXPECT_EQ(start["test_samples"], expected[1]);
    EXPECT_NE(outcome.err.find("a random tenth of the pictures (" + std::to_string(expected[1]) + " of " +
                               std::to_string(2 * each_class) + ") is for testing"),
              std::string::npos)
        << outcome.err;
  }
}

TEST_F(PicturesTest, FoldersThatCannotBeUsed) {
  std::ofstream(folder_ / "file") << "text";
  fs::create_directories(folder_ / "empty");
  write_pictures(folder_ / "one" / "cat", Red, 1);
  for (const auto& [name, said] : std::map<std::string, std::string>{
           {"absent", "/absent': No such file or directory"},
           {"file", "/file': Not a directory"},
           {"empty", "/empty' has no folders in it"},
           {"one", "/one' has one picture only: one for training and one for testing are needed"}}) {
    const Outcome outcome = run_program({"train", "--data", "images:" + (folder_ / name).string()},
                                        {.folder = folder_.path().string()});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  }
}

}  // namespace
}  // namespace tern::cli
