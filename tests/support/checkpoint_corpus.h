// The checkpoints in ../shared/checkpoints and what is said of them there, for the tests that read them with
// the library and with the program.
#pragma once

#include <chrono>
#include <complex>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tern {

/// The folder; empty when TERN_SHARED_DIR, which names the one above, is not set.
std::filesystem::path shared_checkpoints();

#define TERN_NEED_CHECKPOINTS()                       \
  if (!std::filesystem::exists(shared_checkpoints())) \
  GTEST_SKIP() << "TERN_SHARED_DIR does not name a folder with checkpoints/"

/// One of the .json files.
nlohmann::json read_expected(const std::filesystem::path& path);

/// A number there: of JSON, a bool, "nan", "inf", "-inf", or a pair of these for a complex one.
std::complex<double> number_of(const nlohmann::json& json);

/// Equal within `tolerance`, part by part; NaN equals NaN.
bool close(std::complex<double> a, std::complex<double> b, double tolerance);

/// A hostile or broken file, as the table of these describes it.
struct BadCheckpoint {
  std::filesystem::path path;
  std::string what;     ///< name of the file and what is wrong with it
  std::string verdict;  ///< REFUSE, or EITHER where a safe reading is right too
  std::string remark;
};
std::vector<BadCheckpoint> bad_checkpoints();

/// How long the answer to a bad file may take; sanitizers slow programs down.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::chrono::seconds kMaxAnswerTime{20};
#else
constexpr std::chrono::seconds kMaxAnswerTime{2};
#endif

}  // namespace tern
