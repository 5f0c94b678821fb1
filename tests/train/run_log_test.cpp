// metrics.jsonl: the form of its lines, going on at a place, one writer at a time; and the file under it.
#include "tern/train/run_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tern/base/error.h"
#include "tests/train/train_testing.h"

namespace tern::train {
namespace {

StepReport step_report(int64_t step) {
  StepReport report;
  report.epoch = 1;
  report.step = step;
  report.loss = 0.1;
  report.accuracy = 0.9;
  report.lr = 0.003;
  report.samples_per_second = 1234.6;
  return report;
}

TEST(RunLog, LinesHaveAFixedForm) {
  EXPECT_EQ(
      to_json(step_report(50)),
      R"({"type":"step","epoch":1,"step":50,"loss":0.1,"accuracy":0.9,"lr":0.003,"samples_per_second":1235.0})");
  EpochReport report;
  report.epoch = 2;
  report.step = 100;
  report.loss = 0.25;
  report.test_loss = 0.5;
  report.lr = 0.01;
  report.seconds = 1.23456;
  EXPECT_EQ(to_json(report),
            R"({"type":"epoch","epoch":2,"step":100,"loss":0.25,"test_loss":0.5,"lr":0.01,"seconds":1.235})");
  report.test_loss = std::nan("");
  EXPECT_EQ(to_json(report),
            R"({"type":"epoch","epoch":2,"step":100,"loss":0.25,"lr":0.01,"seconds":1.235})");
  report.test_accuracy = 0.1;
  EXPECT_EQ(
      to_json(report),
      R"({"type":"epoch","epoch":2,"step":100,"loss":0.25,"test_loss":null,"test_accuracy":0.1,"lr":0.01,"seconds":1.235})");
}

TEST(RunLog, NumbersAreReadBackToTheBit) {
  StepReport report = step_report(1);
  report.loss = 0.1 + 0.2;
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["loss"].get<double>(), 0.1 + 0.2);
  report.loss = std::nan("");
  EXPECT_TRUE(nlohmann::json::parse(to_json(report))["loss"].is_null());
}

TEST(RunLog, ResumingCutsWhatIsDoneAgain) {
  const TemporaryFolder folder;
  const auto metrics = folder.path() / "metrics.jsonl";
  uint64_t size = 0;
  {
    RunLog log(folder.path());
    log.start();
    log.write(step_report(50));
    size = log.sync();
    log.write(step_report(100));
  }
  EXPECT_EQ(lines_of(read_text(metrics)).size(), 2u);
  {
    RunLog log(folder.path());
    EXPECT_TRUE(log.resume(size, 50));
    log.write(step_report(150));
  }
  const auto lines = lines_of(read_text(metrics));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], to_json(step_report(50)));
  EXPECT_EQ(lines[1], to_json(step_report(150)));
  RunLog log(folder.path());
  EXPECT_FALSE(log.resume(size * 10, 50));
  EXPECT_EQ(lines_of(read_text(metrics)), lines);
}

TEST(RunLog, StartingAnewForgetsTheRunBefore) {
  const TemporaryFolder folder;
  write_text(folder.path() / "metrics.jsonl", "old\n");
  write_text(folder.path() / "events.out.tfevents.1.host.1.0", "old");
  write_text(folder.path() / "notes.txt", "mine");
  RunLog log(folder.path());
  log.start();
  EXPECT_EQ(read_text(folder.path() / "metrics.jsonl"), "");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "events.out.tfevents.1.host.1.0"));
  EXPECT_EQ(read_text(folder.path() / "notes.txt"), "mine");
}

TEST(RunLog, OneWriterAtATime) {
  const TemporaryFolder folder;
  RunLog log(folder.path());
  EXPECT_THROW(RunLog(folder.path()), CheckpointError);
}

TEST(AppendFile, AppendsAndCuts) {
  const TemporaryFolder folder;
  AppendFile file(folder.path() / "log");
  file.write("one\n");
  file.write("two\n");
  EXPECT_EQ(file.size(), 8u);
  file.truncate(4);
  file.write("three\n");
  file.sync();
  EXPECT_EQ(read_text(file.path()), "one\nthree\n");
  EXPECT_THROW(AppendFile(folder.path() / "missing" / "log"), IoError);
}

TEST(AppendFile, FullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  AppendFile file("/dev/full");
  try {
    file.write("text");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("/dev/full"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tern::train
