// Examples, collation, and the datasets made of tensors or of other datasets.
#include "tern/data/dataset.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "tern/ops/creation.h"
#include "tests/data/data_testing.h"

namespace tern::data {
namespace {

using testing::expect_error;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

Shape shape(std::initializer_list<int64_t> sizes) { return Shape(sizes); }

/// Sample i is [i, 10 i]; not derived from Dataset.
struct Tens {
  int64_t count;
  int64_t size() const { return count; }
  std::pair<int64_t, double> get(int64_t i) const { return {i, 10.0 * static_cast<double>(i)}; }
};

/// Throws for one sample.
struct Broken : Dataset {
  int64_t size() const override { return 10; }
  Example get(int64_t i) const override {
    if (i == 7) throw std::runtime_error("disk on fire");
    if (i == 8) throw IndexError("no such row");
    return Tensor(tensor({1.0f}));
  }
};

TEST(Example, NumbersBecomeTensors) {
  const Example example{1, 2.5, true};
  EXPECT_EQ(example.size(), 3u);
  EXPECT_EQ(example.data.dtype(), DType::Int64);
  EXPECT_EQ(example.target.dtype(), DType::Float64);
  EXPECT_EQ(example[2].dtype(), DType::Bool);
  EXPECT_EQ(example.data.dim(), 0);
  EXPECT_EQ(*example.data.data<int64_t>(), 1);
  EXPECT_EQ(*example.target.data<double>(), 2.5);
}

TEST(Example, TakenApart) {
  Example two{1, 2};
  auto& [x, y] = two;
  EXPECT_TRUE(x.is_same(two.data));
  EXPECT_TRUE(y.is_same(two.target));
  const Example three = std::make_tuple(1, 2, 3);
  const auto [a, b, c] = three.unpack<3>();
  EXPECT_EQ(*c.data<int64_t>(), 3);
  EXPECT_EQ(three.tensors().size(), 3u);
  expect_error<ValueError>(
      [&] {
        auto& [p, q] = three;
        static_cast<void>(p), static_cast<void>(q);
      },
      {"3 tensors cannot be taken apart into 2", "unpack<3>()"});
  expect_error<ValueError>([&] { two.unpack<4>(); }, {"2 tensors", "into 4"});
  expect_error<IndexError>([&] { two[2]; }, {"tensor 2 of an example that has 2"});
  expect_error<ValueError>([] { Example{Tensor()}; }, {"tensor 0", "undefined"});
  expect_error<ValueError>([] { Example{std::vector<Tensor>()}; }, {"at least one"});
}

TEST(DefaultCollate, Stacks) {
  const Batch batch = default_collate({{tensor({1.0f, 2.0f}), 3, 0.5}, {tensor({4.0f, 5.0f}), 6, 1.5}});
  ASSERT_EQ(batch.size(), 3u);
  EXPECT_EQ(batch.data.shape(), shape({2, 2}));
  EXPECT_EQ(batch.data.dtype(), DType::Float32);
  EXPECT_EQ(batch.data.to_vector<float>(), (Floats{1, 2, 4, 5}));
  EXPECT_EQ(batch.target.shape(), shape({2}));
  EXPECT_EQ(batch.target.dtype(), DType::Int64);
  EXPECT_EQ(batch.target.to_vector<int64_t>(), (Ints{3, 6}));
  EXPECT_EQ(batch[2].dtype(), DType::Float64);
}

TEST(DefaultCollate, ViewsAndGradients) {
  const Tensor matrix = tensor({{1.0f, 2.0f}, {3.0f, 4.0f}});
  const Batch columns = default_collate({{matrix.select(1, 0)}, {matrix.select(1, 1)}});
  EXPECT_EQ(columns.data.to_vector<float>(), (Floats{1, 3, 2, 4}));
  const Tensor leaf = tensor({1.0f, 2.0f}, {.requires_grad = true});
  EXPECT_TRUE(default_collate({{leaf}, {leaf}}).data.requires_grad());
  EXPECT_EQ(default_collate({{zeros({0, 3})}, {zeros({0, 3})}}).data.shape(), shape({2, 0, 3}));
}

TEST(DefaultCollate, Errors) {
  const Tensor a = zeros({2, 3});
  expect_error<ValueError>([] { default_collate({}); }, {"default_collate", "empty"});
  expect_error<DataError>(
      [&] {
        default_collate({{a, 1}, {a, 1}, {zeros({2, 4}), 1}});
      },
      {"tensors 0", "differ in shape", "[2, 3] at entry 0", "[2, 4] at entry 2", "collate_fn"});
  expect_error<DataError>(
      [&] {
        default_collate({{a, 1}, {a, 1.5}});
      },
      {"tensors 1", "differ in dtype", "int64 at entry 0", "float64 at entry 1"});
  expect_error<DataError>(
      [&] {
        default_collate({{a, 1}, {a}});
      },
      {"number of tensors", "2 at entry 0 and 1 at entry 1"});
}

/// Sample i is a dict.
struct Named {
  int64_t size() const { return 5; }
  Example get(int64_t i) const {
    if (i % 2 == 0) return {{"x", full({2}, static_cast<double>(i))}, {"label", i}, {"weight", 0.5}};
    return {{"weight", 0.5}, {"label", i}, {"x", full({2}, static_cast<double>(i))}};
  }
};

TEST(Example, NamedTensors) {
  Example example{{"x", tensor({1.0f})}, {"label", 3}};
  EXPECT_EQ(example.names, (std::vector<std::string>{"x", "label"}));
  EXPECT_TRUE(example["x"].is_same(example.data));
  EXPECT_EQ(example["label"].item<int64_t>(), 3);
  EXPECT_TRUE(example.contains("x"));
  EXPECT_FALSE(example.contains("y"));
  expect_error<IndexError>([&] { example["y"]; }, {"the name 'y'", "'x', 'label'"});
  expect_error<IndexError>([] { Example(1, 2)["y"]; }, {"names are none"});
  expect_error<ValueError>([] { Example({{"x", 1}, {"x", 2}}); }, {"the name 'x'"});

  for (const Batch& batch : {default_collate({Named().get(0), Named().get(1)}),
                             Subset(DatasetHandle(Named()), {0, 1}).get_batch({0, 1})}) {
    EXPECT_EQ(batch.names, (std::vector<std::string>{"x", "label", "weight"}));
    EXPECT_EQ(batch["x"].to_vector<float>(), (Floats{0, 0, 1, 1}));
    EXPECT_EQ(batch["label"].to_vector<int64_t>(), (Ints{0, 1}));
    EXPECT_EQ(batch["weight"].dtype(), DType::Float64);
  }
  expect_error<DataError>(
      [] {
        default_collate({{{"x", 1}}, {{"y", 1}}});
      },
      {"names", "'x' at entry 0", "'y'"});
  expect_error<DataError>([] { default_collate({{{"x", 1}}, Example(1)}); }, {"names", "none at entry 1"});
  expect_error<DataError>([] { default_collate({{{"x", 1}}, {{"x", 1.5}}}); }, {"tensors 'x'", "dtype"});
}

TEST(TensorDataset, RowsAndBatches) {
  const TensorDataset set(tensor({{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}}), tensor({7, 8, 9}));
  EXPECT_EQ(set.size(), 3);
  const auto [x, y] = set.get(1);
  EXPECT_EQ(x.to_vector<float>(), (Floats{3, 4}));
  EXPECT_EQ(y.item<int64_t>(), 8);
  const Batch batch = set.get_batch({2, 0, 2});
  EXPECT_EQ(batch.data.shape(), shape({3, 2}));
  EXPECT_EQ(batch.data.to_vector<float>(), (Floats{5, 6, 1, 2, 5, 6}));
  EXPECT_EQ(batch.target.to_vector<int64_t>(), (Ints{9, 7, 9}));
  EXPECT_EQ(TensorDataset(tensor({1, 2})).get(0).size(), 1u);
}

TEST(TensorDataset, ViewsAndGradients) {
  const Tensor source = tensor({{1.0f, 2.0f}, {3.0f, 4.0f}});
  EXPECT_EQ(TensorDataset(source.t()).get_batch({1, 0}).data.to_vector<float>(), (Floats{2, 4, 1, 3}));
  const Tensor leaf = tensor({1.0f, 2.0f}, {.requires_grad = true});
  EXPECT_TRUE(TensorDataset(leaf).get_batch({1}).data.requires_grad());
  EXPECT_EQ(TensorDataset(zeros({3, 0})).get_batch({0, 2}).data.shape(), shape({2, 0}));
}

TEST(TensorDataset, Errors) {
  expect_error<ValueError>([] { TensorDataset(std::vector<Tensor>()); }, {"at least one tensor"});
  expect_error<ShapeError>([] { TensorDataset(tensor(1.0)); }, {"tensor 0 has no dimensions"});
  expect_error<ShapeError>(
      [] {
        TensorDataset(zeros({3, 2}), zeros({4}));
      },
      {"size mismatch", "tensor 0 is [3, 2]", "tensor 1 is [4]"});
  const TensorDataset set(zeros({3}));
  for (const int64_t index : {-1, 3}) {
    expect_error<IndexError>([&] { set.get(index); },
                             {"TensorDataset: index " + std::to_string(index), "3 samples"});
    expect_error<IndexError>([&] { set.get_batch({0, index}); }, {"out of range"});
  }
}

TEST(Dataset, AnyTypeWithSizeAndGet) {
  const DatasetHandle handle = Tens{4};
  EXPECT_EQ(handle->size(), 4);
  const Batch batch = handle->get_batch({3, 1});
  EXPECT_EQ(batch.data.to_vector<int64_t>(), (Ints{3, 1}));
  EXPECT_EQ(batch.target.to_vector<double>(), (std::vector<double>{30, 10}));
}

TEST(Dataset, HandlesShareOrCopy) {
  auto shared = std::make_shared<Tens>(Tens{4});
  const DatasetHandle sharing = shared;
  Tens local{4};
  const DatasetHandle borrowing = std::ref(local), copying = local;
  shared->count = local.count = 9;
  EXPECT_EQ(sharing->size(), 9);
  EXPECT_EQ(borrowing->size(), 9);
  EXPECT_EQ(copying->size(), 4);
  const std::shared_ptr<Dataset> abstract = std::make_shared<Broken>();
  EXPECT_EQ(DatasetHandle(abstract)->size(), 10);
  expect_error<ValueError>([] { DatasetHandle(std::shared_ptr<Dataset>()); }, {"null"});
}

TEST(Dataset, ErrorsCarryTheSample) {
  const Broken set;
  expect_error<IndexError>([&] { set.get_batch({1, 8}); }, {"sample 8: no such row"});
  try {
    set.get_batch({7});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "sample 7: disk on fire");
    EXPECT_THROW(std::rethrow_if_nested(error), std::runtime_error);
  }
  EXPECT_THROW(set.get_batch({}), ValueError);
}

TEST(Subset, MapsIndices) {
  const Subset set(Tens{10}, {7, 3, 7});
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set.get(1).data.item<int64_t>(), 3);
  EXPECT_EQ(set.get_batch({0, 1, 2}).data.to_vector<int64_t>(), (Ints{7, 3, 7}));
  EXPECT_EQ(Subset(set, {1}).get(0).data.item<int64_t>(), 3);
  expect_error<IndexError>([&] { set.get(3); }, {"Subset: index 3", "3 samples"});
  expect_error<IndexError>(
      [] {
        Subset(Tens{10}, {1, 10});
      },
      {"index 10 (number 1 of the list)", "10 samples"});
  expect_error<IndexError>([] { Subset(Tens{10}, {-1}); }, {"index -1"});
}

TEST(ConcatDataset, OneAfterTheOther) {
  const ConcatDataset set({Tens{2}, Tens{0}, Tens{3}});
  EXPECT_EQ(set.size(), 5);
  Ints all;
  for (int64_t i = 0; i < set.size(); ++i) all.push_back(set.get(i).data.item<int64_t>());
  EXPECT_EQ(all, (Ints{0, 1, 0, 1, 2}));
  EXPECT_EQ(set.get_batch({4, 3}).data.to_vector<int64_t>(), (Ints{2, 1}));
  EXPECT_EQ(set.get_batch({4, 0, 3}).data.to_vector<int64_t>(), (Ints{2, 0, 1}));
  EXPECT_THROW(set.get(5), IndexError);
  EXPECT_THROW(set.get_batch({}), ValueError);
  EXPECT_THROW(ConcatDataset({}), ValueError);
}

TEST(RandomSplit, PartsCoverTheDatasetOnce) {
  Generator generator(3);
  const std::vector<Subset> parts = random_split(Tens{10}, {7, 3}, generator);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].size(), 7);
  std::set<int64_t> all;
  for (const Subset& part : parts) all.insert(part.indices().begin(), part.indices().end());
  EXPECT_EQ(all.size(), 10u);
  generator.manual_seed(3);
  EXPECT_EQ(random_split(Tens{10}, {7, 3}, generator)[1].indices(), parts[1].indices());
  EXPECT_NE(random_split(Tens{10}, {7, 3}, generator)[1].indices(), parts[1].indices());
}

TEST(RandomSplit, Fractions) {
  struct Case {
    int64_t size;
    std::vector<SplitLength> fractions;
    Ints expected;
  };
  // As torch.utils.data.random_split.
  const Case cases[] = {{10, {0.7, 0.3}, {7, 3}},          {10, {0.3333333, 0.3333333, 0.3333334}, {4, 3, 3}},
                        {3, {0.5, 0.5}, {2, 1}},           {0, {0.5, 0.5}, {0, 0}},
                        {5, {0.25, 0.25, 0.5}, {2, 1, 2}}, {5, {1.0}, {5}}};
  for (const Case& c : cases) {
    Ints sizes;
    for (const Subset& part : random_split(Tens{c.size}, c.fractions)) sizes.push_back(part.size());
    EXPECT_EQ(sizes, c.expected);
  }
}

TEST(RandomSplit, Errors) {
  expect_error<ValueError>([] { random_split(Tens{10}, {7, 4}); }, {"sum to 11", "10 samples"});
  expect_error<ValueError>([] { random_split(Tens{10}, {0.7, 0.4}); }, {"fractions sum to 1.1"});
  expect_error<ValueError>(
      [] {
        random_split(Tens{5000000}, {0.5000002, 0.5000002});
      },
      {"fractions sum to 1.0000004"});
  expect_error<ValueError>([] { random_split(Tens{10}, {7, 0.3}); }, {"all counts", "all fractions"});
  expect_error<ValueError>([] { random_split(Tens{10}, {11, -1}); }, {"negative, got -1"});
  expect_error<ValueError>([] { random_split(Tens{10}, {}); }, {"empty"});
}

}  // namespace
}  // namespace tern::data
