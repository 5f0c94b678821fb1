// fit and evaluate on streams that do not know how many samples they have.
#include <gtest/gtest.h>

#include <cmath>

#include "tern/base/parallel.h"
#include "tern/data/iterable_dataset.h"
#include "tern/nn/linear.h"
#include "tern/ops/compare.h"
#include "tern/optim/one_cycle_lr.h"
#include "tern/optim/sgd.h"
#include "tern/train/trainer.h"
#include "tests/support/each_process.h"
#include "tests/support/expect_error.h"
#include "tests/train/small_problem.h"
#include "tests/train/train_testing.h"

namespace tern::train {
namespace {

/// The first samples of a set one after the other; in each epoch `growth` more than in the one before.
auto stream_of(const data::TensorDataset& set, int64_t size, int64_t growth = 0) {
  return [=](const data::RandomKey& key) -> data::SampleStream {
    return [=, i = int64_t{0}]() mutable -> std::optional<data::LazyExample> {
      if (i == size + growth * key.epoch) return {};
      return set.get(i++);
    };
  };
}

constexpr int64_t kBatchOfStream = 10, kEpochsOfStream = 3;

/// 4, 6 and 8 batches; tests of 35 samples.
struct StreamParts {
  FitResult run(FitOptions options) {
    options.scheduler = &schedule;
    options.schedule_unit = ScheduleUnit::Step;
    options.epochs = kEpochsOfStream;
    options.log_every = 5;
    return fit(net, optimizer, {train, &test}, options);
  }

  SmallNet net = (manual_seed(7), SmallNet());
  optim::SGD optimizer{net.parameters(), {.lr = 0.1, .momentum = 0.9}};
  optim::OneCycleLR schedule{optimizer, {.max_lr = 0.2, .total_steps = 18}};
  data::DataLoader train{data::ShuffleBuffer(stream_of(problem(100, 1), 35, 20), 16),
                         {.batch_size = kBatchOfStream, .num_workers = 1, .seed = 3}};
  data::DataLoader test{stream_of(problem(35, 2), 35), {.batch_size = kBatchOfStream}};
};

TEST(FitStream, LearnsAndReports) {
  StreamParts parts;
  std::vector<int64_t> batches, tested;
  const FitResult result = parts.run({.on_batch =
                                          [&](const Position& at) {
                                            EXPECT_FALSE(at.batches);
                                            batches.push_back(at.batch);
                                          },
                                      .on_test_batch =
                                          [&](const Position& at) {
                                            EXPECT_FALSE(at.batches);
                                            tested.push_back(at.averages.count());
                                          }});
  EXPECT_EQ(batches, (std::vector<int64_t>{1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(tested, (std::vector<int64_t>{10, 20, 30, 35, 10, 20, 30, 35, 10, 20, 30, 35}));
  EXPECT_EQ(result.step, 18);
  EXPECT_EQ(result.history[1].step, 10);
  EXPECT_GT(result.history[2].test_accuracy, 0.5);
  const Evaluation test = evaluate(parts.net, parts.test);
  EXPECT_EQ(test.count, 35);
  EXPECT_EQ(test.loss, result.history[2].test_loss);
}

// The numbers are those of the same samples by index.
TEST(FitStream, SameAsADatasetOfTheSameSamples) {
  const data::TensorDataset set = problem(35, 1);
  StreamParts streamed, indexed;
  data::DataLoader stream(stream_of(set, 35), {.batch_size = kBatchOfStream});
  data::DataLoader dataset(set, {.batch_size = kBatchOfStream});
  for (auto [parts, loader] : {std::pair{&streamed, &stream}, {&indexed, &dataset}}) {
    manual_seed(5);
    const FitResult result = fit(parts->net, parts->optimizer, {*loader}, {.epochs = 2});
    EXPECT_EQ(result.step, 8);
  }
  expect_same_bytes(streamed.net.state_dict(), indexed.net.state_dict());
}

TEST(FitStream, ResumesToTheBitFromAnyPlace) {
  const TemporaryFolder folder;
  StreamParts whole;
  const FitResult expected = whole.run({.out_dir = folder.path() / "whole"});
  int places = 0;
  for (int questions = 1;; ++questions) {
    SCOPED_TRACE(questions);
    const auto out = folder.path() / std::to_string(questions);
    StreamParts first;
    const FitResult stopped = first.run({.out_dir = out, .stop = stop_after(questions)});
    if (!stopped.stopped) break;
    ++places;
    manual_seed(99);
    StreamParts second;
    const FitResult result = second.run({.out_dir = out, .resume = true});
    EXPECT_EQ(result.resumed_step, stopped.step);
    EXPECT_EQ(result.step, expected.step);
    EXPECT_EQ(result.history.back().loss, expected.history.back().loss);
    EXPECT_EQ(result.history.back().test_loss, expected.history.back().test_loss);
    expect_same_bytes(second.net.state_dict(), whole.net.state_dict());
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_EQ(places, 18 + kEpochsOfStream * 4 + 2);  // batches, of tests too, and between epochs
}

TEST(FitStream, ResumesFromTheLastCheckpointAfterACrash) {
  const TemporaryFolder folder;
  StreamParts whole;
  whole.run({});
  for (const int64_t crash : {3, 4, 9, 18}) {
    SCOPED_TRACE(crash);
    const auto out = folder.path() / std::to_string(crash);
    StreamParts first;
    FitOptions options{.out_dir = out, .save_every = 2};
    options.on_batch = [&](const Position& at) {
      if (at.step == crash) throw std::runtime_error("crash");
    };
    EXPECT_THROW(first.run(options), std::runtime_error);
    StreamParts second;
    EXPECT_EQ(second.run({.out_dir = out, .resume = true}).resumed_step, (crash - 1) / 2 * 2);
    expect_same_bytes(second.net.state_dict(), whole.net.state_dict());
  }
}

TEST(FitStream, OneWithoutAnEndIsTrainedOnUntilStopped) {
  StreamParts parts;
  const data::TensorDataset set = problem(35, 1);
  data::DataLoader endless(
      [=](const data::RandomKey&) {
        return data::SampleStream([=, i = 0]() mutable { return set.get(i++ % 35); });
      },
      {.batch_size = kBatchOfStream});
  const FitResult result = fit(parts.net, parts.optimizer, {endless}, {.stop = stop_after(40)});
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.batch, 40);
  EXPECT_EQ(result.epoch, 0);
}

TEST(FitStream, ProcessesShareItsBatchesAndTellWhereOneHasMore) {
  const auto trained = [](int size, bool share) {
    std::vector<StateDict> states(static_cast<size_t>(size));
    dist::on_each(size, [&](const dist::ProcessGroup& group) {
      set_thread_local_num_threads(1);
      const DefaultGeneratorGuard own(Generator(7));
      nn::Linear net(4, 3);
      optim::SGD sgd(net.parameters(), {.lr = 0.1});
      data::DataLoaderOptions options{.batch_size = kBatchOfStream};
      if (share) options.part = {group.rank(), size};
      data::DataLoader loader(stream_of(problem(99, 1), share ? 35 : 35 + 10 * group.rank()), options);
      const auto run = [&] { fit(net, sgd, {loader, &loader}, {.epochs = 2, .group = group}); };
      if (share)
        run();
      else
        expect_error<DistributedError>(run, "the processes do not do the same");
      states[static_cast<size_t>(group.rank())] = net.state_dict();
    });
    return states;
  };
  const StateDict alone = trained(1, true)[0];
  for (const StateDict& state : trained(3, true))
    for (const auto& [name, tensor] : state) EXPECT_TRUE(allclose(tensor, alone.at(name))) << name;
  trained(2, false);
}

// As with a dataset without samples.
TEST(FitStream, EmptyOnesGiveEpochsWithoutNumbers) {
  const data::TensorDataset none = problem(0, 1);
  data::DataLoader stream(stream_of(none, 0), {.batch_size = 4}), dataset(none, {.batch_size = 4});
  for (data::DataLoader* loader : {&stream, &dataset}) {
    StreamParts parts;
    std::vector<std::string> notices;
    const FitResult result =
        fit(parts.net, parts.optimizer, {*loader, loader},
            {.epochs = 2, .on_notice = [&](const std::string& text) { notices.push_back(text); }});
    EXPECT_EQ(result.step, 0);
    ASSERT_EQ(result.history.size(), 2u);
    EXPECT_TRUE(std::isnan(result.history[1].loss) && std::isnan(result.history[1].test_loss));
    EXPECT_EQ(notices, (std::vector<std::string>{"epoch 1 has no samples to train on",
                                                 "epoch 2 has no samples to train on"}));
    EXPECT_EQ(evaluate(parts.net, *loader).count, 0);
  }
}

}  // namespace
}  // namespace tern::train
