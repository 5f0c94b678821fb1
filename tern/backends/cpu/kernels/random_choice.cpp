// Random choices: permutations by sorting keys, multinomial samples. Plain draws are in random.cpp, the definition of every
// number is in kernels/random.h.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/kernels/list.h"
#include "tern/kernels/random.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

struct Key {
  uint64_t key;
  int64_t index;
  bool operator<(const Key& other) const { return key != other.key ? key < other.key : index < other.index; }
};

double uniform_at(uint64_t seed, uint64_t position, int64_t number) {
  auto w = philox(seed, position + static_cast<uint64_t>(number) / 2);
  return number % 2 == 0 ? uniform_double(w[0], w[1]) : uniform_double(w[2], w[3]);
}

/// One row of samples with replacement: uniform numbers looked up in the running sums.
WeightFault sample_with(const MultinomialArgs& args, const double* weights, int64_t row, std::vector<double>& sums) {
  double total = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < args.categories; ++i) {
    if (!(weights[i] >= 0) || std::isinf(weights[i])) return WeightFault::NotFinite;
    if (weights[i] > 0) last = i;
    sums[static_cast<size_t>(i)] = total += weights[i];
  }
  if (total == 0) return WeightFault::Zero;
  if (std::isinf(total)) return WeightFault::NotFinite;
  for (int64_t s = row * args.samples; s < (row + 1) * args.samples; ++s) {
    double target = uniform_at(args.seed, args.position, s) * total;
    // The product may round up to the total, where no sum is larger.
    args.out[s] = std::min<int64_t>(std::upper_bound(sums.begin(), sums.end(), target) - sums.begin(), last);
  }
  return WeightFault::None;
}

/// One row of samples without replacement: the smallest exponential waiting times.
WeightFault sample_without(const MultinomialArgs& args, const double* weights, int64_t row,
                           std::vector<std::pair<double, int64_t>>& times) {
  int64_t positive = 0;
  for (int64_t i = 0; i < args.categories; ++i) {
    if (!(weights[i] >= 0) || std::isinf(weights[i])) return WeightFault::NotFinite;
    positive += weights[i] > 0;
    double wait = -std::log(1.0 - uniform_at(args.seed, args.position, row * args.categories + i));
    times[static_cast<size_t>(i)] = {weights[i] > 0 ? wait / weights[i] : std::numeric_limits<double>::infinity(), i};
  }
  if (positive == 0) return WeightFault::Zero;
  if (positive < args.samples) return WeightFault::TooFew;
  std::partial_sort(times.begin(), times.begin() + args.samples, times.end());
  for (int64_t s = 0; s < args.samples; ++s) args.out[row * args.samples + s] = times[static_cast<size_t>(s)].second;
  return WeightFault::None;
}

}  // namespace

void permutation(const LaunchContext&, const PermutationArgs& args) {
  const size_t count = static_cast<size_t>(args.count);
  // Keys are uniform: the upper bits spread them over buckets of some 64, in order, which are then sorted one by one.
  const int bits = std::clamp(static_cast<int>(std::bit_width(count)) - 6, 0, 18);
  auto bucket_of = [bits](uint64_t key) { return bits == 0 ? size_t{0} : static_cast<size_t>(key >> (64 - bits)); };
  std::vector<uint64_t> keys(count);
  parallel_for(args.count, kPointwiseGrain / 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      auto w = philox(args.seed, args.position + static_cast<uint64_t>(i) / 2);
      keys[static_cast<size_t>(i)] = i % 2 == 0 ? uint64_t{w[0]} << 32 | w[1] : uint64_t{w[2]} << 32 | w[3];
    }
  });
  std::vector<size_t> starts((size_t{1} << bits) + 1);
  for (uint64_t key : keys) ++starts[bucket_of(key) + 1];
  for (size_t b = 1; b < starts.size(); ++b) starts[b] += starts[b - 1];
  std::vector<Key> sorted(count);
  {
    std::vector<size_t> next(starts.begin(), starts.end() - 1);
    for (size_t i = 0; i < count; ++i) sorted[next[bucket_of(keys[i])]++] = {keys[i], static_cast<int64_t>(i)};
  }
  parallel_for(int64_t{1} << bits, 256, [&](int64_t begin, int64_t end) {
    const size_t first = starts[static_cast<size_t>(begin)], last = starts[static_cast<size_t>(end)];
    for (int64_t b = begin; b < end; ++b)
      std::sort(sorted.begin() + static_cast<int64_t>(starts[static_cast<size_t>(b)]),
                sorted.begin() + static_cast<int64_t>(starts[static_cast<size_t>(b) + 1]));
    for (size_t i = first; i < last; ++i) args.out[i] = sorted[i].index;
  });
}

void multinomial(const LaunchContext&, const MultinomialArgs& args) {
  *args.fault = static_cast<int64_t>(WeightFault::None);
  std::vector<double> sums(args.replacement ? static_cast<size_t>(args.categories) : 0);
  std::vector<std::pair<double, int64_t>> times(args.replacement ? 0 : static_cast<size_t>(args.categories));
  for (int64_t row = 0; row < args.rows; ++row) {
    const double* weights = args.weights + row * args.categories;
    WeightFault fault = args.replacement ? sample_with(args, weights, row, sums) : sample_without(args, weights, row, times);
    if (fault != WeightFault::None) {
      *args.fault = static_cast<int64_t>(fault);
      return;
    }
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
