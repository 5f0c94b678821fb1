// Random numbers: known values, independence from threads and layout, distributions, choices, dropout.
#include "tern/ops/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/base/parallel.h"
#include "tern/kernels/random.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/ops/special.h"
#include "tests/ops/reduce_testing.h"
#include "tests/support/emulated.h"
#include "tests/support/expect_error.h"

namespace tern {
namespace {

using testing::as;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::is_emulated;

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

Moments moments(const Tensor& x) {
  Moments m;
  std::vector<double> values = x.to_vector<double>();
  double n = static_cast<double>(values.size());
  m.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  for (double v : values) {
    double d = v - m.mean;
    m.variance += d * d / n;
    m.skewness += d * d * d / n;
    m.kurtosis += d * d * d * d / n;
  }
  m.skewness /= std::pow(m.variance, 1.5);
  m.kurtosis /= m.variance * m.variance;
  return m;
}

// The reference: one number at a time by the definitions in kernels/random.h.
double reference(Distribution distribution, DType dtype, Generator::State state, int64_t i) {
  int64_t k = numbers_per_counter(distribution, dtype);
  auto w = philox(state.seed, state.position + static_cast<uint64_t>(i / k));
  size_t part = static_cast<size_t>(i % k);
  if (distribution == Distribution::Uniform)
    return dtype == DType::Float64 ? uniform_double(w[2 * part], w[2 * part + 1]) : uniform_float(w[part]);
  if (distribution == Distribution::Integer)
    return static_cast<double>(random::below(uint64_t{w[2 * part]} << 32 | w[2 * part + 1], uint64_t{1000}));
  const double pi = 3.14159265358979323846;
  if (dtype == DType::Float64) {
    double r = std::sqrt(-2 * std::log(1 - uniform_double(w[0], w[1]))),
           a = 2 * pi * uniform_double(w[2], w[3]);
    return part == 0 ? r * std::cos(a) : r * std::sin(a);
  }
  double r = std::sqrt(-2 * std::log((w[part / 2 * 2] / 256 + 1) / 16777216.0)),
         a = 2 * pi * (w[part / 2 * 2 + 1] / 4294967296.0);
  return part % 2 == 0 ? r * std::cos(a) : r * std::sin(a);
}

TEST(Random, NumbersFollowTheirDefinition) {
  Generator generator(0x123456789abcdefull);
  generator.set_state({0x123456789abcdefull, 0xfffffff0u});  // counters cross 32 bits
  for (int64_t n : {1, 3, 255, 256, 257, 1000, 70001}) {
    for (DType dtype : {float32, float64}) {
      Generator::State state = generator.state();
      std::vector<double> u = rand({n}, as(dtype), generator).to_vector<double>();
      int64_t k = dtype == float64 ? 2 : 4;
      EXPECT_EQ(generator.state().position, state.position + static_cast<uint64_t>((n + k - 1) / k));
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(u[static_cast<size_t>(i)], reference(Distribution::Uniform, dtype, state, i)) << i;
      state = generator.state();
      std::vector<double> z = randn({n}, as(dtype), generator).to_vector<double>();
      double tolerance = dtype == float64 ? 1e-14 : 2e-6;
      for (int64_t i = 0; i < n; ++i)
        ASSERT_NEAR(z[static_cast<size_t>(i)], reference(Distribution::Normal, dtype, state, i), tolerance)
            << i;
    }
    Generator::State state = generator.state();
    std::vector<int64_t> integers = randint(0, 1000, {n}, {}, generator).to_vector<int64_t>();
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(static_cast<double>(integers[static_cast<size_t>(i)]),
                reference(Distribution::Integer, int64, state, i))
          << i;
  }
}

// Kept so that a seed means the same in every later version and on every device.
TEST(Random, KnownNumbers) {
  manual_seed(42);
  EXPECT_THAT(rand({4}).to_vector<float>(), ElementsAre(10283760.0f / 16777216, 7861577.0f / 16777216,
                                                        1228624.0f / 16777216, 5718707.0f / 16777216));
  EXPECT_THAT(randint(100, {4}).to_vector<int64_t>(), ElementsAre(98, 51, 82, 60));
  EXPECT_THAT(randperm(8).to_vector<int64_t>(), ElementsAre(5, 6, 4, 3, 2, 7, 1, 0));
  EXPECT_THAT(randint(100, {3}, as(uint8)).to_vector<int64_t>(), ElementsAre(35, 9, 54));
  Tensor z = randn({2});
  EXPECT_NEAR(z.to_vector<float>()[0], -1.293255145385837, 1e-6);
  EXPECT_NEAR(z.to_vector<float>()[1], 0.9866203510459971, 1e-6);
}

TEST(Random, SeedsAndGenerators) {
  manual_seed(7);
  std::vector<float> first = rand({5}).to_vector<float>(), second = rand({5}).to_vector<float>();
  EXPECT_NE(first, second);
  manual_seed(7);
  EXPECT_EQ(rand({5}).to_vector<float>(), first);
  Generator own(7);
  EXPECT_EQ(rand({5}, {}, own).to_vector<float>(), first);
  EXPECT_EQ(rand({5}, {}, own).to_vector<float>(), second);
  Generator::State state = own.state();
  std::vector<float> third = rand({5}, {}, own).to_vector<float>();
  own.set_state(state);
  EXPECT_EQ(rand({5}, {}, own).to_vector<float>(), third);
}

TEST(Random, ThreadsDoNotMatter) {
  if (is_emulated(get_default_device()))
    GTEST_SKIP() << "the emulator's kernels run on one thread, whatever the number";
  auto all = [] {
    manual_seed(3);
    const int64_t n = 300001;
    Tensor x = full({n}, 1.0);
    return std::vector<Tensor>{
        rand({n}),       randn({n}),  randint(10, {n}), rand({n}, as(bfloat16)), randn({n}, as(float64)),
        dropout(x, 0.3), randperm(n), rand({8'000'001})};
  };
  set_thread_local_num_threads(1);
  std::vector<Tensor> one = all();
  set_thread_local_num_threads(5);
  std::vector<Tensor> five = all();
  set_thread_local_num_threads(0);
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_EQ(one[i].to_vector<double>(), five[i].to_vector<double>()) << i;
}

TEST(Random, LayoutDoesNotMatter) {
  Generator a(5), b(5);
  Tensor dense = zeros({30, 20});
  uniform_(dense, -1, 1, a);
  Tensor strided = zeros({20, 30}).t();
  uniform_(strided, -1, 1, b);
  EXPECT_EQ(dense.to_vector<float>(), strided.to_vector<float>());
  Tensor part = zeros({4}).narrow(0, 1, 3);
  b.manual_seed(5);
  uniform_(part, -1, 1, b);
  EXPECT_EQ(part.to_vector<float>()[2], dense.to_vector<float>()[2]);
}

TEST(Random, Distributions) {
  manual_seed(1);
  constexpr int64_t n = 400000;
  struct Row {
    const char* name;
    Tensor x;
    double mean, variance, skewness, kurtosis;
  };
  Tensor exponential = empty({n});
  exponential_(exponential, 2.0);
  Tensor exponential64 = empty({n}, as(float64));
  exponential_(exponential64, 2.0);
  Tensor coin = empty({n}, as(uint8));
  bernoulli_(coin, 0.25);
  Tensor shifted = empty({n});
  uniform_(shifted, -3, 1);
  const Row rows[] = {
      {"uniform", rand({n}), 0.5, 1 / 12.0, 0, 1.8},
      {"uniform float64", rand({n}, as(float64)), 0.5, 1 / 12.0, 0, 1.8},
      {"uniform float16", rand({n}, as(float16)), 0.5, 1 / 12.0, 0, 1.8},
      {"uniform bfloat16", rand({n}, as(bfloat16)), 0.498, 1 / 12.0, 0, 1.8},
      {"uniform [-3, 1)", shifted, -1, 16 / 12.0, 0, 1.8},
      {"normal", randn({n}), 0, 1, 0, 3},
      {"normal float64", randn({n}, as(float64)), 0, 1, 0, 3},
      {"normal bfloat16", randn({n}, as(bfloat16)), 0, 1, 0, 3},
      {"normal(3, 2)", normal(3, 2, {n}), 3, 4, 0, 3},
      {"exponential", exponential, 0.5, 0.25, 2, 9},
      {"exponential float64", exponential64, 0.5, 0.25, 2, 9},
      {"bernoulli", coin, 0.25, 0.1875, 0.5 / std::sqrt(0.1875), 1 + 0.25 / 0.1875},
      {"bernoulli of a tensor", bernoulli(full({n}, 0.25)), 0.25, 0.1875, 0.5 / std::sqrt(0.1875),
       1 + 0.25 / 0.1875},
      {"randint", randint(-5, 5, {n}), -0.5, 99 / 12.0, 0, 1.8},
      {"randint float", randint(0, 1 << 20, {n}, as(float32)), 524287.5, 1048576.0 * 1048576 / 12, 0, 1.8},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Moments m = moments(row.x);
    double deviation = std::sqrt(row.variance);
    EXPECT_NEAR(m.mean, row.mean, 5 * deviation / std::sqrt(n) + (row.x.dtype() == bfloat16 ? 1e-3 : 0));
    EXPECT_NEAR(m.variance / row.variance, 1, 0.02);
    EXPECT_NEAR(m.skewness, row.skewness, 0.05);
    EXPECT_NEAR(m.kurtosis, row.kurtosis, row.kurtosis > 5 ? 0.6 : 0.05);
  }
}

TEST(Random, NeighboursAreNotCorrelated) {
  manual_seed(9);
  std::vector<double> z = randn({200000}).to_vector<double>();
  for (size_t lag : {1u, 2u, 3u, 4u, 256u}) {
    double product = 0;
    for (size_t i = 0; i + lag < z.size(); ++i) product += z[i] * z[i + lag];
    EXPECT_NEAR(product / static_cast<double>(z.size()), 0, 0.012) << lag;
  }
}

TEST(Random, Ranges) {
  manual_seed(2);
  for (DType dtype : {float32, float64, float16, bfloat16}) {
    Tensor x = rand({100000}, as(dtype));
    EXPECT_LT(max(x).item<double>(), 1.0) << name(dtype);
    EXPECT_GE(min(x).item<double>(), 0.0) << name(dtype);
    Tensor y = empty({100000}, as(dtype));
    uniform_(y, 0.99, 1.0);  // 16-bit types have few values there
    EXPECT_LT(max(y).item<double>(), 1.0) << name(dtype);
    uniform_(y, -0.001, 0.0);
    EXPECT_LT(max(y).item<double>(), 0.0) << name(dtype);
    uniform_(y, 3, 3);
    EXPECT_EQ(max(y).item<double>(), 3.0);
    EXPECT_EQ(min(y).item<double>(), 3.0);
  }
  Tensor all = randint(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), {1000});
  EXPECT_LT(min(all).item<int64_t>(), -(int64_t{1} << 61));
  EXPECT_GT(max(all).item<int64_t>(), int64_t{1} << 61);
  Tensor wide = randint(0, int64_t{1} << 40, {1000});
  EXPECT_GE(min(wide).item<int64_t>(), 0);
  EXPECT_GT(max(wide).item<int64_t>(), int64_t{1} << 39);
  for (DType dtype : {uint8, int8, int16, int32, int64, bool_, float16, bfloat16, float32, float64}) {
    Tensor x = zeros({20000}, as(dtype));
    random_(x);
    EXPECT_GE(min(x).item<double>(), 0) << name(dtype);
    EXPECT_GT(max(x).item<double>(), 0) << name(dtype);
    random_(x, 0, 2);
    EXPECT_EQ(max(x).item<double>(), 1) << name(dtype);
  }
  std::vector<int64_t> bytes = [] {
    Tensor x = zeros({20000}, as(uint8));
    return random_(x).to_vector<int64_t>();
  }();
  EXPECT_EQ(*std::max_element(bytes.begin(), bytes.end()), 255);
  Tensor never = ones({10000}), always = zeros({10000});
  bernoulli_(never, 0);
  bernoulli_(always, 1);
  EXPECT_EQ(max(never).item<double>(), 0);
  EXPECT_EQ(min(always).item<double>(), 1);
}

TEST(Random, Permutations) {
  manual_seed(4);
  for (int64_t n : {0, 1, 2, 10, 63, 64, 1000, 100003}) {
    std::vector<int64_t> order = randperm(n).to_vector<int64_t>();
    std::vector<int64_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(sorted[static_cast<size_t>(i)], i);
    if (n >= 1000) {
      EXPECT_NE(order, sorted);
    }
  }
  // Each of the 24 orders of four is equally frequent.
  std::map<std::vector<int64_t>, int> counts;
  for (int i = 0; i < 24000; ++i) ++counts[randperm(4).to_vector<int64_t>()];
  EXPECT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 180);
  EXPECT_EQ(randperm(5, as(int32)).dtype(), int32);
}

TEST(Random, Multinomial) {
  manual_seed(6);
  Tensor weights = tensor({1.0, 0.0, 3.0, 6.0});
  Tensor drawn = multinomial(weights, 100000, /*replacement=*/true);
  std::vector<double> counts(4);
  for (int64_t i : drawn.to_vector<int64_t>()) ++counts.at(static_cast<size_t>(i));
  EXPECT_NEAR(counts[0], 10000, 500);
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[2], 30000, 800);
  EXPECT_NEAR(counts[3], 60000, 800);

  Tensor rows = expand(weights, {20000, 4});
  Tensor two = multinomial(rows, 2);
  EXPECT_EQ(two.shape(), Shape({20000, 2}));
  std::vector<int64_t> pairs = two.to_vector<int64_t>();
  std::map<std::pair<int64_t, int64_t>, double> seen;
  for (size_t i = 0; i < pairs.size(); i += 2) ++seen[{pairs[i], pairs[i + 1]}];
  EXPECT_EQ(seen.size(), 6u);
  // P(3 then 2) = 0.6 * 3 / 4, P(0 then 3) = 0.1 * 6 / 9.
  double three_two = seen[{3, 2}], zero_three = seen[{0, 3}];
  EXPECT_NEAR(three_two / 20000, 0.45, 0.02);
  EXPECT_NEAR(zero_three / 20000, 0.0667, 0.01);
}

TEST(Random, VariatesHaveTheMomentsOfTheirDistributions) {
  manual_seed(7);
  const int64_t n = is_emulated(get_default_device()) ? 4000 : 100000;
  const auto parameter = [n](double value) { return full({n}, value, as(float64)); };
  struct Row {
    Tensor drawn;
    double mean, variance;
  };
  const Row rows[] = {
      {poisson(parameter(0.3)), 0.3, 0.3},
      {poisson(parameter(9.5)), 9.5, 9.5},
      {poisson(parameter(200)), 200, 200},
      {standard_gamma(parameter(0.2)), 0.2, 0.2},
      {standard_gamma(parameter(1)), 1, 1},
      {standard_gamma(parameter(70)), 70, 70},
      {binomial(parameter(9), parameter(0.2)), 1.8, 1.44},
      {binomial(parameter(9), parameter(0.9)), 8.1, 0.81},
      {binomial(parameter(500), parameter(0.3)), 150, 105},
      {binomial(parameter(500), parameter(0.6)), 300, 120},
      {normal(parameter(3), parameter(2)), 3, 4},
  };
  for (const Row& row : rows) {
    const Moments found = moments(row.drawn);
    const double error = 5 / std::sqrt(static_cast<double>(n));
    EXPECT_NEAR(found.mean, row.mean, error * std::sqrt(row.variance)) << row.mean;
    EXPECT_NEAR(found.variance, row.variance, error * row.variance * std::sqrt(found.kurtosis)) << row.mean;
  }
  EXPECT_EQ(poisson(zeros({3})).to_vector<float>(), std::vector<float>(3, 0.0f));
  EXPECT_EQ(binomial(tensor({4.0f, 4.0f, 0.0f}), tensor({0.0f, 1.0f, 0.5f})).to_vector<float>(),
            (std::vector<float>{0, 4, 0}));
  EXPECT_GT(item(min(standard_gamma(full({1000}, 1e-3f)))).to_double(), 0);
}

TEST(Random, AVariateMovesWithItsShape) {
  // At a fixed share below it: (gammainc(a + h, x) - gammainc(a, x)) / h = -x'(a) * density(x).
  manual_seed(8);
  Tensor shape = tensor({0.3, 1.0, 4.5, 60.0}, as(float64)).requires_grad_();
  const Tensor x = standard_gamma(shape);
  sum(x).backward();
  const double h = 1e-6;
  NoGradGuard no_grad;
  const Tensor a = shape.detach(), at = x.detach();
  const Tensor slope = div(sub(special::gammainc(add(a, h), at), special::gammainc(sub(a, h), at)), 2 * h);
  const Tensor density = exp(sub(sub(mul(sub(a, 1), log(at)), at), lgamma(a)));
  EXPECT_TRUE(allclose(shape.grad(), neg(div(slope, density)), 1e-5, 1e-8));
}

TEST(Random, Dropout) {
  manual_seed(8);
  Tensor x = full({100, 1000}, 2.0, as(float32, true));
  Tensor y = dropout(x, 0.25);
  std::vector<float> values = y.detach().to_vector<float>();
  double kept = 0;
  for (float v : values) {
    ASSERT_TRUE(v == 0.0f || v == 2.0f / 0.75f) << v;
    kept += v != 0;
  }
  EXPECT_NEAR(kept / 100000, 0.75, 0.01);
  sum(y).backward();
  std::vector<float> gradient = x.grad().to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(gradient[i], values[i] == 0 ? 0.0f : static_cast<float>(1 / 0.75)) << i;

  EXPECT_TRUE(dropout(x, 0.25, /*training=*/false).is_same(x));
  EXPECT_TRUE(dropout(x, 0).is_same(x));
  EXPECT_EQ(max(dropout(x.detach(), 1)).item<double>(), 0);
  EXPECT_EQ(dropout(zeros({0})).numel(), 0);

  // The same elements are dropped of a strided tensor and of its copy, and in the gradient of a strided
  // gradient.
  Generator a(1), b(1);
  Tensor base = full({50, 40}, 3.0, as(float64, true));
  EXPECT_EQ(dropout(base.t(), 0.5, true, a).detach().to_vector<double>(),
            dropout(base.t().contiguous(), 0.5, true, b).detach().to_vector<double>());
  Tensor z = dropout(base, 0.5, true, a);
  Tensor g = grad({z}, {base}, {full({40, 50}, 3.0, as(float64)).t()})[0];
  EXPECT_EQ(g.to_vector<double>(), z.detach().to_vector<double>());

  // Second derivative: the map is linear in the gradient.
  Tensor w = full({50, 40}, 1.0, as(float64, true));
  Tensor z2 = dropout(base, 0.5, true, b);
  Tensor first =
      grad({z2}, {base}, {w}, {.retain_graph = true, .create_graph = true, .allow_unused = false})[0];
  Tensor second = grad({sum(first)}, {w})[0];
  EXPECT_EQ(second.to_vector<double>(), first.detach().to_vector<double>());
  for (DType dtype : {float16, bfloat16}) {
    std::vector<float> half = dropout(ones({10000}, as(dtype)), 0.5).to_vector<float>();
    EXPECT_TRUE(std::all_of(half.begin(), half.end(), [](float v) { return v == 0 || v == 2; }));
  }
}

TEST(Random, InPlaceCountsVersions) {
  Tensor x = zeros({4});
  uint32_t version = x.version();
  uniform_(x);
  normal_(x);
  EXPECT_EQ(x.version(), version + 2);
  Tensor leaf = zeros({2}, as(float32, true));
  EXPECT_THROW(uniform_(leaf), AutogradError);
  {
    NoGradGuard no_grad;
    uniform_(leaf);
  }
  Tensor y = mul(leaf, 3.0);
  normal_(y);
  sum(y).backward();
  EXPECT_THAT(leaf.grad().to_vector<float>(), ElementsAre(0, 0));
}

TEST(Random, Errors) {
  Tensor x = zeros({2}), integers = zeros({2}, as(int64));
  expect_error<DTypeError>([&] { rand({2}, as(int64)); }, "rand: needs a floating-point dtype, got int64");
  expect_error<DTypeError>([&] { uniform_(integers); }, "uniform_: needs a floating-point dtype, got int64");
  expect_error<DTypeError>([&] { dropout(integers); }, "dropout: needs a floating-point dtype, got int64");
  expect_error<ValueError>([&] { uniform_(x, 1, 0); },
                           "uniform_: expects to return a [low, high) range, but found low=1 > high=0");
  expect_error<ValueError>([&] { uniform_(x, 0, NAN); }, "uniform_: expects");
  expect_error<ValueError>([&] { uniform_(x, -3e38, 3e38); },
                           "their difference must be finite values of float32");
  expect_error<ValueError>([&] { normal_(x, 0, -1); }, "normal_: expects std >= 0, but found std -1");
  expect_error<ValueError>([&] { exponential_(x, 0); }, "exponential_: expects rate > 0, but found rate=0");
  expect_error<ValueError>([&] { bernoulli_(x, 1.5); },
                           "bernoulli_: expects p to be in [0, 1], but got p=1.5");
  expect_error<ValueError>(
      [&] {
        bernoulli(tensor({0.5, 1.5}));
      },
      "bernoulli: expects 0 <= p <= 1 in every place");
  expect_error<ValueError>([&] { randint(5, 5, {1}); },
                           "randint: expects low < high, but got low=5 >= high=5");
  expect_error<ValueError>([&] { randint(0, 300, {1}, as(uint8)); },
                           "randint: [0, 300) is out of bounds for uint8");
  expect_error<ShapeError>([&] { rand({-1}); }, "rand: a size can not be negative");
  expect_error<ValueError>([&] { randperm(-1); }, "randperm: n must be non-negative, got -1");
  expect_error<ValueError>([&] { randperm(300, as(uint8)); },
                           "randperm: n is too large for dtype uint8: 300");
  expect_error<ValueError>([&] { dropout(x, 1.5); },
                           "dropout: probability has to be between 0 and 1, but got 1.5");
  expect_error<ValueError>(
      [&] {
        poisson(tensor({1.0, -2.0}));
      },
      "poisson: invalid Poisson rate, expected rate to be non-negative, got -2");
  expect_error<DTypeError>([&] { poisson(tensor({1})); }, "poisson: needs a floating-point dtype, got int64");
  expect_error<DTypeError>([&] { binomial(tensor({1.0}, as(float64)), tensor({1.0f})); },
                           "count and prob must have one dtype");
  expect_error<ValueError>([&] { normal(tensor({1.0}), -1); }, "normal: expects all elements of std >= 0.0");
  expect_error<ValueError>([&] { multinomial(tensor({0.0, 0.0}), 1); }, "sum of probabilities <= 0");
  expect_error<ValueError>(
      [&] {
        multinomial(tensor({1.0, -1.0}), 1);
      },
      "either `inf`, `nan` or element < 0");
  expect_error<ValueError>(
      [&] {
        multinomial(tensor({1.0, NAN}), 1, true);
      },
      "either `inf`, `nan` or element < 0");
  expect_error<ValueError>(
      [&] {
        multinomial(tensor({1.0, 0.0}), 2);
      },
      "fewer positive weights than the 2 samples");
  expect_error<ValueError>(
      [&] {
        multinomial(tensor({1.0, 1.0}), 3);
      },
      "cannot sample num_samples (3) > weights.size(-1) (2) samples without replacement");
  expect_error<ValueError>([&] { multinomial(tensor({1.0}), 0); }, "num_samples <= 0");
  expect_error<ShapeError>(
      [&] {
        multinomial(zeros({1, 1, 1}), 1);
      },
      "multinomial: weights must be 1 or 2 dim");
  expect_error<DTypeError>([&] { multinomial(tensor({1}), 1); },
                           "multinomial: weights must be of a floating-point dtype");
}

}  // namespace
}  // namespace tern
