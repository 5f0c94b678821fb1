// `tern inspect` on every file of ../shared/checkpoints: what expected.json says of the good ones, and an
// answer in time for the bad ones. TERN_SHARED_DIR names the folder above; without it these are skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <complex>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"

namespace tern::cli {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

fs::path checkpoints() {
  const char* shared = std::getenv("TERN_SHARED_DIR");
  return shared ? fs::path(shared) / "checkpoints" : fs::path();
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Two files name an integer of 615 digits and half of a surrogate pair, which the JSON reader refuses.
std::string readable_json(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t digits = text.find_first_not_of("0123456789", i) - i;
    if (digits > 300) {
      result += '0';
      i += digits;
    } else if (text.compare(i, 3, "\\ud") == 0) {
      result += '?';
      i += 6;
    } else {
      result += text[i++];
    }
  }
  return result;
}

double real_of(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (!json.is_string()) return json.get<double>();
  const std::string text = json;
  return text == "nan" ? NAN : text == "inf" ? INFINITY : -INFINITY;
}
std::complex<double> number_of(const Json& json) {
  if (json.is_array()) return {real_of(json[0]), real_of(json[1])};
  return real_of(json);
}
bool close(double a, double b, double tolerance) {
  if (std::isnan(b)) return std::isnan(a);
  return a == b || std::fabs(a - b) <= tolerance;
}
bool close(const Json& a, const Json& b, double tolerance) {
  const auto x = number_of(a), y = number_of(b);
  return close(x.real(), y.real(), tolerance) && close(x.imag(), y.imag(), tolerance);
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
  if (!fs::exists(checkpoints())) GTEST_SKIP() << "TERN_SHARED_DIR does not name a folder with checkpoints/";
  size_t files = 0, tensors = 0;
  for (const char* folder : {"made", "real"})
    for (const auto& entry : fs::directory_iterator(checkpoints() / folder)) {
      if (!entry.path().string().ends_with(".expected.json")) continue;
      fs::path file = entry.path();
      file.replace_extension().replace_extension();
      SCOPED_TRACE(file.filename().string());
      const Outcome outcome = run_program({"inspect", file.string(), "--json", "--values"});
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      if (outcome.code != 0) continue;
      ++files;
      tensors += compare(Json::parse(outcome.out), Json::parse(readable_json(read_text(entry.path()))));
    }
  EXPECT_GT(files, 150u);
  EXPECT_GT(tensors, 2000u);
  // The same tensors from shards, whichever file or folder is given.
  const Json sharded = Json::parse(read_text(checkpoints() / "made/sharded/expected.json"));
  for (const char* index : {"model.safetensors.index.json", "pytorch_model.bin.index.json"}) {
    const Outcome outcome =
        run_program({"inspect", (checkpoints() / "made/sharded" / index).string(), "--json", "--values"});
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
  if (!fs::exists(checkpoints())) GTEST_SKIP() << "TERN_SHARED_DIR does not name a folder with checkpoints/";
  std::istringstream manifest(read_text(checkpoints() / "bad/MANIFEST.tsv"));
  std::string line;
  std::getline(manifest, line);
  size_t files = 0;
  while (std::getline(manifest, line)) {
    std::vector<std::string> fields;
    std::istringstream columns(line);
    for (std::string field; std::getline(columns, field, '\t');) fields.push_back(field);
    const fs::path path = checkpoints() / "bad" / fields[0];
    if (!fs::is_regular_file(path)) continue;
    ++files;
    SCOPED_TRACE(fields[0] + ": " + fields[2]);
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = run_program({"inspect", path.string()});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
    if (outcome.code == 0 && fields[3] == "EITHER")
      EXPECT_EQ(outcome.err, "");
    else
      expect_one_line(outcome);
  }
  EXPECT_GT(files, 200u);
  EXPECT_FALSE(fs::exists("/tmp/PWNED"));
}

TEST(CheckpointCorpus, FilesOfScannersAreRefused) {
  if (!fs::exists(checkpoints())) GTEST_SKIP() << "TERN_SHARED_DIR does not name a folder with checkpoints/";
  for (const auto& entry : fs::directory_iterator(checkpoints() / "real")) {
    if (!entry.path().filename().string().starts_with("mal_")) continue;
    SCOPED_TRACE(entry.path().filename().string());
    expect_one_line(run_program({"inspect", entry.path().string()}));
  }
}

}  // namespace
}  // namespace tern::cli
