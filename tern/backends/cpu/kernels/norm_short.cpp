// Normalisation of rows of few elements, forward and backward: many rows at once, each loop across them.
// Longer rows, and the formulas, are in norm.cpp.
#include "tern/backends/cpu/kernels/norm.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Pieces of rows that are worth a thread.
int64_t grain(int64_t size) { return kPointwiseGrain / 4 / (kTurnedRows * size); }

/// mean[j] and invstd[j] of each row j of a turned tile. Rows that are not there give whatever they give.
template <class C>
void statistics(const C* x, int64_t size, double eps, C* mean, C* invstd) {
  alignas(64) C deviations[kTurnedRows] = {}, squares[kTurnedRows] = {};
  std::fill_n(mean, kTurnedRows, C(0));
  for (int64_t i = 0; i < size; ++i)
#pragma GCC ivdep
    for (int64_t j = 0; j < kTurnedRows; ++j) mean[j] += x[i * kTurnedRows + j];
#pragma GCC ivdep
  for (int64_t j = 0; j < kTurnedRows; ++j) mean[j] /= static_cast<C>(size);
  for (int64_t i = 0; i < size; ++i)
#pragma GCC ivdep
    for (int64_t j = 0; j < kTurnedRows; ++j) {
      const C d = x[i * kTurnedRows + j] - mean[j];
      deviations[j] += d;
      squares[j] += d * d;
    }
  for (int64_t j = 0; j < kTurnedRows; ++j) {
    const Moments m = corrected(mean[j], deviations[j], squares[j], size);
    mean[j] = static_cast<C>(m.mean);
    invstd[j] = static_cast<C>(1 / std::sqrt(m.variance() + eps));
  }
}

template <class C>
void root_mean_square(const C* x, int64_t size, double eps, C* invstd) {
  alignas(64) C squares[kTurnedRows] = {};
  for (int64_t i = 0; i < size * kTurnedRows; i += kTurnedRows)
#pragma GCC ivdep
    for (int64_t j = 0; j < kTurnedRows; ++j) squares[j] += x[i + j] * x[i + j];
#pragma GCC ivdep
  for (int64_t j = 0; j < kTurnedRows; ++j)
    invstd[j] =
        static_cast<C>(1 / std::sqrt(static_cast<double>(squares[j]) / static_cast<double>(size) + eps));
}

/// What the gradients take of up to kTurnedRows rows; the rows that are not there are zeros.
template <class T>
struct BackwardTile {
  using C = Compute<T>;
  alignas(64) C x[kTurned] = {}, g[kTurned] = {}, mean[kTurnedRows] = {}, invstd[kTurnedRows] = {};

  BackwardTile(const RowNormBackwardArgs& args, int64_t first, int64_t count) {
    const int64_t size = args.size;
    turn_rows(static_cast<const T*>(args.input) + first * size, count, size, x);
    turn_rows(static_cast<const T*>(args.grad_output) + first * size, count, size, g);
    if (!args.rms) std::copy_n(static_cast<const C*>(args.mean) + first, count, mean);
    std::copy_n(static_cast<const C*>(args.invstd) + first, count, invstd);
  }
};

}  // namespace

template <class T>
void normalise_turned(const RowNormArgs& args) {
  using C = Compute<T>;
  const int64_t size = args.size;
  for_row_pieces(args.rows, kTurnedRows, grain(size), [&](int64_t first, int64_t count) {
    alignas(64) C x[kTurned] = {}, mean[kTurnedRows] = {}, invstd[kTurnedRows];
    turn_rows(static_cast<const T*>(args.input) + first * size, count, size, x);
    if (args.rms) {
      root_mean_square(x, size, args.eps, invstd);
    } else {
      statistics(x, size, args.eps, mean, invstd);
      std::copy_n(mean, count, static_cast<C*>(args.mean) + first);
    }
    std::copy_n(invstd, count, static_cast<C*>(args.invstd) + first);
    for (int64_t i = 0; i < size; ++i) {
      const C weight = args.weight ? static_cast<const C*>(args.weight)[i] : C(1);
      const C bias = args.bias ? static_cast<const C*>(args.bias)[i] : C(0);
      C* row = x + i * kTurnedRows;
#pragma GCC ivdep
      for (int64_t j = 0; j < kTurnedRows; ++j) row[j] = (row[j] - mean[j]) * invstd[j] * weight + bias;
    }
    turn_back(x, count, size, static_cast<T*>(args.output) + first * size);
  });
}

template <class T>
void normalise_turned_backward(const RowNormBackwardArgs& args) {
  using C = Compute<T>;
  const int64_t size = args.size;
  for_row_pieces(args.rows, kTurnedRows, grain(size), [&](int64_t first, int64_t count) {
    BackwardTile<T> tile(args, first, count);
    C *x = tile.x, *g = tile.g;
    const C *mean = tile.mean, *invstd = tile.invstd;
    alignas(64) C grad[kTurnedRows] = {}, grad_x[kTurnedRows] = {};
    for (int64_t i = 0; i < size; ++i) {
      const C weight = args.weight ? static_cast<const C*>(args.weight)[i] : C(1);
      C *of_x = x + i * kTurnedRows, *of_g = g + i * kTurnedRows;
#pragma GCC ivdep
      for (int64_t j = 0; j < kTurnedRows; ++j) {
        of_x[j] -= mean[j];
        of_g[j] *= weight;
        grad[j] += of_g[j];
        grad_x[j] += of_g[j] * of_x[j];
      }
    }
    const C n = static_cast<C>(size);
#pragma GCC ivdep
    for (int64_t j = 0; j < kTurnedRows; ++j) {
      grad_x[j] *= invstd[j] * invstd[j] * invstd[j] / n;
      grad[j] = args.rms ? C(0) : grad[j] * invstd[j] / n;
    }
    for (int64_t i = 0; i < size * kTurnedRows; i += kTurnedRows)
#pragma GCC ivdep
      for (int64_t j = 0; j < kTurnedRows; ++j)
        g[i + j] = g[i + j] * invstd[j] - grad[j] - x[i + j] * grad_x[j];
    turn_back(g, count, size, static_cast<T*>(args.grad_input) + first * size);
  });
}

template <class T>
void add_turned_params(const RowNormBackwardArgs& args, int64_t begin, int64_t end, Compute<T>* weight_sums,
                       Compute<T>* bias_sums) {
  using C = Compute<T>;
  const int64_t size = args.size;
  for (int64_t first = begin; first < end; first += kTurnedRows) {
    const BackwardTile<T> tile(args, first, std::min(kTurnedRows, end - first));
    const C *x = tile.x, *g = tile.g, *mean = tile.mean, *invstd = tile.invstd;
    for (int64_t i = 0; i < size; ++i) {
      const C *of_x = x + i * kTurnedRows, *of_g = g + i * kTurnedRows;
      const auto [weight_sum, bias_sum] = sum_terms<2>(
          kTurnedRows,
          [](auto* sums, auto grad, auto value, auto mean_of_row, auto invstd_of_row) {
            sums[0] += grad * (value - mean_of_row) * invstd_of_row;
            sums[1] += grad;
          },
          of_g, of_x, mean, invstd);
      weight_sums[i] += weight_sum;
      bias_sums[i] += bias_sum;
    }
  }
}

#define TERN_FOR_DTYPE(T)                                                 \
  template void normalise_turned<T>(const RowNormArgs&);                  \
  template void normalise_turned_backward<T>(const RowNormBackwardArgs&); \
  template void add_turned_params<T>(const RowNormBackwardArgs&, int64_t, int64_t, Compute<T>*, Compute<T>*);
TERN_FOR_DTYPE(float)
TERN_FOR_DTYPE(double)
TERN_FOR_DTYPE(Half)
TERN_FOR_DTYPE(BFloat16)
#undef TERN_FOR_DTYPE

}  // namespace tern::cpu::TERN_CPU_VARIANT
