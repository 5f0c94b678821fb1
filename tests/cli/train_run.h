// A small run of `tern train`, and the numbers that it wrote.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tern::cli {

/// A run that takes a moment: dropout-free, shuffled, with a schedule over all its steps.
inline std::vector<std::string> small_run(const std::filesystem::path& out,
                                          std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {
      "train",       "--model", "mlp",    "--limit", "400",       "--epochs", "3",     "--batch-size", "20",
      "--log-every", "7",       "--seed", "5",       "--threads", "1",        "--out", out.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

inline std::vector<nlohmann::json> read_metrics(const std::filesystem::path& folder) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(folder / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    lines.push_back(nlohmann::json::parse(line));
    lines.back().erase("samples_per_second");
    lines.back().erase("seconds");
  }
  return lines;
}

/// Sums were taken in another order.
inline void expect_near(const std::vector<nlohmann::json>& metrics,
                        const std::vector<nlohmann::json>& wanted) {
  ASSERT_EQ(metrics.size(), wanted.size());
  for (size_t i = 0; i < metrics.size(); ++i) {
    EXPECT_EQ(metrics[i]["step"], wanted[i]["step"]);
    EXPECT_NEAR(metrics[i]["loss"].get<double>(), wanted[i]["loss"].get<double>(), 1e-3) << metrics[i];
  }
}

}  // namespace tern::cli
