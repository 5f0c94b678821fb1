// What the tests of the commands on checkpoint files share: running them in a folder, and their answers.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tern/ops/creation.h"
#include "tests/cli/program.h"
#include "tests/support/temporary_folder.h"

namespace tern::cli {

inline Tensor one(double number) { return full({1}, number); }

inline Outcome run_in(const TemporaryFolder& folder, const std::vector<std::string>& arguments) {
  return run_program(arguments, {.folder = folder.path().string()});
}

inline nlohmann::json json_of(const Outcome& outcome) { return nlohmann::json::parse(outcome.out); }

inline void expect_error(const Outcome& outcome, const std::string& text, int code = 1) {
  EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err, ::testing::HasSubstr(text));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

}  // namespace tern::cli
