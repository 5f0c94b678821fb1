// The fuzz targets over the kept corpus: what fuzzers have found stays mended, in every build.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "targets.h"

namespace tern::fuzz {
namespace {

namespace fs = std::filesystem;

TEST(FuzzCorpus, EveryFileGetsAnAnswerSoon) {
  for (const Target& target : targets()) {
    size_t files = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(TERN_FUZZ_CORPUS) / target.name)) {
      SCOPED_TRACE(entry.path().string());
      std::ifstream file(entry.path(), std::ios::binary);
      std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
      auto begin = std::chrono::steady_clock::now();
      EXPECT_NO_THROW(target.run(std::as_bytes(std::span(bytes))));
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
      ++files;
    }
    EXPECT_GE(files, 10u) << "corpus of " << target.name;
  }
}

}  // namespace
}  // namespace tern::fuzz
