// Dirichlet numbers out of gamma ones, whose logarithms are kept: with a small alpha they would be too small.
#include "tern/data/dirichlet.h"

#include <algorithm>
#include <cmath>

namespace tern::data::detail {
namespace {

/// The logarithm of a gamma number (Marsaglia and Tsang, "A simple method for generating gamma variables",
/// 2000).
double log_gamma_number(double alpha, Random& random) {
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3.0, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const auto x = static_cast<double>(random.normal());
    const double log_u = std::log(1 - static_cast<double>(random.uniform())), root = 1 + c * x;
    if (root <= 0) continue;
    const double log_v = 3 * std::log(root);
    if (log_u >= x * x / 2 + d - d * std::exp(log_v) + d * log_v) continue;
    const double log_gamma = std::log(d) + log_v;
    return alpha < 1 ? log_gamma + std::log(1 - static_cast<double>(random.uniform())) / alpha : log_gamma;
  }
}

}  // namespace

std::vector<double> random_dirichlet(size_t size, double alpha, Random& random) {
  std::vector<double> numbers(size);
  for (double& number : numbers) number = log_gamma_number(alpha, random);
  const double largest = *std::max_element(numbers.begin(), numbers.end());
  double sum = 0;
  for (double& number : numbers) sum += number = std::exp(number - largest);
  for (double& number : numbers) number /= sum;
  return numbers;
}

}  // namespace tern::data::detail
