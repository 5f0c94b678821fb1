// Normalisation of rows: layer, group and RMS norm, forward and backward. Rows of few elements are in
// norm_short.cpp, batch norm in norm_batch.cpp.
#include "tern/backends/cpu/kernels/norm.h"

#include <cmath>
#include <vector>

#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

int64_t row_grain(int64_t size) {
  return std::max<int64_t>(1, kPointwiseGrain / 4 / std::max<int64_t>(size, 1));
}

template <class T>
void forward(const RowNormArgs& args) {
  using C = Compute<T>;
  const int64_t size = args.size, inner = args.inner, params = size / inner;
  parallel_for(args.rows, row_grain(size), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* x = static_cast<const T*>(args.input) + r * size;
      T* out = static_cast<T*>(args.output) + r * size;
      C mean = 0, invstd;
      if (args.rms) {
        invstd = static_cast<C>(1 / std::sqrt(square_sum(x, size) / static_cast<double>(size) + args.eps));
      } else {
        const Moments m = moments_of(x, size);
        mean = static_cast<C>(m.mean);
        invstd = static_cast<C>(1 / std::sqrt(m.variance() + args.eps));
        static_cast<C*>(args.mean)[r] = mean;
      }
      static_cast<C*>(args.invstd)[r] = invstd;
      const int64_t first = r % args.groups * params;
      const C* weight = args.weight ? static_cast<const C*>(args.weight) + first : nullptr;
      const C* bias = args.bias ? static_cast<const C*>(args.bias) + first : nullptr;
      if (inner != 1) {
        for (int64_t p = 0; p < params; ++p) {
          const C scale = weight ? invstd * weight[p] : invstd;
          const C shift = bias ? bias[p] : C(0);
          row1(out + p * inner, x + p * inner, inner, [=](C v) { return (v - mean) * scale + shift; });
        }
      } else if (weight && bias) {
#pragma GCC ivdep
        for (int64_t i = 0; i < size; ++i)
          out[i] = static_cast<T>((static_cast<C>(x[i]) - mean) * invstd * weight[i] + bias[i]);
      } else if (weight) {
#pragma GCC ivdep
        for (int64_t i = 0; i < size; ++i)
          out[i] = static_cast<T>((static_cast<C>(x[i]) - mean) * invstd * weight[i]);
      } else if (bias) {
#pragma GCC ivdep
        for (int64_t i = 0; i < size; ++i)
          out[i] = static_cast<T>((static_cast<C>(x[i]) - mean) * invstd + bias[i]);
      } else {
        row1(out, x, size, [=](C v) { return (v - mean) * invstd; });
      }
    }
  });
}

/// With xhat = (x - mean) * invstd and h = g * weight:
/// grad_x = invstd * (h - mean(h) - xhat * mean(h * xhat)); for RMS norm without the term mean(h).
/// That is g * weight * invstd - shift - (x - mean) * along.
template <class C>
struct RowSlopes {
  C mean, invstd, along, shift;

  /// Of the row r, with the sums of h and of h * (x - mean).
  RowSlopes(const RowNormBackwardArgs& args, int64_t r, const GradSums& sums)
      : mean(mean_of(args, r)), invstd(static_cast<const C*>(args.invstd)[r]) {
    const double n = static_cast<double>(args.size), scale = static_cast<double>(invstd);
    along = static_cast<C>(sums.grad_x * scale * scale * scale / n);
    shift = args.rms ? C(0) : static_cast<C>(sums.grad * scale / n);
  }
  static C mean_of(const RowNormBackwardArgs& args, int64_t r) {
    return args.rms ? C(0) : static_cast<const C*>(args.mean)[r];
  }
};

/// The gradient of the input where every element of a row has a parameter of its own.
template <class T>
void backward_input(const RowNormBackwardArgs& args) {
  using C = Compute<T>;
  const int64_t size = args.size;
  parallel_for(args.rows, row_grain(size), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* x = static_cast<const T*>(args.input) + r * size;
      const T* g = static_cast<const T*>(args.grad_output) + r * size;
      T* out = static_cast<T*>(args.grad_input) + r * size;
      const C* weight = args.weight ? static_cast<const C*>(args.weight) + r % args.groups * size : nullptr;
      const C mean = RowSlopes<C>::mean_of(args, r);
      GradSums sums;
      if (!weight) {
        sums = grad_sums(g, x, size, mean);
      } else {
        for (int64_t from = 0; from < size; from += kMomentRun) {
          const auto [grad, grad_x] = sum_terms<2>(
              std::min(kMomentRun, size - from),
              [mean](auto* to, auto of_g, auto of_x, auto of_weight) {
                const auto h = of_g * of_weight;
                to[0] += h;
                to[1] += h * (of_x - mean);
              },
              g + from, x + from, weight + from);
          sums.grad += static_cast<double>(grad);
          sums.grad_x += static_cast<double>(grad_x);
        }
      }
      const RowSlopes<C> s(args, r, sums);
      if (!weight) {
        row2(out, g, x, size, [s](C a, C b) { return a * s.invstd - s.shift - (b - s.mean) * s.along; });
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < size; ++i)
          out[i] = static_cast<T>(static_cast<C>(g[i]) * weight[i] * s.invstd - s.shift -
                                  (static_cast<C>(x[i]) - s.mean) * s.along);
      }
    }
  });
}

/// All gradients where a run of `inner` elements shares its parameter: every run is summed once.
template <class T>
void backward_runs(const RowNormBackwardArgs& args) {
  using C = Compute<T>;
  const int64_t size = args.size, inner = args.inner, params = size / inner;
  const Scratch<GradSums> runs(args.rows * params);
  parallel_for(args.rows, row_grain(size), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* x = static_cast<const T*>(args.input) + r * size;
      const T* g = static_cast<const T*>(args.grad_output) + r * size;
      const C* weight = args.weight ? static_cast<const C*>(args.weight) + r % args.groups * params : nullptr;
      const C mean = RowSlopes<C>::mean_of(args, r);
      GradSums* of_row = runs.get() + r * params;
      GradSums sums;
      for (int64_t p = 0; p < params; ++p) {
        of_row[p] = grad_sums(g + p * inner, x + p * inner, inner, mean);
        const double scale = weight ? static_cast<double>(weight[p]) : 1.0;
        sums.grad += of_row[p].grad * scale;
        sums.grad_x += of_row[p].grad_x * scale;
      }
      if (!args.grad_input) continue;
      T* out = static_cast<T*>(args.grad_input) + r * size;
      const RowSlopes<C> s(args, r, sums);
      for (int64_t p = 0; p < params; ++p) {
        const C factor = weight ? s.invstd * weight[p] : s.invstd;
        row2(out + p * inner, g + p * inner, x + p * inner, inner,
             [=](C a, C b) { return a * factor - s.shift - (b - s.mean) * s.along; });
      }
    }
  });
  if (!args.grad_weight && !args.grad_bias) return;
  const int64_t total = args.groups * params;
  parallel_for(total, std::max<int64_t>(1, kPointwiseGrain / std::max<int64_t>(1, args.rows)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   double weight = 0, bias = 0;
                   for (int64_t r = i / params; r < args.rows; r += args.groups) {
                     const GradSums& run = runs.get()[r * params + i % params];
                     weight += run.grad_x * static_cast<double>(static_cast<const C*>(args.invstd)[r]);
                     bias += run.grad;
                   }
                   if (args.grad_weight) static_cast<C*>(args.grad_weight)[i] = static_cast<C>(weight);
                   if (args.grad_bias) static_cast<C*>(args.grad_bias)[i] = static_cast<C>(bias);
                 }
               });
}

/// Rows whose parameter gradients are summed in one go; the partial sums are then added in order.
constexpr int64_t kParamRows = 256;

template <class T>
void backward_params(const RowNormBackwardArgs& args, bool turns) {
  using C = Compute<T>;
  const int64_t size = args.size, total = args.groups * size;
  const int64_t rows_per_chunk = std::max(kParamRows, args.groups);
  const int64_t chunks = std::max<int64_t>(1, (args.rows + rows_per_chunk - 1) / rows_per_chunk);
  std::vector<C> partial(static_cast<size_t>(2 * chunks * total));
  parallel_for(chunks,
               std::max<int64_t>(1, kPointwiseGrain / 4 / std::max<int64_t>(1, rows_per_chunk * size)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t chunk = begin; chunk < end; ++chunk) {
                   C* weight_sums = partial.data() + 2 * chunk * total;
                   C* bias_sums = weight_sums + total;
                   const int64_t last = std::min(args.rows, (chunk + 1) * rows_per_chunk);
                   if (turns) {
                     add_turned_params<T>(args, chunk * rows_per_chunk, last, weight_sums, bias_sums);
                     continue;
                   }
                   for (int64_t r = chunk * rows_per_chunk; r < last; ++r) {
                     const T* x = static_cast<const T*>(args.input) + r * size;
                     const T* g = static_cast<const T*>(args.grad_output) + r * size;
                     const C mean = RowSlopes<C>::mean_of(args, r);
                     const C invstd = static_cast<const C*>(args.invstd)[r];
                     C* w = weight_sums + r % args.groups * size;
                     C* b = bias_sums + r % args.groups * size;
#pragma GCC ivdep
                     for (int64_t i = 0; i < size; ++i) {
                       w[i] += static_cast<C>(g[i]) * (static_cast<C>(x[i]) - mean) * invstd;
                       b[i] += static_cast<C>(g[i]);
                     }
                   }
                 }
               });
  for (int which = 0; which < 2; ++which) {
    C* out = static_cast<C*>(which == 0 ? args.grad_weight : args.grad_bias);
    if (!out) continue;
    std::copy_n(partial.data() + which * total, total, out);
    for (int64_t chunk = 1; chunk < chunks; ++chunk) {
      const C* sums = partial.data() + (2 * chunk + which) * total;
#pragma GCC ivdep
      for (int64_t i = 0; i < total; ++i) out[i] += sums[i];
    }
  }
}

}  // namespace

void row_norm(const LaunchContext&, const RowNormArgs& args) {
  const bool turns = suits_turning(args);
  visit_floating(args.dtype, [&]<class T>() { turns ? normalise_turned<T>(args) : forward<T>(args); });
}

void row_norm_backward(const LaunchContext&, const RowNormBackwardArgs& args) {
  const bool turns = suits_turning(args);
  visit_floating(args.dtype, [&]<class T>() {
    if (args.inner != 1) return backward_runs<T>(args);
    if (args.grad_input) turns ? normalise_turned_backward<T>(args) : backward_input<T>(args);
    if (args.grad_weight || args.grad_bias) backward_params<T>(args, turns);
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
