// Random choices: permutations by sorting keys, multinomial samples. Plain draws are in random.cpp, the
// definition of every number is in kernels/random.h.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tern/backends/cpu/kernels/random_blocks.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/kernels/list.h"
#include "tern/kernels/random.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

uint64_t key_at(const PermutationArgs& args, uint64_t index) {
  auto w = philox(args.seed, args.position + index / 2);
  return index % 2 == 0 ? uint64_t{w[0]} << 32 | w[1] : uint64_t{w[2]} << 32 | w[3];
}

/// Sorts [first, last) by keys.
void sort_nearly_sorted(uint64_t* first, uint64_t* last, const PermutationArgs& args) {
  auto less = [&args](uint64_t a, uint64_t b) {
    if ((a ^ b) >> 32 != 0) [[likely]]
      return a < b;
    uint64_t key_a = key_at(args, static_cast<uint32_t>(a)), key_b = key_at(args, static_cast<uint32_t>(b));
    return key_a != key_b ? key_a < key_b : a < b;
  };
  for (uint64_t* at = first; at < last; ++at) {
    const uint64_t entry = *at;
    uint64_t* place = at;
    for (; place > first && less(entry, place[-1]); --place) *place = place[-1];
    *place = entry;
  }
}

/// Brings n entries into the order of `bits` of their bits, of which `shift` are below; equal ones in any
/// order. `starts` has 2^bits elements.
void spread(const uint64_t* entries, uint64_t* to, size_t n, int shift, int bits, uint32_t* starts) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  std::fill_n(starts, mask + 1, 0);
  for (size_t i = 0; i < n; ++i) ++starts[entries[i] >> shift & mask];
  uint32_t start = 0;
  for (size_t b = 0; b <= mask; ++b) start += std::exchange(starts[b], start);
  for (size_t i = 0; i < n; ++i) to[starts[entries[i] >> shift & mask]++] = entries[i];
}

double uniform_at(uint64_t seed, uint64_t position, int64_t number) {
  auto w = philox(seed, position + static_cast<uint64_t>(number) / 2);
  return number % 2 == 0 ? uniform_double(w[0], w[1]) : uniform_double(w[2], w[3]);
}

/// One row of samples with replacement: uniform numbers looked up in the running sums.
WeightFault sample_with(const MultinomialArgs& args, const double* weights, int64_t row,
                        std::vector<double>& sums) {
  double total = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < args.categories; ++i) {
    if (!(weights[i] >= 0) || std::isinf(weights[i])) return WeightFault::NotFinite;
    if (weights[i] > 0) last = i;
    sums[static_cast<size_t>(i)] = total += weights[i];
  }
  if (total == 0) return WeightFault::Zero;
  if (std::isinf(total)) return WeightFault::NotFinite;
  parallel_for(args.samples, 2048, [&](int64_t begin, int64_t end) {
    for (int64_t s = row * args.samples + begin; s < row * args.samples + end; ++s) {
      double target = uniform_at(args.seed, args.position, s) * total;
      // The product may round up to the total, where no sum is larger.
      args.out[s] =
          std::min<int64_t>(std::upper_bound(sums.begin(), sums.end(), target) - sums.begin(), last);
    }
  });
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
    times[static_cast<size_t>(i)] = {
        weights[i] > 0 ? wait / weights[i] : std::numeric_limits<double>::infinity(), i};
  }
  if (positive == 0) return WeightFault::Zero;
  if (positive < args.samples) return WeightFault::TooFew;
  std::partial_sort(times.begin(), times.begin() + args.samples, times.end());
  for (int64_t s = 0; s < args.samples; ++s)
    args.out[row * args.samples + s] = times[static_cast<size_t>(s)].second;
  return WeightFault::None;
}

}  // namespace

void permutation(const LaunchContext&, const PermutationArgs& args) {
  const size_t count = static_cast<size_t>(args.count);
  // An entry is the upper half of a key above its index; equal halves are told apart by the whole keys.
  auto* entries = reinterpret_cast<uint64_t*>(args.out);
  for_each_counter_block<2>(
      entries, args.count, args.seed, args.position,
      [](const Words& w, uint64_t* to, int64_t first, int64_t n) {
        const auto index = static_cast<uint64_t>(first);
        for (int64_t i = 0; i < n / 2; ++i) {
          to[2 * i] = uint64_t{w[0][i]} << 32 | (index + 2 * static_cast<uint64_t>(i));
          to[2 * i + 1] = uint64_t{w[2][i]} << 32 | (index + 2 * static_cast<uint64_t>(i) + 1);
        }
        if (n % 2 != 0) to[n - 1] = uint64_t{w[0][n / 2]} << 32 | (index + static_cast<uint64_t>(n - 1));
      });
  // Keys are uniform. Their first bits make buckets that stay in the cache, the next ones put those nearly in
  // order, and an insertion sort does the rest.
  const int bits = std::min(static_cast<int>(std::bit_width(count)) + 1, 28);  // most keys differ in them
  const int first_bits = std::clamp(bits - 11, 0, 10), next_bits = bits - first_bits;
  Scratch<uint64_t> buckets(args.count);
  std::vector<uint32_t> ends(size_t{1} << first_bits);
  spread(entries, buckets.get(), count, std::min(63, 64 - first_bits), first_bits, ends.data());
  parallel_for(static_cast<int64_t>(ends.size()), std::max<int64_t>(1, 8192 >> next_bits),
               [&](int64_t begin, int64_t end) {
                 std::vector<uint32_t> starts(size_t{1} << next_bits);
                 for (auto b = static_cast<size_t>(begin); b < static_cast<size_t>(end); ++b) {
                   const size_t first = b == 0 ? 0 : ends[b - 1], n = ends[b] - first;
                   uint64_t* sorted = entries + first;
                   spread(buckets.get() + first, sorted, n, 64 - first_bits - next_bits, next_bits,
                          starts.data());
                   sort_nearly_sorted(sorted, sorted + n, args);
                   for (size_t i = 0; i < n; ++i) sorted[i] = static_cast<uint32_t>(sorted[i]);
                 }
               });
}

void multinomial(const LaunchContext&, const MultinomialArgs& args) {
  std::vector<WeightFault> faults(static_cast<size_t>(args.rows));
  const int64_t row_work = args.categories + 16 * args.samples;
  parallel_for(args.rows, std::max<int64_t>(1, kPointwiseGrain / row_work), [&](int64_t begin, int64_t end) {
    std::vector<double> sums(args.replacement ? static_cast<size_t>(args.categories) : 0);
    std::vector<std::pair<double, int64_t>> times(args.replacement ? 0
                                                                   : static_cast<size_t>(args.categories));
    for (int64_t row = begin; row < end; ++row) {
      const double* weights = args.weights + row * args.categories;
      faults[static_cast<size_t>(row)] = args.replacement ? sample_with(args, weights, row, sums)
                                                          : sample_without(args, weights, row, times);
    }
  });
  *args.fault = static_cast<int64_t>(WeightFault::None);
  for (WeightFault fault : faults) {
    if (fault == WeightFault::None) continue;
    *args.fault = static_cast<int64_t>(fault);
    return;
  }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
