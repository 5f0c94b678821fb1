// Reports as JSON and as events.
#include "tern/train/run_log.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/base/check.h"

namespace tern::train {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kMetricsFile = "metrics.jsonl";
constexpr std::string_view kEventPrefix = "events.out.tfevents.";

void put(Json& json, const char* name, double value) {
  if (!std::isnan(value)) json[name] = value;
}

void remove_event_files(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().starts_with(kEventPrefix)) found.push_back(it->path());
  TERN_CHECK(!error, IoError, "list '{}': {}", folder.string(), error.message());
  for (const auto& path : found) {
    std::filesystem::remove(path, error);
    TERN_CHECK(!error, IoError, "remove '{}': {}", path.string(), error.message());
  }
}

using Scalars = std::vector<std::pair<std::string, double>>;

void put(Scalars& scalars, const char* name, double value) {
  if (!std::isnan(value)) scalars.emplace_back(name, value);
}

}  // namespace

std::string to_json(const StepReport& report) {
  Json json{{"type", "step"}, {"epoch", report.epoch}, {"step", report.step}, {"loss", report.loss}};
  put(json, "accuracy", report.accuracy);
  json["lr"] = report.lr;
  json["samples_per_second"] = std::round(report.samples_per_second);
  return json.dump();
}

std::string to_json(const EpochReport& report) {
  Json json{{"type", "epoch"}, {"epoch", report.epoch}, {"step", report.step}, {"loss", report.loss}};
  put(json, "accuracy", report.accuracy);
  // An accuracy tells that there was a test, whose loss may be NaN.
  if (!std::isnan(report.test_loss) || !std::isnan(report.test_accuracy))
    json["test_loss"] = report.test_loss;
  put(json, "test_accuracy", report.test_accuracy);
  json["lr"] = report.lr;
  json["seconds"] = std::round(report.seconds * 1000) / 1000;
  return json.dump();
}

bool RunLog::is_log(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  std::error_code unknown;
  return (name == kMetricsFile || name.starts_with(kEventPrefix)) &&
         !std::filesystem::is_empty(path, unknown);
}

RunLog::RunLog(const std::filesystem::path& folder) : folder_(folder), metrics_(folder / kMetricsFile) {
  TERN_CHECK(metrics_.try_lock(), CheckpointError, "'{}' is in use: another process trains there",
             folder.string());
}

void RunLog::start() {
  metrics_.truncate(0);
  remove_event_files(folder_);
  events_ = EventFile(folder_);
}

bool RunLog::resume(uint64_t metrics_size, int64_t step) {
  const bool whole = metrics_.size() >= metrics_size;
  if (whole) metrics_.truncate(metrics_size);
  events_ = EventFile(folder_, step + 1);
  return whole;
}

void RunLog::write(const StepReport& report) {
  if (!is_open()) return;
  metrics_.write(to_json(report) + "\n");
  Scalars scalars{{"train/loss", report.loss}};
  put(scalars, "train/accuracy", report.accuracy);
  scalars.emplace_back("train/lr", report.lr);
  scalars.emplace_back("train/samples_per_second", report.samples_per_second);
  events_.add_scalars(scalars, report.step);
}

void RunLog::write(const EpochReport& report) {
  if (!is_open()) return;
  metrics_.write(to_json(report) + "\n");
  Scalars scalars{{"epoch/loss", report.loss}};
  put(scalars, "epoch/accuracy", report.accuracy);
  put(scalars, "epoch/test_loss", report.test_loss);
  put(scalars, "epoch/test_accuracy", report.test_accuracy);
  events_.add_scalars(scalars, report.step);
}

uint64_t RunLog::sync() {
  if (!is_open()) return 0;
  metrics_.sync();
  events_.sync();
  return metrics_.size();
}

}  // namespace tern::train
