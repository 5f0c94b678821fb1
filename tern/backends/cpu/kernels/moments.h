// Number, mean and sum of squared deviations of some elements, merged as by Chan, Golub and LeVeque,
// "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
#pragma once

#include <cmath>
#include <cstdint>

namespace tern::cpu::TERN_CPU_VARIANT {

struct Moments {
  double count = 0, mean = 0, squares = 0;

  void merge(const Moments& other) {
    if (other.count == 0) return;
    const double total = count + other.count, share = other.count / total, delta = other.mean - mean;
    mean += delta * share;
    squares += other.squares + delta * delta * (count * share);
    count = total;
  }
  double variance() const { return squares / count; }
};

/// Of n elements whose mean was rounded to `shift`: `deviations` is the sum of x - shift and `squares` that
/// of its square.
template <class C>
Moments corrected(C shift, C deviations, C squares, int64_t n) {
  const double rest = static_cast<double>(deviations);
  const double count = static_cast<double>(n);
  double sum = static_cast<double>(squares);
  if (!std::isinf(sum)) sum -= rest * rest / count;
  return {count, static_cast<double>(shift) + rest / count, sum < 0 ? 0 : sum};
}

/// Of neighbouring columns, which have as many elements each.
struct ColumnMoments {
  double count = 0;
  double *mean, *squares;  ///< not owned

  /// The other's count is not 0.
  void merge(int64_t columns, const ColumnMoments& other) {
    const double total = count + other.count, share = other.count / total, weight = count * share;
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) {
      const double delta = other.mean[c] - mean[c];
      mean[c] += delta * share;
      squares[c] += other.squares[c] + delta * delta * weight;
    }
    count = total;
  }
};

}  // namespace tern::cpu::TERN_CPU_VARIANT
