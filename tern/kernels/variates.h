// Random numbers of distributions whose parameters differ from element to element, by rejection: each takes
// as many uniform numbers as it needs. The draws are those of PyTorch when `source` gives PyTorch's uniform
// and normal numbers.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tern/core/philox.h"
#include "tern/kernels/random.h"
#include "tern/kernels/special.h"

namespace tern::random {

/// Uniform and normal numbers of one element of a launch: counters (position, i), (position + 2^32, i) and so
/// on.
class ElementSource {
 public:
  TERN_FN ElementSource(PhiloxState start, int64_t element)
      : start_(start), stream_(static_cast<uint64_t>(element) + 1) {}
  /// In [0, 1).
  TERN_FN double uniform() {
    const auto w = next();
    return uniform_double(w[0], w[1]);
  }
  TERN_FN double normal() {
    const auto w = next();
    return random::normal(w[0], w[1], w[2], w[3]).first;
  }

 private:
  TERN_FN std::array<uint32_t, 4> next() {
    const auto words = philox(start_.seed, start_.position, stream_);
    start_.position += uint64_t{1} << 32;
    return words;
  }
  PhiloxState start_;
  uint64_t stream_;  // that of plain draws is 0
};

/// W. Hoermann, "The transformed rejection method for generating Poisson random variables", 1993, algorithm
/// PTRS; products of uniform numbers below a rate of 10 (Knuth).
template <class Source>
TERN_FN double poisson(double rate, Source& source) {
  if (!(rate > 0)) return 0;
  if (rate < 10) {
    const double limit = std::exp(-rate);
    double product = source.uniform(), count = 0;
    for (; product > limit; product *= source.uniform()) ++count;
    return count;
  }
  const double root = std::sqrt(rate), log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), squeeze = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = source.uniform() - 0.5, v = source.uniform();
    const double us = 0.5 - std::fabs(u), k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= squeeze) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -rate + k * log_rate - math::lgamma(k + 1))
      return k;
  }
}

/// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; its third is a float, as in
/// PyTorch.
template <class Source>
TERN_FN double standard_gamma(double shape, Source& source) {
  if (!(shape > 0)) return shape == 0 ? 0 : math::kNan;
  double scale = 1;
  if (shape < 1) {
    scale = std::pow(1 - source.uniform(), 1 / shape);
    shape += 1;
  }
  const double d = shape - double{1.0f / 3}, c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x, root;
    do {
      x = source.normal();
      root = 1 + c * x;
    } while (root <= 0);
    const double v = root * root * root, u = 1 - source.uniform(), xx = x * x;
    if (u < 1 - 0.0331 * xx * xx || std::log(u) < 0.5 * xx + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

/// What Stirling's formula leaves of log(k!), for k of 0, 1, ...
TERN_FN double factorial_rest(double k) {
  const double first[] = {0.08106146679532726,  0.04134069595540929, 0.02767792568499834, 0.02079067210376509,
                          0.01664469118982119,  0.01387612882307075, 0.01189670994589177, 0.01041126526197209,
                          0.009255462182712733, 0.008330563433362871};
  if (k < 10) return first[static_cast<int>(k)];
  const double next = k + 1, square = next * next;
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / next;
}

/// For a probability of at most 1/2. Sums of geometric numbers where few successes are likely; else W.
/// Hoermann, "The generation of binomial random variates", 1993, algorithm BTRS.
template <class Source>
TERN_FN double binomial_of_rare(double count, double p, Source& source) {
  if (count * p < 10) {
    const double log_failure = std::log1p(-p);
    double successes = 0;
    for (double tries = std::ceil(std::log(source.uniform()) / log_failure); !(tries > count);
         tries += std::ceil(std::log(source.uniform()) / log_failure))
      ++successes;
    return successes;
  }
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = count * p + 0.5;
  const double squeeze = 0.92 - 4.2 / b, odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((count + 1) * p);
  for (;;) {
    const double u = source.uniform() - 0.5, v = source.uniform();
    const double us = 0.5 - std::fabs(u), k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= squeeze) return k;
    if (k < 0 || k > count) continue;
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                         (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + factorial_rest(mode) +
                         factorial_rest(count - mode) - factorial_rest(k) - factorial_rest(count - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
  }
}
template <class Source>
TERN_FN double binomial(double count, double p, Source& source) {
  if (p != p || count != count) return math::kNan;
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  return p <= 0.5 ? binomial_of_rare(count, p, source) : count - binomial_of_rare(count, 1 - p, source);
}

/// A number of the distribution for an element of T. Those of the gamma distribution that would round to 0
/// become the smallest normal number, whose logarithm is finite.
template <class T, class Source>
TERN_FN double drawn(Variate which, double a, double b, Source& source) {
  if (which == Variate::Poisson) return poisson(a, source);
  if (which == Variate::Binomial) return binomial(a, b, source);
  constexpr double kSmallest = std::is_same_v<T, double> ? 0x1p-1022
                               : std::is_same_v<T, Half> ? 0x1p-14
                                                         : 0x1p-126;
  const double number = standard_gamma(a, source);
  return number < kSmallest ? kSmallest : number;
}

}  // namespace tern::random
