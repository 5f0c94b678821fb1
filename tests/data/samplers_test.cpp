// Orders of visits: what they contain, that they repeat, and that they differ between epochs.
#include "tern/data/samplers.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>

#include "tern/data/random.h"
#include "tests/data/data_testing.h"

namespace tern::data {
namespace {

using testing::expect_error;
using Indices = std::vector<int64_t>;

Indices sorted(Indices list) {
  std::sort(list.begin(), list.end());
  return list;
}

TEST(Random, RepeatsAndDiffers) {
  Random a(1, 2, 3), b(1, 2, 3);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a.bits(), b.bits());
  std::set<uint32_t> first;
  for (const Random& start :
       {Random(1, 2, 3), Random(0, 2, 3), Random(1, 0, 3), Random(1, 2, 0), Random(1, 2, 1ull << 40)}) {
    Random random = start;
    first.insert(random.bits());
  }
  EXPECT_EQ(first.size(), 5u);
}

TEST(Random, Moments) {
  Random random(7, 0, 0);
  double sum = 0, squares = 0, uniform = 0;
  std::vector<int> counts(10);
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.normal(1.0f, 2.0f);
    sum += x;
    squares += x * x;
    uniform += random.uniform(-1, 1);
    ++counts[static_cast<size_t>(random.below(10))];
  }
  EXPECT_NEAR(sum / kCount, 1.0, 0.05);
  EXPECT_NEAR(squares / kCount - 1.0, 4.0, 0.15);
  EXPECT_NEAR(uniform / kCount, 0.0, 0.02);
  for (const int count : counts) EXPECT_NEAR(count, kCount / 10, 200);
}

TEST(SequentialSampler, InOrder) {
  EXPECT_EQ(SequentialSampler(4).indices(3), (Indices{0, 1, 2, 3}));
  EXPECT_EQ(SequentialSampler(0).size(), 0);
  EXPECT_THROW(SequentialSampler(-1), ValueError);
}

TEST(RandomSampler, IsAPermutationThatChangesWithTheEpoch) {
  const RandomSampler sampler(1000, {.seed = 5});
  const Indices epoch0 = sampler.indices(0), epoch1 = sampler.indices(1);
  Indices all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted(epoch0), all);
  EXPECT_EQ(sorted(epoch1), all);
  EXPECT_NE(epoch0, epoch1);
  EXPECT_EQ(RandomSampler(1000, {.seed = 5}).indices(1), epoch1);
  EXPECT_NE(RandomSampler(1000, {.seed = 6}).indices(1), epoch1);
  // Every position is equally likely: the mean of what lands in the first half.
  double mean = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const Indices order = sampler.indices(epoch);
    mean += std::accumulate(order.begin(), order.begin() + 500, 0.0) / 500 / 20;
  }
  EXPECT_NEAR(mean, 499.5, 10);
}

TEST(RandomSampler, NumSamplesAndReplacement) {
  const RandomSampler few(100, {.num_samples = 10, .seed = 1});
  EXPECT_EQ(few.size(), 10);
  const Indices ten = few.indices(0);
  EXPECT_EQ(std::set<int64_t>(ten.begin(), ten.end()).size(), 10u);
  const Indices many = RandomSampler(10, {.num_samples = 25, .seed = 1}).indices(0);
  ASSERT_EQ(many.size(), 25u);
  for (int64_t i = 0; i < 10; ++i)
    EXPECT_THAT(std::count(many.begin(), many.end(), i), ::testing::AnyOf(2, 3)) << i;
  const Indices drawn = RandomSampler(10, {.replacement = true, .num_samples = 10000, .seed = 1}).indices(0);
  ASSERT_EQ(drawn.size(), 10000u);
  for (int64_t i = 0; i < 10; ++i)
    EXPECT_NEAR(static_cast<double>(std::count(drawn.begin(), drawn.end(), i)), 1000, 150);
  EXPECT_TRUE(RandomSampler(0, {.seed = 1}).indices(0).empty());
  expect_error<ValueError>([] { RandomSampler(0, {.num_samples = 3}); }, {"num_samples = 3 from 0"});
  EXPECT_THROW(RandomSampler(-2), ValueError);
}

TEST(RandomSampler, SeedComesFromTheGenerator) {
  Generator generator(42);
  const RandomSampler a(50, {.generator = generator}), b(50, {.generator = generator});
  EXPECT_NE(a.seed(), b.seed()) << "the generator moves on";
  generator.manual_seed(42);
  EXPECT_EQ(RandomSampler(50, {.generator = generator}).indices(0), a.indices(0));
  manual_seed(9);
  const RandomSampler c(50);
  manual_seed(9);
  EXPECT_EQ(RandomSampler(50).seed(), c.seed());
  RandomSampler d(50);
  d.set_seed(a.seed());
  EXPECT_EQ(d.indices(2), a.indices(2));
}

TEST(SubsetRandomSampler, KeepsItsIndices) {
  const Indices list = {3, 1, 4, 1, 5, 9, 2, 6};
  const SubsetRandomSampler sampler(list, /*seed=*/1);
  EXPECT_EQ(sampler.size(), 8);
  EXPECT_EQ(sorted(sampler.indices(0)), sorted(list));
  EXPECT_NE(sampler.indices(0), sampler.indices(1));
}

TEST(WeightedRandomSampler, FollowsTheWeights) {
  const WeightedRandomSampler sampler({1, 0, 3, 6}, 20000, /*replacement=*/true, /*seed=*/3);
  const Indices list = sampler.indices(0);
  const double expected[] = {0.1, 0, 0.3, 0.6};
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(static_cast<double>(std::count(list.begin(), list.end(), i)) / 20000, expected[i], 0.02) << i;
  }
  EXPECT_EQ(std::count(list.begin(), list.end(), 1), 0);
  // Without replacement: the first of two draws follows the weights, and none comes twice.
  int heavy_first = 0;
  const WeightedRandomSampler pair({1, 3, 0}, 2, /*replacement=*/false, /*seed=*/3);
  for (int64_t epoch = 0; epoch < 2000; ++epoch) {
    const Indices order = pair.indices(epoch);
    EXPECT_EQ(sorted(order), (Indices{0, 1}));
    heavy_first += order[0] == 1 ? 1 : 0;
  }
  EXPECT_NEAR(heavy_first / 2000.0, 0.75, 0.04);
}

TEST(WeightedRandomSampler, Errors) {
  const double nan = std::nan("");
  expect_error<ValueError>([] { WeightedRandomSampler({1, -1}, 2); }, {"weight 1 is -1"});
  expect_error<ValueError>([&] { WeightedRandomSampler({nan}, 2); }, {"weight 0 is nan"});
  expect_error<ValueError>([] { WeightedRandomSampler({0, 0}, 2); }, {"sum to 0"});
  expect_error<ValueError>([] { WeightedRandomSampler({}, 2); }, {"0 weights"});
  expect_error<ValueError>([] { WeightedRandomSampler({1}, 0); }, {"num_samples must be positive, got 0"});
  expect_error<ValueError>(
      [] {
        WeightedRandomSampler({1, 0, 2}, 3, false);
      },
      {"3 samples", "only 2 weights"});
}

TEST(Samplers, MoreIndicesThanMemoryHolds) {
  const int64_t huge = int64_t{1} << 60, most = std::numeric_limits<int64_t>::max();
  struct Row {
    std::shared_ptr<Sampler> sampler;
    int64_t size;
    std::string says;
  };
  const Row rows[] = {
      {std::make_shared<SequentialSampler>(most), most, "SequentialSampler: no memory for a list of"},
      {std::make_shared<RandomSampler>(3, RandomSamplerOptions{.num_samples = huge}), huge,
       "RandomSampler: no memory for a list of 1152921504606846976 indices"},
      {std::make_shared<RandomSampler>(most), most, "RandomSampler: no memory"},
      {std::make_shared<WeightedRandomSampler>(std::vector<double>{1, 2}, huge), huge,
       "WeightedRandomSampler: no memory"},
      {std::make_shared<DistributedSampler>(most, DistributedSamplerOptions{.num_replicas = 4}),
       int64_t{1} << 61, "DistributedSampler: no memory"}};
  for (const Row& row : rows) {
    EXPECT_EQ(row.sampler->size(), row.size) << row.says;
    expect_error<OutOfMemoryError>([&] { row.sampler->indices(0); }, {row.says});
  }
}

TEST(DistributedSampler, SizesOfTheParts) {
  struct Row {
    int64_t samples, replicas, size, full;
  };
  for (const Row& row : {Row{0, 4, 0, 0}, {3, 4, 1, 0}, {4, 4, 1, 1}, {5, 4, 2, 1}, {7, 1, 7, 7}}) {
    EXPECT_EQ(DistributedSampler(row.samples, {.num_replicas = row.replicas}).size(), row.size);
    EXPECT_EQ(DistributedSampler(row.samples, {.num_replicas = row.replicas, .drop_last = true}).size(),
              row.full);
  }
}

TEST(BatchSampler, Groups) {
  using Batches = std::vector<Indices>;
  EXPECT_EQ(BatchSampler(SequentialSampler(5), 2, false).batches(0), (Batches{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(BatchSampler(SequentialSampler(5), 2, true).batches(0), (Batches{{0, 1}, {2, 3}}));
  EXPECT_EQ(BatchSampler(SequentialSampler(0), 2, false).batches(0), Batches{});
  struct Case {
    int64_t samples, batch_size, batches, full;
  };
  for (const Case& c : {Case{0, 3, 0, 0}, {1, 3, 1, 0}, {3, 3, 1, 1}, {4, 3, 2, 1}, {9, 1, 9, 9}}) {
    EXPECT_EQ(BatchSampler(SequentialSampler(c.samples), c.batch_size, false).size(), c.batches);
    EXPECT_EQ(BatchSampler(SequentialSampler(c.samples), c.batch_size, true).size(), c.full);
  }
  expect_error<ValueError>([] { BatchSampler(SequentialSampler(5), 0, false); },
                           {"batch_size must be positive, got 0"});
  expect_error<ValueError>([] { BatchSampler(SamplerHandle(), 1, false); }, {"needs a sampler"});
}

}  // namespace
}  // namespace tern::data
