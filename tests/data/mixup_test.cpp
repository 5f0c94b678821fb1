// MixUp and CutMix: mixed batches and their labels, on the default device.
#include "tern/data/mixup.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tern/core/generator.h"
#include "tern/data/data_loader.h"
#include "tern/data/dataset.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tests/data/data_testing.h"

namespace tern::data {
namespace {

using testing::expect_error;
using Floats = std::vector<float>;

/// Three pictures [2, 4, 5] of 1, 10 and 100.
Tensor three_pictures() {
  return (tensor(Floats{1, 10, 100}).view({3, 1, 1, 1}) * ones({1, 2, 4, 5})).contiguous();
}

Tensor three_labels() { return tensor(std::vector<int64_t>{2, 0, 1}); }

TEST(MixUp, EachWithTheOneBefore) {
  std::vector<double> shares;
  for (uint64_t sample = 0; sample < 400; ++sample) {
    Random random(1, 0, sample);
    const auto [x, y] = MixUp({.num_classes = 4})(three_pictures(), three_labels(), random);
    EXPECT_EQ(x.shape(), (Shape{3, 2, 4, 5}));
    EXPECT_EQ(y.shape(), (Shape{3, 4}));
    const Floats labels = y.to_vector<float>(), pictures = x.to_vector<float>();
    const float lam = labels[2];
    const Floats wanted = {0, 1 - lam, lam, 0, lam, 0, 1 - lam, 0, 1 - lam, lam, 0, 0};
    const Floats values = {1, 10, 100};
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(labels[i], wanted[i], 1e-6);
    for (size_t i = 0; i < pictures.size(); ++i)
      EXPECT_NEAR(pictures[i], lam * values[i / 40] + (1 - lam) * values[(i / 40 + 2) % 3], 1e-4);
    shares.push_back(static_cast<double>(lam));
  }
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0) / 400, 0.5, 0.05);
  EXPECT_NEAR(
      static_cast<double>(std::count_if(shares.begin(), shares.end(), [](double x) { return x < 0.25; })),
      100, 30)
      << "Beta(1, 1) is uniform";
}

// The variance of Beta(a, a) is 1 / (8 a + 4).
TEST(MixUp, SharesAreOfTheBetaDistribution) {
  for (const double alpha : {1e-4, 0.2, 1.0, 4.0}) {
    double sum = 0, squares = 0;
    for (uint64_t sample = 0; sample < 1000; ++sample) {
      Random random(2, 0, sample);
      const Tensor labels =
          MixUp({.alpha = alpha, .num_classes = 3})(three_pictures(), three_labels(), random).target;
      const double lam = static_cast<double>(labels.to_vector<float>()[2]);
      sum += lam;
      squares += lam * lam;
    }
    const double mean = sum / 1000, variance = 1 / (8 * alpha + 4);
    EXPECT_NEAR(mean, 0.5, 0.05) << alpha;
    EXPECT_NEAR(squares / 1000 - mean * mean, variance, variance / 8) << alpha;
  }
}

TEST(CutMix, OneRectangleForAll) {
  double inside = 0;
  for (uint64_t sample = 0; sample < 300; ++sample) {
    Random random(1, 0, sample);
    const auto [x, y] = CutMix({.num_classes = 3})(three_pictures().to(uint8), three_labels(), random);
    EXPECT_EQ(x.dtype(), DType::UInt8);
    const auto bytes = x.to_vector<uint8_t>();
    const Floats labels = y.to_vector<float>();
    int64_t left = 5, right = -1, top = 4, bottom = -1, count = 0;
    for (int64_t i = 0; i < 20; ++i) {
      const bool from_other = bytes[static_cast<size_t>(i)] == 100;
      for (const int64_t start : {20, 40, 60, 80, 100})
        EXPECT_EQ(bytes[static_cast<size_t>(start + i)], from_other ? (start < 40   ? 100
                                                                       : start < 80 ? 1
                                                                                    : 10)
                                                                    : (start < 40   ? 1
                                                                       : start < 80 ? 10
                                                                                    : 100));
      if (!from_other) continue;
      left = std::min(left, i % 5);
      right = std::max(right, i % 5);
      top = std::min(top, i / 5);
      bottom = std::max(bottom, i / 5);
      ++count;
    }
    EXPECT_EQ(count, count == 0 ? 0 : (right - left + 1) * (bottom - top + 1));
    const float lam = 1 - static_cast<float>(count) / 20;
    const Floats wanted = {0, 1 - lam, lam, lam, 0, 1 - lam, 1 - lam, lam, 0};
    for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(labels[i], wanted[i], 1e-6);
    inside += static_cast<double>(count);
  }
  EXPECT_GT(inside, 300.0);
}

TEST(MixUp, ProbabilitiesAsLabels) {
  Random random(1, 0, 0);
  const Tensor soft = tensor({{0.5f, 0.5f}, {1.0f, 0.0f}, {0.25f, 0.75f}});
  const Tensor mixed = MixUp({})(three_pictures(), soft, random).target;
  EXPECT_EQ(mixed.shape(), (Shape{3, 2}));
  for (const float sum : mixed.sum(1).to_vector<float>()) EXPECT_NEAR(sum, 1, 1e-6);
}

TEST(MixUp, InALoader) {
  const TensorDataset set(three_pictures(), three_labels());
  const auto first = [&](int64_t workers) {
    DataLoader loader(
        set, {.batch_size = 3,
              .num_workers = workers,
              .collate_fn =
                  [](const auto& examples) {
                    return CutMix({.num_classes = 3})(MixUp({.num_classes = 3})(default_collate(examples)));
                  },
              .seed = 5});
    return loader.begin()->data.to_vector<float>();
  };
  EXPECT_EQ(first(0), first(2));
  EXPECT_NE(first(0), three_pictures().to_vector<float>());
  manual_seed(3);
  const Batch named =
      MixUp({.num_classes = 3})(Batch{{"x", three_pictures()}, {"y", three_labels()}, {"id", 7}});
  EXPECT_EQ(named["y"].shape(), (Shape{3, 3}));
  EXPECT_EQ(named["id"].item<int64_t>(), 7);
}

TEST(MixUp, Errors) {
  Random random(1, 0, 0);
  const auto mix = [&](const MixOptions& options, const Tensor& x, const Tensor& y) {
    MixUp{options}(x, y, random);
  };
  const Tensor x = three_pictures(), y = three_labels();
  expect_error<ValueError>([] { MixUp({.alpha = 0}); }, {"MixUp: alpha must be positive", "got 0"});
  expect_error<ValueError>([] { CutMix({.num_classes = 0}); }, {"CutMix: num_classes", "got 0"});
  expect_error<ShapeError>([&] { mix({.num_classes = 3}, x[0], y); },
                           {"MixUp: expects pictures", "[2, 4, 5]"});
  expect_error<ShapeError>([&] { mix({.num_classes = 3}, x, zeros({2}, {.dtype = int64})); },
                           {"labels of 3 pictures must be [3] or [3, classes], got [2]"});
  expect_error<ValueError>([&] { mix({}, x, y); }, {"class numbers as labels need num_classes"});
  expect_error<ValueError>([&] { mix({.num_classes = 2}, x, y); }, {"one_hot"});
  expect_error<ValueError>(
      [&] {
        mix({.num_classes = 2}, x, zeros({3, 5}));
      },
      {"probabilities of 5 classes, num_classes is 2"});
  expect_error<DTypeError>([&] { mix({.num_classes = 3}, x, y.to(float32)); }, {"int64, got float32"});
  expect_error<DTypeError>([&] { mix({.num_classes = 3}, x.to(uint8), y); },
                           {"MixUp: expects pictures of floats"});
  expect_error<ShapeError>(
      [&] {
        CutMix({.num_classes = 3})(zeros({3, 1, 0, 2}), y, random);
      },
      {"CutMix: the pictures are empty"});
  expect_error<ValueError>([&] { MixUp({.num_classes = 3})(Batch(x)); }, {"the batch has 1 tensor,"});
}

}  // namespace
}  // namespace tern::data
