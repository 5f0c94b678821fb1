// fit() with several processes: threads here that take their parts, whose numbers are those of one.
#include "tern/train/processes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tern/base/parallel.h"
#include "tern/nn/linear.h"
#include "tern/ops/activation.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/optim/adam.h"
#include "tern/optim/reduce_lr_on_plateau.h"
#include "tern/parallel/sync_batch_norm.h"
#include "tern/train/trainer.h"
#include "tests/support/each_process.h"
#include "tests/support/expect_error.h"
#include "tests/train/small_problem.h"
#include "tests/train/train_testing.h"

namespace tern::train {
namespace {

using ::testing::HasSubstr;

struct Plain : nn::Module {
  static constexpr int64_t kSamples = 63;  // in batches of 10: the last has 3
  nn::Linear first{4, 16}, last{16, 3};
  TERN_MODULE(first, last)
  Tensor forward(const Tensor& x) { return last(relu(first(x))); }
};

/// With statistics of the whole batch.
struct Synchronised : nn::Module {
  static constexpr int64_t kSamples = 63;
  // Without a bias, whose gradient before the norm is rounding alone, which Adam makes large.
  nn::Linear first{4, 16, {.bias = false}}, last{16, 3};
  parallel::SyncBatchNorm norm{16};
  TERN_MODULE(first, norm, last)
  Tensor forward(const Tensor& x) { return last(relu(norm(first(x)))); }
};

struct Rich : SmallNet {
  static constexpr int64_t kSamples = 67;  // whose parts have more than one sample
};

struct Trained {
  StateDict state;
  FitResult result;
};

/// What each of `size` processes comes to.
template <class Net>
std::vector<Trained> train_on(int size, const std::function<FitOptions(int rank)>& options_of,
                              bool share_batches = true) {
  std::vector<Trained> trained(static_cast<size_t>(size));
  dist::on_each(size, [&](const dist::ProcessGroup& group) {
    const int rank = group.rank();
    set_thread_local_num_threads(1);
    const DefaultGeneratorGuard own(Generator(static_cast<uint64_t>(50 + rank)));
    Net net;
    optim::Adam adam(net.parameters(), {.lr = 0.01});
    optim::ReduceLROnPlateau plateau(adam, {.factor = 0.5, .patience = 0, .threshold = 0.5});
    data::DataLoaderOptions loading{.batch_size = 10, .seed = 9}, testing{.batch_size = 32};
    if (share_batches) {
      loading.shuffle = true;
      loading.part = testing.part = {rank, size};
    } else {
      loading.sampler = data::DistributedSampler(Net::kSamples, {.num_replicas = size, .rank = rank});
    }
    data::DataLoader train(problem(Net::kSamples, 1), loading), test(problem(40, 2), testing);
    FitOptions options = options_of(rank);
    options.epochs = 3;
    options.log_every = 4;
    options.group = group;
    options.scheduler = &plateau;
    const FitResult result = fit(net, adam, {train, &test}, options);
    trained[static_cast<size_t>(rank)] = {net.state_dict(), result};
  });
  return trained;
}

void expect_equal(const StateDict& a, const StateDict& b) {
  for (const auto& [name, tensor] : a) EXPECT_TRUE(equal(tensor, b.at(name))) << name;
}

template <class Net>
void expect_numbers_of_one(const std::vector<int>& sizes) {
  const Trained alone = train_on<Net>(1, [](int) { return FitOptions(); })[0];
  for (int size : sizes) {
    SCOPED_TRACE(size);
    std::vector<double> losses;
    const auto all = train_on<Net>(size, [&](int rank) {
      FitOptions options;
      if (rank == 0) options.on_step = [&](const StepReport& report) { losses.push_back(report.loss); };
      return options;
    });
    EXPECT_EQ(losses.size(), 5u);
    for (const Trained& each : all) {
      expect_equal(each.state, all[0].state);
      ASSERT_EQ(each.result.history.size(), 3u);
      for (size_t e = 0; e < 3; ++e) {
        const EpochReport &wanted = alone.result.history[e], &report = each.result.history[e];
        EXPECT_NEAR(report.loss, wanted.loss, 1e-5);
        EXPECT_NEAR(report.test_loss, wanted.test_loss, 1e-5);
        EXPECT_EQ(report.accuracy, wanted.accuracy);
        EXPECT_EQ(report.test_accuracy, wanted.test_accuracy);
        EXPECT_EQ(report.lr, wanted.lr);
      }
    }
    for (const auto& [name, tensor] : alone.state)
      EXPECT_TRUE(allclose(all[0].state.at(name), tensor, 1e-4, 1e-5)) << name;
  }
}

TEST(FitTogether, GivesTheNumbersOfOneProcess) {
  expect_numbers_of_one<Plain>({2, 3, 5});  // of 5, two have no sample of the last batch
  expect_numbers_of_one<Synchronised>({2, 3});
}

TEST(FitTogether, PartsOfABatchAddUp) {
  const Trained whole = train_on<Plain>(1, [](int) { return FitOptions(); })[0];
  for (int size : {1, 2})
    for (int64_t parts : {2, 3, 40}) {
      SCOPED_TRACE(fmt::format("{} processes, {} parts", size, parts));
      const auto all = train_on<Plain>(size, [&](int) { return FitOptions{.micro_batches = parts}; });
      for (size_t e = 0; e < 3; ++e) {
        EXPECT_NEAR(all[0].result.history[e].loss, whole.result.history[e].loss, 1e-5);
        EXPECT_EQ(all[0].result.history[e].accuracy, whole.result.history[e].accuracy);
      }
      for (const auto& [name, tensor] : whole.state)
        EXPECT_TRUE(allclose(all.back().state.at(name), tensor, 1e-4, 1e-5)) << name;
    }
}

TEST(FitTogether, OneStopsAllAndTheyGoOnToTheBit) {
  const TemporaryFolder folder;
  const auto whole = train_on<Rich>(3, [](int) { return FitOptions(); });
  for (int questions : {2, 8, 11}) {
    SCOPED_TRACE(questions);
    // The others are given no folder that they could read or write in.
    const auto place = [&](int rank) { return folder.path() / fmt::format("{}-{}", questions, rank); };
    const auto stopped = train_on<Rich>(3, [&](int rank) {
      FitOptions options{.out_dir = place(rank)};
      if (rank == 2) options.stop = [left = questions]() mutable { return --left == 0; };
      return options;
    });
    for (const Trained& each : stopped) {
      EXPECT_TRUE(each.result.stopped);
      EXPECT_EQ(each.result.step, stopped[0].result.step);
    }
    EXPECT_FALSE(std::filesystem::exists(place(1)));
    EXPECT_EQ(Checkpoint::load(place(0) / kCheckpointName).random_of_others.size(), 2u);
    const auto again =
        train_on<Rich>(3, [&](int rank) { return FitOptions{.out_dir = place(rank), .resume = true}; });
    for (size_t r = 0; r < 3; ++r) {
      EXPECT_EQ(again[r].result.resumed_step, stopped[0].result.step);
      EXPECT_EQ(again[r].result.history.back().test_loss, whole[r].result.history.back().test_loss);
      EXPECT_EQ(again[r].result.history.back().loss, whole[r].result.history.back().loss);
      if (r == 0) expect_equal(again[r].state, whole[r].state);
    }
  }
}

TEST(FitTogether, GoesOnWithAnotherNumberOfProcesses) {
  const TemporaryFolder folder;
  const Trained whole = train_on<Plain>(1, [](int) { return FitOptions(); })[0];
  const auto run = [&](int size, bool resume, int stop_after) {
    return train_on<Plain>(size, [&](int) {
      FitOptions options{.out_dir = folder.path() / "run", .resume = resume};
      if (stop_after > 0) options.stop = [left = stop_after]() mutable { return --left == 0; };
      return options;
    });
  };
  run(2, false, 5);
  run(3, true, 6);
  const auto last = run(1, true, 0);
  EXPECT_NEAR(last[0].result.history.back().loss, whole.result.history.back().loss, 1e-5);
  for (const auto& [name, tensor] : whole.state)
    EXPECT_TRUE(allclose(last[0].state.at(name), tensor, 1e-4, 1e-5)) << name;
}

TEST(FitTogether, TakesPartsOfTheDataToo) {
  const auto all = train_on<Rich>(
      2, [](int) { return FitOptions(); }, /*share_batches=*/false);
  EXPECT_EQ(all[0].result.step, 3 * 4);  // 34 samples each, in batches of 10
  EXPECT_EQ(all[0].result.history.back().loss, all[1].result.history.back().loss);
  EXPECT_LT(all[0].result.history.back().loss, all[0].result.history.front().loss);
}

TEST(FitTogether, ProcessesThatDifferAreTold) {
  try {
    train_on<Plain>(2, [](int rank) { return FitOptions{.save_every = rank + 1}; });
    FAIL() << "nothing was thrown";
  } catch (const DistributedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("save_every 1"));
    EXPECT_THAT(error.what(), HasSubstr("rank 1 has"));
  }
  EXPECT_THROW(train_on<Plain>(2, [](int) { return FitOptions{.capture = true}; }), ValueError);
}

TEST(FitTogether, WhatTheFirstCannotReadEndsAll) {
  const TemporaryFolder folder;
  write_text(folder / kCheckpointName, "no checkpoint");
  EXPECT_THROW(train_on<Plain>(2, [&](int) { return FitOptions{.out_dir = folder.path(), .resume = true}; }),
               CheckpointError);
}

}  // namespace
}  // namespace tern::train
