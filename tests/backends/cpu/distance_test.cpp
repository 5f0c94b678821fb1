// Distances between rows and their gradient against plain loops in double.
#include "tern/kernels/distance.h"

#include <fmt/format.h>

#include "tests/backends/cpu/kernel_testing.h"

namespace tern::testing {
namespace {

double distance_of(const std::vector<double>& differences, double p) {
  double sum = 0, largest = 0;
  for (const double d : differences) {
    sum += p == 0 ? d != 0 : std::pow(std::abs(d), p);
    largest = std::max(largest, std::abs(d));
  }
  return std::isinf(p) ? largest : p == 0 ? sum : std::pow(sum, 1 / p);
}

double slope_of(double difference, double distance, double p) {
  if (difference == 0 || distance == 0) return 0;
  const double sign = difference < 0 ? -1 : 1;
  if (std::isinf(p)) return std::abs(difference) == distance ? sign : 0;
  return sign * std::pow(std::abs(difference) / distance, p - 1);
}

template <class T>
void check(const Variant& variant, Random& random, DistanceProblem s) {
  s.dtype = dtype_of<T>();
  const std::string what =
      fmt::format("{} p {} [{}, {} x {}, {}]", name(s.dtype), s.p, s.batch, s.rows, s.others, s.size);
  const std::vector<T> a = random.elements<T>(s.batch * s.rows * s.size),
                       b = random.elements<T>(s.batch * s.others * s.size),
                       g = random.elements<T>(s.batch * s.rows * s.others);
  s.a = a.data();
  s.b = b.data();
  std::vector<T> y(g.size()), grad(a.size());
  variant.run(kernels::distance, {s, y.data()});
  if (s.p != 0) variant.run(kernels::distance_backward, {s, y.data(), g.data(), grad.data()});
  std::vector<double> distances(y.size()), grads(a.size()), differences(static_cast<size_t>(s.size));
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t i = 0; i < s.rows; ++i)
      for (int64_t j = 0; j < s.others; ++j) {
        const auto row = static_cast<size_t>((n * s.rows + i) * s.size),
                   other = static_cast<size_t>((n * s.others + j) * s.size),
                   pair = static_cast<size_t>((n * s.rows + i) * s.others + j);
        for (size_t f = 0; f < differences.size(); ++f) differences[f] = a[row + f] - b[other + f];
        distances[pair] = distance_of(differences, s.p);
        for (size_t f = 0; f < differences.size() && s.p != 0; ++f)
          grads[row + f] += g[pair] * slope_of(differences[f], distances[pair], s.p);
      }
  expect_near(y, distances, what);
  expect_near(grad, grads, "gradient " + what);
}

TEST(CpuDistance, AgreesWithPlainLoops) {
  Random random(3);
  for_each_variant([&](const Variant& variant) {
    for (const double p : {0.0, 0.7, 1.0, 2.0, 2.5, 3.0, 7.0, 9.0, HUGE_VAL})
      for (const auto& [batch, rows, others, size] : {std::array<int64_t, 4>{2, 5, 3, 4},
                                                      {1, 70, 3, 5},
                                                      {1, 3, 130, 37},
                                                      {2, 65, 66, 33},
                                                      {1, 1, 1, 1}}) {
        DistanceProblem s;
        s.p = p;
        s.batch = batch;
        s.rows = rows;
        s.others = others;
        s.size = size;
        check<float>(variant, random, s);
        check<double>(variant, random, s);
      }
  });
}

}  // namespace
}  // namespace tern::testing
