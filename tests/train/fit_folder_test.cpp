// fit: what it leaves in its folder and finds there, modes of modules, random numbers of tests. Learning and
// resuming are in trainer_test.cpp.
#include <gmock/gmock.h>

#include <set>

#include "tern/tern.h"
#include "tern/train/trainer.h"
#include "tests/support/expect_error.h"
#include "tests/train/train_testing.h"

namespace tern::train {
namespace {

namespace fs = std::filesystem;

struct NoisyNet : nn::Module {
  nn::Linear first{2, 4};
  nn::BatchNorm1d norm{4};
  nn::Linear last{4, 2};
  nn::Buffer calls{zeros({1}, {.device = kCPU})};
  double noise = 0;
  TERN_MODULE(first, norm, last, calls)
  Tensor forward(const Tensor& x) {
    Tensor y = last(relu(norm(first(x))));
    return noise > 0 ? y + randn({2}) * noise : y;
  }
};

data::TensorDataset points_of_two_classes() {
  Generator generator(5);
  const Tensor x = randn({24, 2}, {}, generator);
  return data::TensorDataset(x, x.argmax(1));
}

/// As a new process would make them: two steps and three batches of a test in an epoch.
struct NoisyParts {
  explicit NoisyParts(const optim::SGDOptions& options = {.lr = 0.1})
      : optimizer(net.parameters(), options),
        train(points_of_two_classes(), {.batch_size = 12, .shuffle = true}),
        test(points_of_two_classes(), {.batch_size = 8}) {}
  FitResult run(const FitOptions& options) { return fit(net, optimizer, {train, &test}, options); }

  const uint64_t seed = (manual_seed(4), 4);
  NoisyNet net;
  optim::SGD optimizer;
  data::DataLoader train, test;
};

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".pt") names.insert(entry.path().filename().string());
  return names;
}

TEST(FitFolder, ARunKeepsItsSchedule) {
  const TemporaryFolder folder;
  NoisyParts first;
  optim::StepLR step(first.optimizer, {.step_size = 1});
  first.run({.epochs = 1, .scheduler = &step, .out_dir = folder.path()});
  const auto resume = [&](const auto& make) {
    NoisyParts parts;
    const auto schedule = make(parts.optimizer);
    return message_of<CheckpointError>([&] {
      parts.run({.epochs = 2, .scheduler = schedule.get(), .out_dir = folder.path(), .resume = true});
    });
  };
  EXPECT_THAT(
      resume([](auto& o) { return std::make_unique<optim::ExponentialLR>(o, 0.5); }),
      ::testing::HasSubstr("the run was started with the schedule StepLR, and ExponentialLR is asked for"));
  EXPECT_THAT(resume([](auto&) { return std::unique_ptr<optim::LRScheduler>(); }),
              ::testing::HasSubstr("the run was started with a schedule, and none is asked for"));
  NoisyParts second;
  optim::StepLR same(second.optimizer, {.step_size = 1});
  EXPECT_EQ(second.run({.epochs = 2, .scheduler = &same, .out_dir = folder.path(), .resume = true}).epoch, 2);
  EXPECT_EQ(load(folder.path() / "checkpoint.pt")["scheduler_name"].as_str(), "StepLR");
}

TEST(FitFolder, ATestThatDrawsNumbersIsResumedToTheBit) {
  const TemporaryFolder folder;
  NoisyParts whole;
  whole.net.noise = 1;
  const FitResult expected = whole.run({.epochs = 2});
  for (int question = 1; question <= 8; ++question) {
    SCOPED_TRACE(question);
    const auto out = folder / std::to_string(question);
    NoisyParts first;
    first.net.noise = 1;
    const auto stop = [n = question]() mutable { return --n == 0; };
    EXPECT_TRUE(first.run({.epochs = 2, .out_dir = out, .stop = stop}).stopped);
    NoisyParts second;
    second.net.noise = 1;
    manual_seed(99);
    const FitResult result = second.run({.epochs = 2, .out_dir = out, .resume = true});
    for (size_t epoch = 0; epoch < 2; ++epoch)
      EXPECT_EQ(result.history.at(epoch).test_loss, expected.history.at(epoch).test_loss);
  }
}

TEST(FitFolder, ACrashInATestLosesNoTraining) {
  const TemporaryFolder folder;
  EXPECT_THROW(
      NoisyParts().run({.epochs = 2,
                        .out_dir = folder.path(),
                        .on_test_batch = [](const Position&) { throw std::runtime_error("crash"); }}),
      std::runtime_error);
  NoisyParts whole;
  const FitResult expected = whole.run({.epochs = 2});
  const FitResult result = NoisyParts().run({.epochs = 2, .out_dir = folder.path(), .resume = true});
  EXPECT_EQ(result.resumed_step, 2);
  for (size_t epoch = 0; epoch < 2; ++epoch)
    EXPECT_EQ(result.history.at(epoch).test_loss, expected.history.at(epoch).test_loss);
}

TEST(FitFolder, TensorsWrittenThroughPointersAreSaved) {
  const TemporaryFolder folder;
  NoisyParts parts;
  parts.run({.epochs = 2, .out_dir = folder.path(), .on_batch = [&](const Position&) {
               parts.net.calls.data<float>()[0] += 1;
             }});
  EXPECT_EQ(Checkpoint::load(folder / kCheckpointName).model.at("calls").item<float>(), 4);
}

TEST(FitFolder, OverwritingRemovesTheEarlierRun) {
  const TemporaryFolder folder;
  const auto start = [&](FitOptions options) {
    options.out_dir = folder.path();
    return NoisyParts().run(options);
  };
  start({.epochs = 2, .keep = 5});
  const std::set<std::string> earlier{"best.pt", "checkpoint.pt", "checkpoint-00000000.pt",
                                      "checkpoint-00000002.pt", "checkpoint-00000004.pt"};
  const std::string metrics = read_text(folder / "metrics.jsonl"),
                    saved = read_text(folder / kCheckpointName);
  write_text(folder / "net.txt", "weights");
  const std::vector<fs::path> files = {folder / "net.txt", folder / "absent.txt"};
  EXPECT_THROW(start({.overwrite = true, .earlier_files = files, .log_every = 0}), ValueError);
  ValueDict unwritable;
  unwritable.set("tensor", Tensor());
  EXPECT_THROW(start({.overwrite = true, .earlier_files = files, .settings = unwritable}), ValueError);
  EXPECT_EQ(names_in(folder.path()), earlier);
  EXPECT_TRUE(fs::exists(files[0]));
  EXPECT_EQ(read_text(folder / "metrics.jsonl"), metrics);
  EXPECT_EQ(read_text(folder / kCheckpointName), saved);

  const auto stop = [] { return true; };
  start({.overwrite = true, .earlier_files = files, .keep = 5, .stop = stop});
  EXPECT_FALSE(fs::exists(files[0]));
  EXPECT_EQ(names_in(folder.path()),
            (std::set<std::string>{"checkpoint.pt", "checkpoint-00000000.pt", "checkpoint-00000001.pt"}));
  EXPECT_EQ(read_text(folder / "metrics.jsonl"), "");
  start({.overwrite = true, .stop = stop});
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"checkpoint.pt"});
  EXPECT_EQ(start({.resume = true}).resumed_step, 1);
}

TEST(FitFolder, TheBestStaysTheBestWithoutItsOtherName) {
  const optim::SGDOptions worse{.lr = 0.5, .maximize = true};  // with every epoch
  const auto step2 = [](const TemporaryFolder& folder) { return folder / "checkpoint-00000002.pt"; };
  for (const bool of_this_run : {true, false}) {
    SCOPED_TRACE(of_this_run);
    const TemporaryFolder folder;
    NoisyParts(worse).run({.epochs = 2, .out_dir = folder.path(), .keep = 1});
    ASSERT_EQ(Checkpoint::load(folder / kBestName).step, 2);
    fs::remove(step2(folder));
    if (!of_this_run) {
      Checkpoint other = Checkpoint::load(folder / kBestName);
      other.history.back().test_loss /= 2;
      other.save(folder / kBestName);
    }
    const FitResult result =
        NoisyParts(worse).run({.epochs = 3, .out_dir = folder.path(), .resume = true, .keep = 1});
    EXPECT_GT(result.history[2].test_loss, result.history[1].test_loss);
    EXPECT_EQ(Checkpoint::load(folder / kBestName).step, of_this_run ? 2 : 4);
    EXPECT_EQ(result.best, of_this_run ? step2(folder) : folder / "checkpoint-00000004.pt");
  }
}

TEST(FitFolder, ModesOfModulesStay) {
  for (const bool capture : {false, true}) {
    SCOPED_TRACE(capture);
    NoisyParts parts;
    parts.net.eval();
    Tensor mean;
    parts.run({.epochs = 3, .capture = capture, .on_epoch = [&](const EpochReport& report) {
                 if (report.epoch == 1) {
                   EXPECT_TRUE(parts.net.norm.is_training());
                   parts.net.norm.eval();
                   mean = parts.net.norm.running_mean.clone();
                 } else if (report.epoch == 2) {
                   EXPECT_TRUE(parts.net.first.is_training());
                 }
               }});
    EXPECT_TRUE(equal(parts.net.norm.running_mean, mean));
    evaluate(parts.net, parts.test);
    for (const auto& [name, module] : parts.net.named_modules())
      EXPECT_EQ(module->is_training(), name != "norm") << name;
  }
}

TEST(FitFolder, ReduceLROnPlateauMovesOnAfterEpochs) {
  for (const ScheduleUnit unit : {ScheduleUnit::Epoch, ScheduleUnit::Step}) {
    NoisyParts parts({.lr = 0.5, .maximize = true});
    optim::ReduceLROnPlateau schedule(parts.optimizer, {.factor = 0.5, .patience = 0});
    const FitResult result = parts.run({.epochs = 3, .scheduler = &schedule, .schedule_unit = unit});
    EXPECT_EQ(result.history.back().lr, 0.25);
    EXPECT_EQ(parts.optimizer.lr(), 0.125);
  }
}

}  // namespace
}  // namespace tern::train
