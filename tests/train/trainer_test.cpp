// fit and evaluate on a small problem: learning, reports, exact resumption at any place, refusals.
#include "tern/train/trainer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tern/base/error.h"
#include "tern/base/parallel.h"
#include "tern/data/dataset.h"
#include "tern/device/cuda.h"
#include "tern/device/simulation.h"
#include "tern/nn/activation.h"
#include "tern/nn/containers.h"
#include "tern/nn/dropout.h"
#include "tern/nn/functional.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"
#include "tern/ops/activation.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/optim/adam.h"
#include "tern/optim/one_cycle_lr.h"
#include "tern/optim/sgd.h"
#include "tests/support/expect_error.h"
#include "tests/train/small_problem.h"
#include "tests/train/train_testing.h"

namespace tern::train {
namespace {

constexpr int64_t kSamples = 210, kBatch = 20, kSteps = 11;  // an epoch; its last batch is half full
constexpr int64_t kEpochs = 3;

/// Everything that a run is made of, as a new process would make it.
template <class Net>
struct PartsOf {
  explicit PartsOf(uint64_t seed = 7, int64_t batch_size = kBatch) : PartsOf(Seeded(seed), batch_size) {}
  FitResult run(FitOptions options) {
    options.scheduler = &schedule;
    options.schedule_unit = ScheduleUnit::Step;
    options.epochs = kEpochs;
    options.log_every = 4;
    return fit(net, optimizer, {train, &test}, options);
  }

  Net net;
  optim::Adam optimizer;
  optim::OneCycleLR schedule;
  data::DataLoader train;
  data::DataLoader test;

 private:
  struct Seeded {
    explicit Seeded(uint64_t seed) {
      set_num_threads(1);  // on a busy machine threads that wait for each other are slow
      manual_seed(seed);
    }
  };
  PartsOf(Seeded, int64_t batch_size)
      : optimizer(net.parameters(), {.lr = 0.01}),
        schedule(optimizer, {.max_lr = 0.02, .total_steps = kEpochs * kSteps}),
        train(problem(kSamples, 1), {.batch_size = batch_size, .shuffle = true}),
        test(problem(60, 2), {.batch_size = 32}) {}
};

using Parts = PartsOf<SmallNet>;

/// SmallNet without the sizes of its inputs.
struct LazyNet : nn::Module {
  nn::LazyLinear first{16};
  nn::LazyBatchNorm1d norm;
  nn::Dropout dropout{0.25};
  nn::LazyLinear last{3};
  TERN_MODULE(first, norm, dropout, last)
  Tensor forward(const Tensor& x) { return last(dropout(relu(norm(first(x))))); }
};

/// metrics.jsonl without what depends on the clock.
std::vector<nlohmann::json> metrics_in(const std::filesystem::path& folder) {
  std::vector<nlohmann::json> metrics;
  for (const std::string& line : lines_of(read_text(folder / "metrics.jsonl"))) {
    metrics.push_back(nlohmann::json::parse(line));
    metrics.back().erase("samples_per_second");
    metrics.back().erase("seconds");
  }
  return metrics;
}

TEST(Fit, Learns) {
  Parts setup;
  std::vector<int64_t> epochs, steps, batches;
  FitOptions options;
  options.on_epoch = [&](const EpochReport& report) { epochs.push_back(report.epoch); };
  options.on_step = [&](const StepReport& report) { steps.push_back(report.step); };
  options.on_batch = [&](const Position& at) {
    batches.push_back(at.batch);
    EXPECT_EQ(at.batches, kSteps);
    EXPECT_EQ(at.epochs, kEpochs);
  };
  const FitResult result = setup.run(options);
  EXPECT_FALSE(result.stopped);
  EXPECT_EQ(result.epoch, kEpochs);
  EXPECT_EQ(result.step, kEpochs * kSteps);
  EXPECT_EQ(result.resumed_step, -1);
  EXPECT_EQ(epochs, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 8, 12, 16, 20, 24, 28, 32}));
  EXPECT_EQ(batches.size(), static_cast<size_t>(kEpochs * kSteps));
  ASSERT_EQ(result.history.size(), 3u);
  EXPECT_LT(result.history[2].loss, result.history[0].loss);
  EXPECT_GT(result.history[2].test_accuracy, 0.6);
  EXPECT_TRUE(setup.net.is_training());
}

// The loader's batches stay on the host, as those of pictures do.
TEST(Fit, MovesBatchesToTheModule) {
  const auto on_host = [](const data::TensorDataset& set) {
    const auto [x, y] = set.get_batch(data::SequentialSampler(set.size()).indices(0));
    return data::TensorDataset(x.cpu(), y.cpu());
  };
  Parts here, host;
  host.train = data::DataLoader(on_host(problem(kSamples, 1)),
                                {.batch_size = kBatch, .shuffle = true, .seed = here.train.state().seed});
  host.test = data::DataLoader(on_host(problem(60, 2)), {.batch_size = 32});
  EXPECT_EQ((*host.train.begin()).data.device(), kCPU);
  host.train.set_epoch(0);
  EXPECT_EQ(evaluate(host.net, host.test).loss, evaluate(here.net, here.test).loss);
  manual_seed(8);
  const FitResult wanted = here.run({});
  manual_seed(8);
  EXPECT_EQ(host.run({}).history.back().test_loss, wanted.history.back().test_loss);
  expect_same_bytes(host.net.state_dict(), here.net.state_dict());
}

TEST(Fit, ReportsWhatEvaluateFinds) {
  Parts setup;
  const FitResult result = setup.run({});
  const Evaluation test = evaluate(setup.net, setup.test, {.confusion = true});
  EXPECT_EQ(test.loss, result.history.back().test_loss);
  EXPECT_EQ(test.accuracy, result.history.back().test_accuracy);
  EXPECT_EQ(test.count, 60);
  EXPECT_EQ(test.confusion.classes(), 3);
  int64_t right = 0, all = 0;
  for (int64_t i = 0; i < 3; ++i) {
    right += test.confusion.at(i, i);
    all += test.confusion.total(i);
  }
  EXPECT_EQ(all, 60);
  EXPECT_DOUBLE_EQ(static_cast<double>(right) / 60, test.accuracy);
}

TEST(Fit, ResumesToTheBitFromAnyPlace) {
  const TemporaryFolder folder;
  Parts whole;
  const FitResult expected = whole.run({.out_dir = folder.path() / "whole"});
  const auto metrics = metrics_in(folder.path() / "whole");
  ASSERT_EQ(metrics.size(), static_cast<size_t>(kEpochs * kSteps / 4 + kEpochs));
  // The question is put once a batch, in training and in testing: all places of a run are met.
  int places = 0;
  for (int questions = 1;; ++questions) {
    const auto out = folder.path() / std::to_string(questions);
    Parts first;
    const FitResult stopped = first.run({.out_dir = out, .stop = stop_after(questions)});
    if (!stopped.stopped) break;
    ++places;
    manual_seed(99);
    Parts second;
    const FitResult result = second.run({.out_dir = out, .resume = true});
    SCOPED_TRACE(questions);
    EXPECT_FALSE(result.stopped);
    EXPECT_EQ(result.resumed_step, stopped.step);
    EXPECT_EQ(metrics_in(out), metrics);
    ASSERT_EQ(result.history.size(), expected.history.size());
    EXPECT_EQ(result.history.back().test_loss, expected.history.back().test_loss);
    expect_same_bytes(second.net.state_dict(), whole.net.state_dict());
    if (testing::Test::HasFailure()) break;
  }
  // 10 in every epoch, 2 in every test, 1 between two epochs.
  EXPECT_EQ(places, kEpochs * (kSteps - 1) + kEpochs * 2 + kEpochs - 1);
}

// The optimizer is made before there are sizes; a checkpoint gives them to the network that goes on.
TEST(Fit, LazyNetworksLearnAndResumeToTheBit) {
  const TemporaryFolder folder;
  PartsOf<LazyNet> whole;
  const FitResult expected = whole.run({.out_dir = folder.path() / "whole"});
  EXPECT_GT(expected.history.back().test_accuracy, 0.6);
  const auto out = folder.path() / "in_two";
  PartsOf<LazyNet> first;
  EXPECT_TRUE(first.run({.out_dir = out, .stop = stop_after(13)}).stopped);
  manual_seed(99);
  PartsOf<LazyNet> second;
  EXPECT_TRUE(second.net.has_uninitialized_params());
  EXPECT_EQ(second.run({.out_dir = out, .resume = true}).history.back().test_loss,
            expected.history.back().test_loss);
  expect_same_bytes(second.net.state_dict(), whole.net.state_dict());
}

TEST(Fit, ResumesFromTheLastCheckpointAfterACrash) {
  const TemporaryFolder folder;
  Parts whole;
  whole.run({.out_dir = folder.path() / "whole"});
  for (int64_t crash : {1, 5, 11, 12, 20, 33}) {
    const auto out = folder.path() / std::to_string(crash);
    Parts first;
    FitOptions options{.out_dir = out, .save_every = 3};
    options.on_batch = [&](const Position& at) {
      if (at.step == crash) throw std::runtime_error("crash");
    };
    EXPECT_THROW(first.run(options), std::runtime_error);
    Parts second;
    const FitResult result = second.run({.out_dir = out, .resume = true});
    EXPECT_LT(result.resumed_step, crash);
    EXPECT_GE(result.resumed_step, crash - 4);
    EXPECT_EQ(metrics_in(out), metrics_in(folder.path() / "whole"));
    expect_same_bytes(second.net.state_dict(), whole.net.state_dict());
  }
}

TEST(Fit, LearnsInSixteenBitsAndResumesToTheBit) {
  for (const DType dtype : {bfloat16, float16}) {
    SCOPED_TRACE(name(dtype));
    const auto options = [&](optim::GradScaler& scaler, FitOptions given) {
      given.autocast = dtype;
      given.clip_grad_norm = 5;
      if (dtype == float16) given.grad_scaler = &scaler;
      return given;
    };
    const optim::GradScalerOptions growing{.init_scale = 64, .growth_interval = 5};
    const TemporaryFolder folder;
    Parts whole, exact;
    optim::GradScaler whole_scaler(growing);
    const FitResult expected = whole.run(options(whole_scaler, {.out_dir = folder.path() / "whole"}));
    const FitResult in_float32 = exact.run({.clip_grad_norm = 5});
    EXPECT_NE(expected.history.back().loss, in_float32.history.back().loss);
    EXPECT_NEAR(expected.history.back().loss, in_float32.history.back().loss,
                0.1 * in_float32.history.back().loss);
    for (const Tensor& p : whole.net.parameters()) EXPECT_EQ(p.dtype(), float32);

    Parts first, second;
    optim::GradScaler first_scaler(growing), second_scaler;
    first.run(options(first_scaler, {.out_dir = folder.path() / "two", .stop = stop_after(17)}));
    const Checkpoint saved = Checkpoint::load(folder.path() / "two" / kCheckpointName);
    EXPECT_EQ(saved.grad_scaler.has_value(), dtype == float16);
    const FitResult result =
        second.run(options(second_scaler, {.out_dir = folder.path() / "two", .resume = true}));
    EXPECT_GT(result.resumed_step, 0);
    expect_same_bytes(second.net.state_dict(), whole.net.state_dict());
    if (dtype != float16) continue;
    EXPECT_GT(whole_scaler.get_scale(), 64);
    EXPECT_EQ(second_scaler.get_scale(), whole_scaler.get_scale());
    Parts third;
    expect_error<CheckpointError>([&] { third.run({.out_dir = folder.path() / "two", .resume = true}); },
                                  "the run was started with a gradient scaler");
    Parts recorded;
    optim::GradScaler recorded_scaler(growing);
    FitOptions capturing = options(recorded_scaler, {});
    capturing.capture = true;
    recorded.run(capturing);
    expect_same_bytes(recorded.net.state_dict(), whole.net.state_dict());
    EXPECT_EQ(recorded_scaler.get_scale(), whole_scaler.get_scale());
  }
}

TEST(Fit, AFinishedRunCanBeResumed) {
  const TemporaryFolder folder;
  Parts first;
  first.run({.out_dir = folder.path()});
  const std::string metrics = read_text(folder.path() / "metrics.jsonl");
  Parts second;
  const FitResult result = second.run({.out_dir = folder.path(), .resume = true});
  EXPECT_EQ(result.step, kEpochs * kSteps);
  EXPECT_EQ(result.history.size(), 3u);
  EXPECT_EQ(read_text(folder.path() / "metrics.jsonl"), metrics);
  expect_same_bytes(second.net.state_dict(), first.net.state_dict());
}

TEST(Fit, RefusesWhatCannotBeResumed) {
  const TemporaryFolder folder;
  ValueDict settings, others;
  settings.set("seed", 7);
  others.set("seed", 8);
  {
    Parts setup;
    setup.run({.out_dir = folder.path(), .settings = settings, .stop = stop_after(5)});
  }
  const std::string checkpoint = read_text(folder.path() / kCheckpointName);
  auto message = [](auto&& body) -> std::string {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  Parts setup;
  EXPECT_NE(message([&] {
              setup.run({.out_dir = folder.path(), .resume = true, .settings = others});
            }).find("seed is 8, was 7"),
            std::string::npos);
  EXPECT_NE(
      message([&] { setup.run({.out_dir = folder.path(), .resume = true}); }).find("seed is not set, was 7"),
      std::string::npos);
  EXPECT_NE(message([&] {
              setup.run({.out_dir = folder.path()});
            }).find("is there already: go on with that run (resume), "),
            std::string::npos);
  EXPECT_NE(message([&] {
              setup.run({.out_dir = folder.path() / "none", .resume = true});
            }).find("nothing to resume"),
            std::string::npos);
  EXPECT_NE(message([&] { setup.run({.resume = true}); }).find("out_dir"), std::string::npos);
  Parts other_batches(7, 10);
  EXPECT_NE(message([&] {
              other_batches.run({.out_dir = folder.path(), .resume = true, .settings = settings});
            }).find("resuming"),
            std::string::npos);
  EXPECT_EQ(read_text(folder.path() / kCheckpointName), checkpoint);
  EXPECT_THROW(setup.run({.out_dir = "/proc/nothing"}), IoError);
  EXPECT_FALSE(setup.run({.out_dir = folder.path(), .overwrite = true}).stopped);
}

std::set<std::string> checkpoints_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".pt") names.insert(entry.path().filename().string());
  return names;
}

TEST(Fit, KeepsTheLastCheckpointsAndTheBest) {
  const TemporaryFolder folder;
  Parts plain;
  const FitResult expected = plain.run({.out_dir = folder.path() / "plain"});
  EXPECT_TRUE(expected.best.empty());
  const auto named = [&](int64_t step) {  // of two digits
    return folder.path() / "kept" / ("checkpoint-000000" + std::to_string(step) + ".pt");
  };
  Parts first;
  // After 4 batches of the third epoch; checkpoints at 0, 5, 10, 11, 15, 20, 22, 25 and 26.
  first.run({.out_dir = folder.path() / "kept",
             .save_every = 5,
             .keep = 2,
             .stop = stop_after(2 * (kSteps - 1) + 2 * 2 + 2 + 4)});
  const auto losses = [&](size_t epoch) { return expected.history[epoch].test_loss; };
  int64_t best = losses(1) < losses(0) ? 22 : 11;
  std::set<std::string> names{"checkpoint.pt", "best.pt", "checkpoint-00000025.pt", "checkpoint-00000026.pt",
                              named(best).filename().string()};
  EXPECT_EQ(checkpoints_in(folder.path() / "kept"), names);
  EXPECT_EQ(Checkpoint::load(folder.path() / "kept/checkpoint.pt").step, 26);
  EXPECT_EQ(Checkpoint::load(folder.path() / "kept/best.pt").step, best);

  Parts second;
  const FitResult result = second.run({.out_dir = folder.path() / "kept", .resume = true, .keep = 1});
  if (losses(2) < std::min(losses(0), losses(1))) best = 33;
  EXPECT_EQ(result.best, named(best));
  names = {"checkpoint.pt", "best.pt", "checkpoint-00000033.pt", named(best).filename().string()};
  EXPECT_EQ(checkpoints_in(folder.path() / "kept"), names);
  EXPECT_EQ(Checkpoint::load(folder.path() / "kept/checkpoint.pt").step, 33);
  const Checkpoint saved = Checkpoint::load(folder.path() / "kept/best.pt");
  EXPECT_EQ(saved.step, best);
  expect_same_bytes(second.net.state_dict(), plain.net.state_dict());
  Parts reloaded;
  reloaded.net.load_state_dict(saved.model);
  EXPECT_EQ(evaluate(reloaded.net, reloaded.test).loss, std::min({losses(0), losses(1), losses(2)}));
}

TEST(Fit, ACheckpointThatCannotBeWrittenEndsTheRun) {
  for (int64_t blocked : {int64_t{1}, kEpochs}) {
    const TemporaryFolder folder;
    const auto path = folder.path() / kCheckpointName;
    Parts setup;
    FitOptions options{.out_dir = folder.path()};
    // A folder is in the way of the checkpoint after this epoch.
    options.on_test_batch = [&](const Position& at) {
      if (at.epoch != blocked || std::filesystem::is_directory(path)) return;
      while (Checkpoint::load(path).step != at.step)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::filesystem::remove(path);
      std::filesystem::create_directory(path);
    };
    int64_t epochs = 0;
    options.on_epoch = [&](const EpochReport& report) { epochs = report.epoch; };
    try {
      setup.run(options);
      ADD_FAILURE() << "no error";
    } catch (const IoError& error) {
      EXPECT_STREQ(
          error.what(),
          ("saving '" + path.string() + "': it is a folder (what was there before is unchanged)").c_str());
    }
    EXPECT_EQ(epochs, blocked);  // seen when the next one is due, or at the end
  }
}

TEST(Fit, MicroBatchesNeedLessMemory) {
  if (cuda::is_available()) GTEST_SKIP() << "makes a simulated GPU";
  simulate_gpus({.gpus = 1});
  const auto peak = [](int64_t parts) {
    manual_seed(7);
    nn::Sequential net{nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 8), nn::ReLU(),
                       nn::Linear(8, 8), nn::ReLU(), nn::Linear(8, 3)};
    net.to("cuda:0");
    optim::SGD sgd(net.parameters(), {.lr = 0.1});
    data::DataLoader loader(problem(4096, 1), {.batch_size = 4096});
    cuda::reset_peak_memory_stats("cuda:0");
    fit(net, sgd, {loader}, {.micro_batches = parts});
    return cuda::max_memory_allocated("cuda:0");
  };
  const auto whole = peak(1), parts = peak(8);
  simulate_gpus({.gpus = 0});
  EXPECT_LT(parts, whole / 4) << whole;
}

TEST(Fit, OptionsOutOfRange) {
  Parts setup;
  const Loaders loaders{setup.train};
  EXPECT_THROW(fit(setup.net, setup.optimizer, loaders, {.epochs = -1}), ValueError);
  EXPECT_THROW(fit(setup.net, setup.optimizer, loaders, {.log_every = 0}), ValueError);
  EXPECT_THROW(fit(setup.net, setup.optimizer, loaders, {.save_every = -1}), ValueError);
  EXPECT_THROW(fit(setup.net, setup.optimizer, loaders, {.clip_grad_norm = -1}), ValueError);
  EXPECT_THROW(fit(setup.net, setup.optimizer, loaders, {.micro_batches = 0}), ValueError);
  EXPECT_THROW(fit(setup.net, setup.optimizer, loaders, {.keep = -1}), ValueError);
}

TEST(Fit, ABatchOfOneTensorNeedsALossOfItsOwn) {
  nn::Linear net(2, 2);
  optim::SGD optimizer(net.parameters(), {.lr = 0.1});
  data::DataLoader loader(data::TensorDataset(ones({4, 2})), {.batch_size = 2});
  const char* said = "a batch is [input, target]; this one has 1 tensor: ";
  expect_error<ValueError>([&] { fit(net, optimizer, {loader}, {}); }, said);
  expect_error<ValueError>([&] { evaluate(net, loader); }, said);
  const LossFunction loss = [](const Tensor& output, const Tensor&) { return output.square().mean(); };
  EXPECT_EQ(fit(net, optimizer, {loader}, {.loss = loss}).step, 2);
}

TEST(Fit, AnyModuleAndAnotherLossAndNoTest) {
  manual_seed(3);
  nn::AnyModule net = nn::Linear(2, 1);
  const Tensor x = randn({64, 2});
  data::DataLoader loader(data::TensorDataset(x, x.sum({1}, /*keepdim=*/true)), {.batch_size = 16});
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const FitResult result =
      fit(net, optimizer, {loader},
          {.epochs = 20,
           .loss = [](const Tensor& out, const Tensor& y) { return nn::mse_loss(out, y); },
           .clip_grad_norm = 10});
  EXPECT_LT(result.history.back().loss, 1e-2);
  EXPECT_TRUE(std::isnan(result.history.back().accuracy));
  EXPECT_TRUE(std::isnan(result.history.back().test_loss));
}

TEST(Fit, TellsOfALossThatIsNotFinite) {
  Parts setup;
  std::vector<std::string> notices;
  FitOptions options;
  options.loss = [](const Tensor& out, const Tensor&) {
    return out.mean() * std::numeric_limits<double>::infinity();
  };
  options.on_notice = [&](const std::string& text) { notices.push_back(text); };
  setup.run(options);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("step 4"), std::string::npos) << notices[0];
}

TEST(Evaluate, PutsTheModeBack) {
  Parts setup;
  setup.net.eval();
  evaluate(setup.net, setup.test);
  EXPECT_FALSE(setup.net.is_training());
  setup.net.train();
  evaluate(setup.net, setup.test);
  EXPECT_TRUE(setup.net.is_training());
}

TEST(Metrics, Averages) {
  Averages averages;
  EXPECT_TRUE(std::isnan(averages.loss()));
  EXPECT_TRUE(std::isnan(averages.accuracy()));
  averages.add(full({}, 2.0), full({}, 3, {.dtype = int64}), 4);
  averages.add(full({}, 1.0), Tensor(), 4);
  EXPECT_EQ(averages.count(), 8);
  EXPECT_EQ(averages.loss(), 1.5);
  EXPECT_EQ(averages.accuracy(), 0.75);
  averages.reset();
  EXPECT_EQ(averages.count(), 0);
}

TEST(Metrics, ConfusionRefusesTargetsOutsideTheClasses) {
  Confusion confusion;
  EXPECT_THROW(confusion.add(zeros({2, 3}), full({2}, 3, {.dtype = int64})), DataError);
  EXPECT_THROW(confusion.add(zeros({2, 3}), zeros({2})), ShapeError);
  confusion.add(zeros({2, 3}), zeros({2}, {.dtype = int64}));
  EXPECT_EQ(confusion.at(0, 0), 2);
  EXPECT_TRUE(std::isnan(confusion.accuracy(2)));
}

}  // namespace
}  // namespace tern::train
