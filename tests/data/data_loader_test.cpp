// The DataLoader: contents, orders, workers, errors, resuming. Also run under ThreadSanitizer.
#include "tern/data/data_loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "tern/autograd/grad_mode.h"
#include "tern/core/memory.h"
#include "tern/device/cuda.h"
#include "tern/device/simulation.h"
#include "tern/ops/autocast.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tests/data/data_testing.h"
#include "tests/data/loader_testing.h"

namespace tern::data {
namespace {

using testing::expect_error;
using testing::Ints;
using testing::one_epoch;
using testing::visited;

/// Sample i is [i, a random number of its stream]. Counts its calls, and throws where told to.
class Numbers : public Dataset {
 public:
  explicit Numbers(int64_t size, int64_t broken = -1) : size_(size), broken_(broken) {}
  int64_t size() const override { return size_; }
  Example get(int64_t index) const override { return sample(index, RandomKey{}); }
  Example sample(int64_t index, const RandomKey& key) const override {
    ++*calls;
    if (index == broken_) throw std::runtime_error("disk on fire");
    if (index == broken_ + 1 && broken_ >= 0) throw ShapeError("odd shape");
    Random random = key.random(index);
    // Uneven work, so that workers finish out of order.
    if (index % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    return {index, static_cast<int64_t>(random.bits())};
  }

  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);

 private:
  int64_t size_;
  int64_t broken_;
};

TEST(DataLoader, BatchesByTable) {
  struct Case {
    int64_t size, batch_size;
    bool drop_last;
    Ints sizes;
  };
  const Case cases[] = {
      {0, 4, false, {}},        {1, 4, false, {1}},   {1, 4, true, {}},         {8, 4, false, {4, 4}},
      {9, 4, false, {4, 4, 1}}, {9, 4, true, {4, 4}}, {3, 1, false, {1, 1, 1}}, {3, 100, false, {3}},
  };
  for (const Case& c : cases) {
    for (const int64_t workers : {0, 1, 3}) {
      DataLoader loader(Numbers(c.size),
                        {.batch_size = c.batch_size, .num_workers = workers, .drop_last = c.drop_last});
      EXPECT_EQ(loader.size(), static_cast<int64_t>(c.sizes.size()));
      Ints sizes;
      for (auto& batch : loader) {
        EXPECT_EQ(batch.data.dim(), 1);
        sizes.push_back(batch.data.size(0));
      }
      EXPECT_EQ(sizes, c.sizes) << c.size << "/" << c.batch_size << " with " << workers << " workers";
    }
  }
}

TEST(DataLoader, InOrderWithoutShuffle) {
  DataLoader loader(Numbers(10), {.batch_size = 3, .num_workers = 2});
  Ints all(10);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(visited(loader), all);
  EXPECT_EQ(visited(loader), all) << "a second pass";
  EXPECT_EQ(loader.dataset_size(), 10);
}

TEST(DataLoader, SameBatchesForAnyNumberOfWorkers) {
  std::vector<Ints> expected;
  for (const int64_t workers : {0, 1, 2, 4}) {
    for (const int64_t prefetch : {1, 3}) {
      DataLoader loader(Numbers(103), {.batch_size = 7,
                                       .shuffle = true,
                                       .num_workers = workers,
                                       .prefetch_factor = prefetch,
                                       .seed = 11});
      std::vector<Ints> epochs = {one_epoch(loader), one_epoch(loader), one_epoch(loader)};
      if (expected.empty()) expected = epochs;
      EXPECT_EQ(epochs, expected) << workers << " workers, " << prefetch << " ahead";
    }
  }
  EXPECT_NE(expected[0], expected[1]) << "each epoch has an order and augmentation of its own";
  EXPECT_NE(expected[1], expected[2]);
}

TEST(DataLoader, ShuffleVisitsEverySampleOnce) {
  DataLoader loader(Numbers(50), {.batch_size = 8, .shuffle = true, .seed = 1});
  Ints order = visited(loader);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  Ints all(50);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
}

TEST(DataLoader, SeedComesFromOptionGeneratorOrDefault) {
  const auto order = [](DataLoaderOptions options) {
    options.shuffle = true;
    DataLoader loader(Numbers(30), options);
    return visited(loader);
  };
  EXPECT_EQ(order({.seed = 4}), order({.seed = 4}));
  EXPECT_NE(order({.seed = 4}), order({.seed = 5}));
  EXPECT_EQ(order({.generator = Generator(4)}), order({.generator = Generator(4)}));
  manual_seed(1);
  const Ints first = order({}), second = order({});
  EXPECT_NE(first, second);
  manual_seed(1);
  EXPECT_EQ(order({}), first);
}

TEST(DataLoader, SetEpochChoosesTheOrder) {
  DataLoader loader(Numbers(30), {.shuffle = true, .seed = 4});
  const Ints epoch0 = visited(loader), epoch1 = visited(loader);
  EXPECT_EQ(loader.next_epoch(), 2);
  loader.set_epoch(1);
  EXPECT_EQ(visited(loader), epoch1);
  loader.set_epoch(0);
  EXPECT_EQ(visited(loader), epoch0);
  EXPECT_THROW(loader.set_epoch(-1), ValueError);
  // The seed is drawn when the loader is made, and what the generator is given later changes nothing.
  manual_seed(1);
  DataLoader drawn(Numbers(30), {.shuffle = true});
  const Ints first = visited(drawn);
  manual_seed(1);
  EXPECT_NE(visited(drawn), first);
  drawn.set_epoch(0);
  EXPECT_EQ(visited(drawn), first);
}

TEST(DataLoader, ResumesInTheMiddle) {
  const DataLoaderOptions options = {.batch_size = 4, .shuffle = true, .num_workers = 2, .seed = 4};
  DataLoader whole(Numbers(30), options);
  one_epoch(whole);
  const Ints epoch1 = one_epoch(whole), epoch2 = one_epoch(whole);
  for (const int64_t stop : {1, 3, 8}) {
    DataLoader stopped(Numbers(30), options);
    one_epoch(stopped);
    DataLoaderState state;
    Ints seen;
    int64_t count = 0;
    for (auto& batch : stopped) {
      const Ints data = batch.data.to_vector<int64_t>(), target = batch.target.to_vector<int64_t>();
      seen.insert(seen.end(), data.begin(), data.end());
      seen.insert(seen.end(), target.begin(), target.end());
      seen.push_back(-1);
      if (++count == stop) {
        state = stopped.state();
        break;
      }
    }
    EXPECT_EQ(state.epoch, 1);
    EXPECT_EQ(state.batch, stop);
    // A new loader with another seed takes over seed and place.
    DataLoader resumed(Numbers(30), {.batch_size = 4, .shuffle = true, .seed = 77});
    resumed.load_state(state);
    EXPECT_EQ(resumed.state(), state);
    const Ints rest = one_epoch(resumed);
    seen.insert(seen.end(), rest.begin(), rest.end());
    EXPECT_EQ(seen, epoch1) << stop;
    EXPECT_EQ(one_epoch(resumed), epoch2);
  }
}

TEST(DataLoader, StateFollowsTheEpoch) {
  DataLoader loader(Numbers(5), {.batch_size = 2, .seed = 1});
  EXPECT_EQ(loader.state().batch, 0);
  int64_t count = 0;
  for ([[maybe_unused]] auto& batch : loader) {
    EXPECT_EQ(loader.state().epoch, 0);
    EXPECT_EQ(loader.state().batch, ++count);
  }
  EXPECT_EQ(loader.state().epoch, 1);
  EXPECT_EQ(loader.state().batch, 0);

  DataLoaderState state = loader.state();
  state.batch_size = 3;
  expect_error<ValueError>([&] { loader.load_state(state); }, {"batches of 3", "batches of 2"});
  state = loader.state();
  state.dataset_size = 6;
  expect_error<ValueError>([&] { loader.load_state(state); }, {"6 samples, this one has 5"});
  state = loader.state();
  state.batch = 4;
  expect_error<ValueError>([&] { loader.load_state(state); }, {"batch 4 is out of range", "3 batches"});
}

TEST(DataLoader, AnOwnSamplerKeepsItsSeed) {
  DataLoader loader(Numbers(30), {.sampler = RandomSampler(30, {.seed = 8}), .seed = 1});
  const Ints epoch0 = visited(loader);
  EXPECT_EQ(epoch0, RandomSampler(30, {.seed = 8}).indices(0));
  DataLoader other(Numbers(30), {.sampler = RandomSampler(30, {.seed = 9}), .seed = 2});
  loader.set_epoch(0);
  other.load_state(loader.state());
  EXPECT_EQ(visited(other), epoch0);
}

TEST(DataLoader, ErrorsComeAtTheirTurnWithTheSample) {
  for (const int64_t workers : {0, 1, 4}) {
    SCOPED_TRACE(workers);
    DataLoader loader(Numbers(40, /*broken=*/21), {.batch_size = 4, .num_workers = workers});
    int batches = 0;
    try {
      for ([[maybe_unused]] auto& batch : loader) ++batches;
      FAIL() << "nothing was thrown";
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "DataLoader: epoch 0, batch 5: sample 21: disk on fire");
      EXPECT_THROW(std::rethrow_if_nested(error), std::runtime_error);
    }
    EXPECT_EQ(batches, 5) << "the batches before come first";
    // The loader goes on with the next epoch.
    EXPECT_EQ(loader.next_epoch(), 1);
    expect_error<DataError>([&] { one_epoch(loader); }, {"epoch 1, batch 5: sample 21"});
  }
}

TEST(DataLoader, ErrorsKeepTheirType) {
  DataLoader loader(Numbers(40, /*broken=*/19),
                    {.sampler = SubsetRandomSampler({1, 20, 3}), .num_workers = 2});
  expect_error<ShapeError>([&] { one_epoch(loader); },
                           {"DataLoader: epoch 0, batch", "sample 20: odd shape"});
  DataLoader collating(Numbers(3), {.collate_fn = [](const std::vector<Example>&) -> Batch {
                         throw std::logic_error("cannot collate");
                       }});
  expect_error<DataError>([&] { one_epoch(collating); }, {"epoch 0, batch 0: cannot collate"});
}

TEST(DataLoader, LeavingEarlyStopsTheWorkers) {
  const Numbers set(100000);
  DataLoader loader(set, {.batch_size = 2, .num_workers = 3, .prefetch_factor = 2});
  for (int round = 0; round < 20; ++round) {
    for (auto& batch : loader) {
      EXPECT_EQ(batch.data.to_vector<int64_t>(), (Ints{0, 1}));
      break;
    }
  }
  // Each round at most: the batch taken, the ring, and one in the hands of each worker.
  EXPECT_LE(*set.calls, 20 * 2 * (1 + 6 + 3));
}

TEST(DataLoader, TwoLoadersAndTwoLoopsAtOnce) {
  const auto set = std::make_shared<Numbers>(20);
  DataLoader a(set, {.batch_size = 3, .num_workers = 2}), b(set, {.batch_size = 4, .num_workers = 2});
  Ints from_a, from_b;
  auto ia = a.begin();
  auto ib = b.begin();
  while (ia != a.end() || ib != b.end()) {
    if (ia != a.end()) {
      for (const int64_t i : (*ia).data.to_vector<int64_t>()) from_a.push_back(i);
      ++ia;
    }
    if (ib != b.end()) {
      for (const int64_t i : (*ib).data.to_vector<int64_t>()) from_b.push_back(i);
      ++ib;
    }
  }
  EXPECT_EQ(from_a, from_b);
  EXPECT_EQ(from_a.size(), 20u);
  int64_t inner_total = 0;
  for ([[maybe_unused]] auto& outer : a) {
    for (auto& inner : a) inner_total += inner.data.size(0);
  }
  EXPECT_EQ(inner_total, 7 * 20);
}

TEST(DataLoader, IteratorOutlivesTheLoader) {
  auto loader =
      std::make_unique<DataLoader>(Numbers(6), DataLoaderOptions{.batch_size = 2, .num_workers = 1});
  auto it = loader->begin();
  loader.reset();
  int batches = 0;
  for (; it != std::default_sentinel; ++it) ++batches;
  EXPECT_EQ(batches, 3);
  EXPECT_THROW(*it, ValueError);
  EXPECT_THROW(++it, ValueError);
}

TEST(DataLoader, CollateFnAndOtherArities) {
  DataLoader loader(
      Numbers(6), {.batch_size = 4, .num_workers = 2, .collate_fn = [](const std::vector<Example>& examples) {
                     return Batch{static_cast<int64_t>(examples.size()), 1, 2};
                   }});
  Ints sizes;
  for (auto& batch : loader) {
    const auto [count, one, two] = batch.unpack<3>();
    sizes.push_back(count.item<int64_t>());
  }
  EXPECT_EQ(sizes, (Ints{4, 2}));
  DataLoader single(TensorDataset(tensor({1, 2, 3})), {.batch_size = 2});
  for (auto& batch : single) EXPECT_EQ(batch.size(), 1u);
}

TEST(DataLoader, BatchSamplerAndDevice) {
  struct Pairs : BatchSampler {
    Pairs() : BatchSampler(SequentialSampler(6), 2, false) {}
    std::vector<Ints> batches(int64_t) const override { return {{5, 0}, {1, 4}, {2, 3}}; }
  };
  DataLoader loader(Numbers(6), {.batch_sampler = std::make_shared<Pairs>(), .device = kCPU});
  EXPECT_EQ(visited(loader), (Ints{5, 0, 1, 4, 2, 3}));
}

TEST(DataLoader, WorkersKnowTheDefaultDevice) {
  struct Made : Dataset {
    int64_t size() const override { return 7; }
    Example get(int64_t i) const override { return {full({2}, i), i}; }
  };
  for (const int64_t workers : {0, 2}) {
    DataLoader made(Made{}, {.batch_size = 2, .num_workers = workers});
    DataLoader rows(TensorDataset(arange(7)), {.batch_size = 2, .num_workers = workers});
    for (auto& [x, y] : made) {
      EXPECT_EQ(x.device(), get_default_device());
      EXPECT_EQ(y.device(), kCPU) << "numbers are collated on the host";
    }
    EXPECT_EQ((*rows.begin()).data.device(), get_default_device());
    EXPECT_EQ(visited(made), (Ints{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}));
    EXPECT_EQ(visited(rows), (Ints{0, 1, 2, 3, 4, 5, 6}));
  }
}

/// Draws from the default generator, as a transform of tensors would.
struct Noise {
  int64_t size() const { return 24; }
  Example get(int64_t index) const { return {rand({3}), index}; }
};

TEST(DataLoader, RandomOperatorsGiveTheSameForAnyNumberOfWorkers) {
  const auto draws = [](int64_t workers) {
    manual_seed(3);
    DataLoader loader(Noise{}, {.batch_size = 4, .num_workers = workers, .seed = 1});
    std::vector<float> all;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (auto& [x, y] : loader) {
        const auto batch = x.to_vector<float>();
        all.insert(all.end(), batch.begin(), batch.end());
        all.push_back(rand({1}).item<float>());  // the consumer's own
      }
    return all;
  };
  const std::vector<float> expected = draws(0);
  EXPECT_EQ(std::set<float>(expected.begin(), expected.end()).size(), expected.size());
  for (const int64_t workers : {1, 2, 5}) EXPECT_EQ(draws(workers), expected) << workers;
}

/// Says in which modes it is called.
struct Modes {
  int64_t size() const { return 2; }
  Example get(int64_t) const {
    const Tensor a = ones({2, 2});
    return {tensor({is_grad_enabled() ? 1 : 0}), tensor({a.matmul(a).dtype() == DType::BFloat16 ? 1 : 0})};
  }
};

TEST(DataLoader, WorkersHaveTheModesOfTheConsumer) {
  for (const int64_t workers : {0, 2}) {
    DataLoader loader(Modes{}, {.num_workers = workers});
    for (auto& [grad, lower] : loader) EXPECT_EQ(grad.item<int>() + 2 * lower.item<int>(), 1) << workers;
    const NoGradGuard no_grad;
    const AutocastGuard autocast({.device_type = get_default_device().type, .dtype = DType::BFloat16});
    for (auto& [grad, lower] : loader) EXPECT_EQ(grad.item<int>() + 2 * lower.item<int>(), 2) << workers;
  }
}

TEST(DataLoader, ErrorsOnAGpuInABatchThatNobodyTakesAreNobodys) {
  if (cuda::is_available()) GTEST_SKIP() << "makes a simulated GPU";
  simulate_gpus({.gpus = 1});
  {
    DataLoader loader(
        Numbers(40),
        {.num_workers = 1, .collate_fn = [](const std::vector<Example>& examples) {
           const Tensor index = examples[0].data.to("cuda:0");
           return Batch{index_select(arange(3, {.device = "cuda:0"}), 0, index.view({1})), index};
         }});
    int taken = 0;
    for (auto& [x, y] : loader) {
      EXPECT_EQ(x.item<int64_t>(), taken);
      if (++taken == 3) break;  // the batches after it have a wrong index
    }
    EXPECT_EQ(sum(add(ones({3}, {.device = "cuda:0"}), 1)).item<float>(), 6);
  }
  simulate_gpus({.gpus = 0});
}

TEST(DataLoader, PartsMakeUpEveryBatch) {
  for (int64_t workers : {0, 2})
    for (int64_t parts : {1, 2, 3, 5}) {
      std::vector<DataLoader> loaders;
      std::vector<DataLoader::Iterator> each;
      for (int64_t rank = 0; rank < parts; ++rank) {
        loaders.emplace_back(
            Numbers(23),
            DataLoaderOptions{
                .batch_size = 10, .shuffle = true, .num_workers = workers, .part = {rank, parts}, .seed = 3});
        each.push_back(loaders.back().begin());
      }
      DataLoader whole(Numbers(23), {.batch_size = 10, .shuffle = true, .seed = 3});
      for (auto& [x, y] : whole) {
        Ints data, random;
        double weights = 0;
        for (auto& part : each) {
          const double weight = part.weight(), size = static_cast<double>(part->data.size(0));
          weights += weight;
          EXPECT_GE(size, 1);
          if (weight > 0) {
            EXPECT_DOUBLE_EQ(weight, size * static_cast<double>(parts) / static_cast<double>(x.size(0)));
            const Ints own = part->data.to_vector<int64_t>(), drawn = part->target.to_vector<int64_t>();
            data.insert(data.end(), own.begin(), own.end());
            random.insert(random.end(), drawn.begin(), drawn.end());
          }
          ++part;
        }
        EXPECT_DOUBLE_EQ(weights, static_cast<double>(parts));
        EXPECT_EQ(data, x.to_vector<int64_t>());
        EXPECT_EQ(random, y.to_vector<int64_t>());
      }
      for (auto& part : each) EXPECT_TRUE(part == std::default_sentinel);
      EXPECT_EQ(loaders.back().state(), whole.state());
    }
}

TEST(DataLoader, WrongOptions) {
  const Numbers set(4);
  const auto make = [&](DataLoaderOptions options) { DataLoader(set, std::move(options)); };
  expect_error<ValueError>([&] { make({.batch_size = 0}); }, {"batch_size must be positive, got 0"});
  expect_error<ValueError>([&] { make({.batch_size = -3}); }, {"batch_size must be positive, got -3"});
  expect_error<ValueError>([&] { make({.num_workers = -1}); }, {"num_workers must be 0 to 256, got -1"});
  expect_error<ValueError>([&] { make({.prefetch_factor = 0}); }, {"prefetch_factor"});
  expect_error<ValueError>([&] { make({.part = {2, 2}}); }, {"there is no part 2 of 2"});
  expect_error<ValueError>([&] { make({.shuffle = true, .sampler = SequentialSampler(4)}); },
                           {"exclude each other"});
  const auto batches = std::make_shared<BatchSampler>(SequentialSampler(4), 2, false);
  expect_error<ValueError>([&] { make({.batch_size = 2, .batch_sampler = batches}); },
                           {"batch_sampler excludes"});
  DataLoader outside(set, {.sampler = SequentialSampler(5)});
  EXPECT_NO_THROW(visited(outside)) << "Numbers takes any index";
  DataLoader rows(TensorDataset(zeros({4})), {.sampler = SequentialSampler(5)});
  EXPECT_THROW(visited(rows), IndexError);
}

}  // namespace
}  // namespace tern::data
