// What the normalisation kernels share: sums over runs of elements.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/moments.h"
#include "tern/backends/cpu/kernels/sum_terms.h"
#include "tern/backends/cpu/kernels/turned_rows.h"
#include "tern/kernels/norm.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// Elements whose sums are taken in the compute type, before they go on in double.
inline constexpr int64_t kMomentRun = 4096;

/// Moments of x[0..n), two passes over pieces that stay in the cache.
template <class T>
Moments moments_of(const T* x, int64_t n) {
  using C = Compute<T>;
  Moments total;
  for (int64_t begin = 0; begin < n; begin += kMomentRun) {
    const int64_t count = std::min(kMomentRun, n - begin);
    const T* run = x + begin;
    const auto [sum] = sum_terms<1>(
        count, [](auto* sums, auto value) { sums[0] += value; }, run);
    const C mean = sum / static_cast<C>(count);
    const auto [deviations, squares] = sum_terms<2>(
        count,
        [mean](auto* sums, auto value) {
          const auto d = value - mean;
          sums[0] += d;
          sums[1] += d * d;
        },
        run);
    total.merge(corrected(mean, deviations, squares, count));
  }
  return total;
}

/// Sum of x[i]^2 over n elements.
template <class T>
double square_sum(const T* x, int64_t n) {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kMomentRun) {
    const auto [sum] = sum_terms<1>(
        std::min(kMomentRun, n - begin), [](auto* sums, auto value) { sums[0] += value * value; }, x + begin);
    total += static_cast<double>(sum);
  }
  return total;
}

/// The two sums that every backward needs: of g, and of g * (x - mean).
struct GradSums {
  double grad = 0, grad_x = 0;
};
template <class T>
GradSums grad_sums(const T* g, const T* x, int64_t n, Compute<T> mean) {
  GradSums total;
  for (int64_t begin = 0; begin < n; begin += kMomentRun) {
    const auto [grad, grad_x] = sum_terms<2>(
        std::min(kMomentRun, n - begin),
        [mean](auto* sums, auto of_g, auto of_x) {
          sums[0] += of_g;
          sums[1] += of_g * (of_x - mean);
        },
        g + begin, x + begin);
    total.grad += static_cast<double>(grad);
    total.grad_x += static_cast<double>(grad_x);
  }
  return total;
}

/// Whether rows are so short, and so many, that they are worked on together (norm_short.cpp).
template <class Args>
bool suits_turning(const Args& args) {
  return args.groups == 1 && args.inner == 1 && args.size > 0 && args.size <= kMostTurned &&
         args.rows >= kTurnedRows / 8;
}
template <class T>
void normalise_turned(const RowNormArgs& args);
/// The gradient of the input.
template <class T>
void normalise_turned_backward(const RowNormBackwardArgs& args);
/// Adds what the rows [begin, end) give to the gradients of weight and bias.
template <class T>
void add_turned_params(const RowNormBackwardArgs& args, int64_t begin, int64_t end, Compute<T>* weight_sums,
                       Compute<T>* bias_sums);

}  // namespace tern::cpu::TERN_CPU_VARIANT
