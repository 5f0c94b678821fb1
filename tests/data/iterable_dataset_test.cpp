// Streams and their DataLoader: contents, workers, errors, resuming, adapters. Also run under
// ThreadSanitizer.
#include "tern/data/iterable_dataset.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "tern/core/memory.h"
#include "tern/data/data_loader.h"
#include "tern/ops/creation.h"
#include "tern/ops/random.h"
#include "tests/data/data_testing.h"
#include "tests/data/loader_testing.h"

namespace tern::data {
namespace {

using testing::expect_error;
using testing::Ints;
using testing::one_epoch;
using testing::visited;
using MaybeSample = std::optional<LazyExample>;

Ints count_to(int64_t n) {
  Ints all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// What happened to the streams of a Counter.
struct Calls {
  std::atomic<int> opened = 0, open = 0, read = 0, reading = 0, made = 0;
};

/// One stream of a Counter, which is read by one thread at a time and not after its end.
class CounterStream {
 public:
  CounterStream(std::shared_ptr<Calls> calls, int64_t samples, int64_t broken, const RandomKey& key)
      : calls_(std::move(calls)), samples_(samples), broken_(broken), key_(key) {
    ++calls_->opened;
    ++calls_->open;
  }
  CounterStream(CounterStream&&) = default;
  ~CounterStream() {
    if (calls_) --calls_->open;
  }

  MaybeSample operator()() {
    EXPECT_EQ(calls_->reading++, 0) << "two threads read at once";
    const int64_t i = next_++;
    EXPECT_TRUE(samples_ < 0 || i <= samples_) << "read after its end";
    if (i % 7 == 0) std::this_thread::yield();
    --calls_->reading;
    if (i == samples_) return {};
    ++calls_->read;
    if (i == broken_) throw std::runtime_error("line cut off");
    return [i, key = key_, broken = broken_, calls = calls_]() -> Example {
      ++calls->made;
      if (broken >= 0 && i == broken - 3) throw ShapeError("odd shape");
      // Uneven work, so that workers finish out of order.
      if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      return {i, static_cast<int64_t>(key.random(i).bits())};
    };
  }

 private:
  std::shared_ptr<Calls> calls_;
  int64_t samples_, broken_;
  RandomKey key_;
  int64_t next_ = 0;
};

/// Sample i is [i, a random number]. Without end if `samples` is negative; reading throws at sample `broken`,
/// and making at the third before it.
struct Counter : IterableDataset {
  explicit Counter(int64_t n, std::optional<int64_t> promise = {}, int64_t broken_at = -1)
      : samples(n), promised(promise), broken(broken_at) {}
  SampleStream stream(const RandomKey& key) const override {
    return CounterStream(calls, samples, broken, key);
  }
  std::optional<int64_t> size() const override { return promised; }

  int64_t samples;
  std::optional<int64_t> promised;
  int64_t broken;
  std::shared_ptr<Calls> calls = std::make_shared<Calls>();
};

/// The first tensors of all samples of a stream.
Ints samples_of(const IterableDataset& dataset, const RandomKey& key = {}) {
  Ints all;
  SampleStream stream = dataset.stream(key);
  while (auto sample = stream()) all.push_back((*sample)().data.item<int64_t>());
  return all;
}

TEST(IterableDataset, BatchesByTable) {
  struct Case {
    int64_t size, batch_size;
    bool drop_last;
    Ints sizes;
  };
  const Case cases[] = {
      {0, 4, false, {}},        {1, 4, false, {1}},   {1, 4, true, {}},         {8, 4, false, {4, 4}},
      {9, 4, false, {4, 4, 1}}, {9, 4, true, {4, 4}}, {3, 1, false, {1, 1, 1}}, {3, 100, false, {3}},
  };
  for (const Case& c : cases)
    for (const int64_t workers : {0, 1, 3})
      for (const bool knows_size : {false, true}) {
        const Counter set(c.size, knows_size ? std::optional(c.size) : std::nullopt);
        DataLoader loader(set,
                          {.batch_size = c.batch_size, .num_workers = workers, .drop_last = c.drop_last});
        Ints sizes;
        for (auto& batch : loader) sizes.push_back(batch.data.size(0));
        EXPECT_EQ(sizes, c.sizes) << c.size << "/" << c.batch_size << " with " << workers << " workers";
        if (knows_size) {
          EXPECT_EQ(loader.size(), std::ssize(c.sizes));
          EXPECT_EQ(loader.known_size(), std::ssize(c.sizes));
        }
        EXPECT_EQ(set.calls->open, 0) << "closed at the end";
      }
}

TEST(IterableDataset, SameBatchesForAnyNumberOfWorkers) {
  std::vector<Ints> expected;
  for (const int64_t workers : {0, 1, 2, 4})
    for (const int64_t prefetch : {1, 3}) {
      DataLoader loader(Counter(103),
                        {.batch_size = 7, .num_workers = workers, .prefetch_factor = prefetch, .seed = 11});
      std::vector<Ints> epochs = {one_epoch(loader), one_epoch(loader)};
      if (expected.empty()) expected = epochs;
      EXPECT_EQ(epochs, expected) << workers << " workers, " << prefetch << " ahead";
    }
  EXPECT_NE(expected[0], expected[1]) << "each epoch has augmentation of its own";
  DataLoader loader(Counter(103), {.batch_size = 7, .num_workers = 2});
  EXPECT_EQ(visited(loader), count_to(103));
}

TEST(IterableDataset, SamplesAreMadeSideBySide) {
  std::atomic<int> inside = 0;
  const auto both_inside = [&inside]() -> Example {
    ++inside;
    for (int i = 0; i < 10000 && inside < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {inside.load()};
  };
  DataLoader loader(
      [&](const RandomKey&) {
        return [&, left = 2]() mutable -> MaybeSample {
          return left-- > 0 ? MaybeSample(both_inside) : std::nullopt;
        };
      },
      {.num_workers = 2});
  EXPECT_EQ(visited(loader), (Ints{2, 2}));
}

TEST(IterableDataset, RandomOperatorsGiveTheSameForAnyNumberOfWorkersAndWhenResumed) {
  const auto noise = [](const RandomKey&) {
    return [left = 24]() mutable -> MaybeSample {
      if (left-- == 0) return {};
      return [read = rand({1})] { return Example{read, rand({1})}; };
    };
  };
  const auto draws = [&](int64_t workers, int64_t first) {
    DataLoader loader(noise, {.batch_size = 4, .num_workers = workers, .seed = 1});
    DataLoaderState state = loader.state();
    state.batch = first;
    loader.load_state(state);
    std::vector<float> all;
    for (auto& [x, y] : loader)
      for (const Tensor& tensor : {x, y})
        for (const float value : tensor.to_vector<float>()) all.push_back(value);
    return all;
  };
  const std::vector<float> expected = draws(0, 0);
  EXPECT_EQ(std::set<float>(expected.begin(), expected.end()).size(), 48u) << "reading and making draw apart";
  for (const int64_t workers : {0, 1, 3})
    for (const int64_t first : {0, 2})
      EXPECT_EQ(draws(workers, first), std::vector<float>(expected.begin() + first * 8, expected.end()))
          << workers;
}

TEST(IterableDataset, ASizeIsKnownOrNot) {
  DataLoader unknown(Counter(9), {.batch_size = 4});
  EXPECT_FALSE(unknown.known_size());
  expect_error<TypeError>([&] { unknown.size(); }, {"the number of batches is not known"});
  expect_error<TypeError>([&] { unknown.dataset_size(); }, {"the number of samples is not known"});
  expect_error<TypeError>([&] { unknown.dataset(); }, {"from a stream"});
  DataLoader known(Counter(9, 9), {.batch_size = 4, .drop_last = true});
  EXPECT_EQ(known.size(), 2);
  EXPECT_EQ(known.dataset_size(), 9);
  for (const int64_t workers : {0, 2}) {
    DataLoader shorter(Counter(9, 11), {.batch_size = 4, .num_workers = workers});
    expect_error<DataError>([&] { visited(shorter); },
                            {"batch 2: sample 9", "ends after 9 samples", "size 11"});
    DataLoader longer(Counter(9, 6), {.batch_size = 4, .num_workers = workers});
    expect_error<DataError>([&] { visited(longer); },
                            {"batch 1: sample 6", "goes on after 6 samples", "size 6"});
  }
}

TEST(IterableDataset, ResumesInTheMiddle) {
  const DataLoaderOptions options = {.batch_size = 4, .num_workers = 2, .seed = 4};
  DataLoader whole(ShuffleBuffer(Counter(30), 10), options);
  one_epoch(whole);
  const Ints epoch1 = one_epoch(whole), epoch2 = one_epoch(whole);
  for (const int64_t stop : {1, 3, 8}) {
    DataLoader stopped(ShuffleBuffer(Counter(30), 10), options);
    stopped.set_epoch(1);
    Ints seen;
    DataLoaderState state;
    for (auto& batch : stopped) {
      for (const Tensor& tensor : batch.tensors())
        for (const int64_t value : tensor.to_vector<int64_t>()) seen.push_back(value);
      seen.push_back(-1);
      state = stopped.state();
      if (state.batch == stop) break;
    }
    EXPECT_EQ(state, (DataLoaderState{.seed = 4, .epoch = 1, .batch = stop, .batch_size = 4}));
    const Counter set(30);
    DataLoader resumed(ShuffleBuffer(set, 10), {.batch_size = 4, .seed = 77});
    resumed.load_state(state);
    const Ints rest = one_epoch(resumed);
    seen.insert(seen.end(), rest.begin(), rest.end());
    EXPECT_EQ(seen, epoch1) << stop;
    EXPECT_EQ(set.calls->read, 30);
    EXPECT_EQ(set.calls->made, std::max<int64_t>(0, 30 - stop * 4)) << "what had been handed out is not made";
    EXPECT_EQ(one_epoch(resumed), epoch2);
  }
  DataLoader shorter(Counter(10), options);
  DataLoaderState state = shorter.state();
  state.batch = 5;
  shorter.load_state(state);
  expect_error<DataError>([&] { visited(shorter); }, {"epoch 0 cannot go on at batch 5: it has 3 batches"});
  state.batch_size = 3;
  expect_error<ValueError>([&] { shorter.load_state(state); }, {"batches of 3"});
}

TEST(IterableDataset, ErrorsComeAtTheirTurnWithTheSample) {
  for (const int64_t workers : {0, 1, 4}) {
    SCOPED_TRACE(workers);
    const Counter set(40, {}, /*broken_at=*/26);
    DataLoader loader(set, {.batch_size = 4, .num_workers = workers});
    int batches = 0;
    expect_error<ShapeError>(
        [&] {
          for ([[maybe_unused]] auto& batch : loader) ++batches;
        },
        {"DataLoader: epoch 0, batch 5: sample 23: odd shape"});
    EXPECT_EQ(batches, 5) << "the batches before come first";

    DataLoader reading(ShuffleBuffer(Counter(40, {}, /*broken_at=*/2), 1),
                       {.batch_size = 1, .num_workers = workers});
    batches = 0;
    try {
      for ([[maybe_unused]] auto& batch : reading) ++batches;
      FAIL() << "nothing was thrown";
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "DataLoader: epoch 0, batch 2: sample 2: line cut off");
      EXPECT_THROW(std::rethrow_if_nested(error), std::runtime_error);
    }
    EXPECT_EQ(batches, 2);
    expect_error<DataError>([&] { visited(reading); }, {"epoch 1, batch 2: sample 2"});
    EXPECT_EQ(set.calls->open, 0);
  }
  DataLoader closed([](const RandomKey&) -> SampleStream { throw IoError("no such file"); });
  expect_error<IoError>([&] { closed.begin(); }, {"DataLoader: epoch 0: no such file"});
}

TEST(IterableDataset, EndlessStreamsAreLeftEarly) {
  const Counter set(-1);
  DataLoader loader(set, {.batch_size = 2, .num_workers = 3, .prefetch_factor = 2});
  for (int round = 0; round < 10; ++round) {
    for (auto& batch : loader) {
      EXPECT_EQ(batch.data.to_vector<int64_t>(), (Ints{0, 1}));
      EXPECT_EQ(set.calls->open, 1);
      break;
    }
    EXPECT_EQ(set.calls->open, 0);
  }
  EXPECT_EQ(set.calls->opened, 10);
  // Each round at most: the batch taken and those that workers may be ahead.
  EXPECT_LE(set.calls->read, 10 * 2 * (1 + 6));

  DataLoader ones([](const RandomKey&) { return [] { return Example{1, 2}; }; }, {.batch_size = 3});
  EXPECT_EQ(ones.begin()->data.to_vector<int64_t>(), (Ints{1, 1, 1}));
}

TEST(IterableDataset, PartsMakeUpEveryBatch) {
  for (const int64_t workers : {0, 2})
    for (const int64_t parts : {1, 2, 3, 5}) {
      std::vector<DataLoader> loaders;
      std::vector<DataLoader::Iterator> each;
      for (int64_t rank = 0; rank < parts; ++rank) {
        loaders.emplace_back(
            Counter(23),
            DataLoaderOptions{.batch_size = 10, .num_workers = workers, .part = {rank, parts}, .seed = 3});
        each.push_back(loaders.back().begin());
      }
      DataLoader whole(Counter(23), {.batch_size = 10, .seed = 3});
      for (auto& [x, y] : whole) {
        Ints data, random;
        double weights = 0;
        for (auto& part : each) {
          weights += part.weight();
          if (part.weight() > 0) {
            EXPECT_DOUBLE_EQ(part.weight(), static_cast<double>(part->data.size(0) * parts) /
                                                static_cast<double>(x.size(0)));
            for (const int64_t value : part->data.to_vector<int64_t>()) data.push_back(value);
            for (const int64_t value : part->target.to_vector<int64_t>()) random.push_back(value);
          } else {
            EXPECT_EQ(part->data.size(0), 1);
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

TEST(IterableDataset, AnyTypeWithAStream) {
  struct Own {
    int64_t first;
    SampleStream stream(const RandomKey&) const {
      return [i = std::make_unique<int64_t>(first)]() -> std::optional<Example> {
        if (*i == 5) return {};
        return Example{(*i)++};
      };
    }
    int64_t size() const { return 5 - first; }
  };
  const Own own{2};
  const auto shared = std::make_shared<Own>(Own{3});
  DataLoader by_value(own), by_pointer(shared), by_reference(std::ref(own));
  EXPECT_EQ(visited(by_value), (Ints{2, 3, 4}));
  EXPECT_EQ(by_value.size(), 3);
  EXPECT_EQ(visited(by_pointer), (Ints{3, 4}));
  EXPECT_EQ(visited(by_reference), (Ints{2, 3, 4}));
  expect_error<ValueError>([] { DataLoader(std::shared_ptr<Own>()); }, {"null pointer"});
  static_assert(!IterableLike<Dataset> && !IterableLike<int> && !DatasetLike<Own>);
}

TEST(IterableDataset, CollateFnGetsTheMadeSamples) {
  DataLoader loader(Counter(6),
                    {.batch_size = 4, .num_workers = 2, .collate_fn = [](const std::vector<Example>& all) {
                       return Batch{all.back().data.item<int64_t>(), static_cast<int64_t>(all.size())};
                     }});
  EXPECT_EQ(one_epoch(loader), (Ints{3, 4, -1, 5, 2, -1}));
}

TEST(IterableDataset, WhatNeedsIndicesIsRefused) {
  const auto make = [](DataLoaderOptions options) { DataLoader(Counter(4), std::move(options)); };
  expect_error<ValueError>([&] { make({.shuffle = true}); }, {"no indices to shuffle", "ShuffleBuffer"});
  expect_error<ValueError>([&] { make({.sampler = SequentialSampler(4)}); },
                           {"sampler", "a stream has none"});
  const auto batches = std::make_shared<BatchSampler>(SequentialSampler(4), 2, false);
  expect_error<ValueError>([&] { make({.batch_sampler = batches}); }, {"batch_sampler", "a stream has none"});
  expect_error<ValueError>([&] { make({.batch_size = 0}); }, {"batch_size must be positive"});
}

TEST(ChainDataset, StreamsOneAfterTheOther) {
  const Counter first(3, 3), none(0, 0), last(2, 2);
  const ChainDataset chain({first, none, last});
  EXPECT_EQ(samples_of(chain), (Ints{0, 1, 2, 0, 1}));
  EXPECT_EQ(chain.size(), 5);
  EXPECT_EQ(ChainDataset({first, Counter(2)}).size(), std::nullopt);
  {
    SampleStream stream = chain.stream({});
    EXPECT_TRUE(stream());
    EXPECT_EQ(first.calls->open, 1);
    EXPECT_EQ(last.calls->opened, 1) << "only before";
  }
  DataLoader loader(ChainDataset({first, first}), {.batch_size = 6, .num_workers = 2});
  const Ints random = loader.begin()->target.to_vector<int64_t>();
  EXPECT_NE(Ints(random.begin(), random.begin() + 3), Ints(random.begin() + 3, random.end()))
      << "parts have random numbers of their own";
  EXPECT_THROW(ChainDataset({}), ValueError);
}

TEST(ShuffleBuffer, OrderWithinReach) {
  EXPECT_EQ(samples_of(ShuffleBuffer(Counter(20), 1)), count_to(20));
  EXPECT_EQ(samples_of(ShuffleBuffer(Counter(0), 4)), Ints());
  const ShuffleBuffer shuffled(Counter(100, 100), 10);
  EXPECT_EQ(shuffled.size(), 100);
  const Ints order = samples_of(shuffled, {1, 0});
  for (int64_t i = 0; i < 100; ++i) EXPECT_LT(order[static_cast<size_t>(i)], i + 10);
  EXPECT_EQ(samples_of(shuffled, {1, 0}), order);
  EXPECT_NE(samples_of(shuffled, {1, 1}), order);
  EXPECT_NE(samples_of(shuffled, {2, 0}), order);
  Ints sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, count_to(100));
  EXPECT_THROW(ShuffleBuffer(Counter(1), 0), ValueError);
}

TEST(ShuffleBuffer, AllOrdersAreAlike) {
  std::map<Ints, int> orders;
  for (int64_t epoch = 0; epoch < 1200; ++epoch)
    ++orders[samples_of(ShuffleBuffer(Counter(3), 8), {1, epoch})];
  EXPECT_EQ(orders.size(), 6u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 200, 60);
}

TEST(ShuffleBuffer, TensorsOfADeviceWaitInIt) {
  const auto made = [](const RandomKey&) {
    return [i = int64_t{0}]() mutable -> MaybeSample {
      if (i == 200) return {};
      const Tensor x = full({64}, i, {.dtype = int64});  // on the default device
      return Example{x, i++};
    };
  };
  DataLoader loader(ShuffleBuffer(made, 20), {.batch_size = 5, .num_workers = 3});
  Ints seen;
  for (auto& [x, y] : loader) {
    EXPECT_EQ(x.device(), get_default_device());
    EXPECT_EQ(x.select(1, 0).to_vector<int64_t>(), y.to_vector<int64_t>());
    EXPECT_EQ(x.select(1, 63).to_vector<int64_t>(), y.to_vector<int64_t>());
    for (const int64_t i : y.to_vector<int64_t>()) seen.push_back(i);
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, count_to(200));
}

}  // namespace
}  // namespace tern::data
