// Few rows of 16-bit floats against columns (x W^T) or rows (x W) that lie side by side in memory: the
// weights are read once, where they are, and widened in registers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "tern/backends/cpu/kernels/gemm.h"
#include "tern/backends/cpu/kernels/gemm_narrow.h"
#include "tern/backends/cpu/kernels/gemm_vec.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/widen.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

typedef float Lanes __attribute__((vector_size(kWideLanes * sizeof(float))));

/// Partial sums of each result, on every variant.
constexpr int64_t kPartials = 16;
constexpr int kPieces = kPartials / kWideLanes;
constexpr int kColumns = 4;
#if defined(__AVX512F__)
constexpr int kRows = 4;
#else
constexpr int kRows = 1;
#endif

[[gnu::always_inline]] inline float sum_partials(const Lanes (&partial)[kPieces]) {
  alignas(64) float values[kPartials];
  std::memcpy(values, partial, sizeof values);
  for (int64_t half = kPartials / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) values[i] += values[i + half];
  return values[0];
}

/// Rows of x against the columns [j, j + kColumns) of the product, those beyond `end` not stored.
template <int Rows, class T>
void dot_columns(const float* x, int64_t x_stride, const T* w, int64_t w_stride, int64_t k, int64_t j,
                 int64_t end, float* out, int64_t out_stride) {
  const T* column[kColumns];
  for (int c = 0; c < kColumns; ++c) column[c] = w + std::min(j + c, end - 1) * w_stride;
  Lanes sums[Rows][kColumns][kPieces] = {};
  const auto add = [&](int64_t p, const auto& from) __attribute__((always_inline)) {
    TERN_UNROLL for (int piece = 0; piece < kPieces; ++piece) {
      Lanes wide[kColumns];
      TERN_UNROLL for (int c = 0; c < kColumns; ++c)
          widen_lanes(reinterpret_cast<float*>(&wide[c]), from(c) + piece * kWideLanes);
      TERN_UNROLL for (int r = 0; r < Rows; ++r) {
        Lanes values;
        std::memcpy(&values, x + r * x_stride + p + piece * kWideLanes, sizeof values);
        TERN_UNROLL for (int c = 0; c < kColumns; ++c) sums[r][c][piece] += values * wide[c];
      }
    }
  };
  const int64_t full = k - k % kPartials;
  for (int64_t p = 0; p < full; p += kPartials) add(p, [&](int c) { return column[c] + p; });
  if (full < k) {
    T rest[kColumns][kPartials] = {};
    for (int c = 0; c < kColumns; ++c)
      std::memcpy(static_cast<void*>(rest[c]), column[c] + full, static_cast<size_t>(k - full) * sizeof(T));
    add(full, [&](int c) { return rest[c]; });
  }
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < kColumns && j + c < end; ++c) out[r * out_stride + j + c] = sum_partials(sums[r][c]);
}

/// Columns whose sums stay in the first-level cache.
constexpr int64_t kColumnsOfRows = 2048;

}  // namespace

template <class T>
void add_narrow_rows(const float* x, const T* w, int64_t w_stride, int64_t rows, int64_t columns,
                     float* sums) {
  const auto add = [&](auto all, int64_t j) __attribute__((always_inline)) {
    Lanes sum;
    std::memcpy(&sum, sums + j, sizeof sum);
    const int64_t count = all ? kRowsAtOnce : rows;
    TERN_UNROLL for (int64_t p = 0; p < count; ++p) {
      Lanes wide;
      widen_lanes(reinterpret_cast<float*>(&wide), w + p * w_stride + j);
      sum += x[p] * wide;
    }
    std::memcpy(sums + j, &sum, sizeof sum);
  };
  int64_t j = 0;
  if (rows == kRowsAtOnce)
    for (; j + kWideLanes <= columns; j += kWideLanes) add(std::true_type(), j);
  else
    for (; j + kWideLanes <= columns; j += kWideLanes) add(std::false_type(), j);
  for (; j < columns; ++j)
    for (int64_t p = 0; p < rows; ++p)
      sums[j] = std::fma(x[p], static_cast<float>(w[p * w_stride + j]), sums[j]);
}

template <class T>
void gemm_narrow_dot(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_stride, const T* b,
                     int64_t b_stride, float* out) {
  const int64_t x_stride = round_to_line<float>(std::max<int64_t>(k, 1));
  const Scratch<float> x(m * x_stride);
  for (int64_t i = 0; i < m; ++i) {
    widen_row(x.get() + i * x_stride, a + i * a_stride, k);
    std::fill(x.get() + i * x_stride + k, x.get() + (i + 1) * x_stride, 0.0f);
  }
  const int64_t threads =
      threads_for(static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  const int64_t grain = threads > 1 ? (n + threads - 1) / threads : n;
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; j += kColumns) {
      int64_t i = 0;
      if constexpr (kRows == 4)
        for (; i + 4 <= m; i += 4)
          dot_columns<4>(x.get() + i * x_stride, x_stride, b, b_stride, k, j, end, out + i * n, n);
      for (; i < m; ++i)
        dot_columns<1>(x.get() + i * x_stride, x_stride, b, b_stride, k, j, end, out + i * n, n);
    }
  });
}

template <class T>
void gemm_narrow_rows(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_stride, const T* b,
                      int64_t b_stride, float* out) {
  const Scratch<float> x(m * k);
  for (int64_t i = 0; i < m; ++i) widen_row(x.get() + i * k, a + i * a_stride, k);
  const int64_t threads =
      threads_for(static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  const int64_t columns = std::min(kColumnsOfRows, round_to_line<float>((n + threads - 1) / threads));
  const int64_t parts = (n + columns - 1) / columns;
  parallel_for(parts, threads > 1 ? 1 : parts, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t j = part * columns, count = std::min(columns, n - j);
      for (int64_t i = 0; i < m; ++i) std::fill_n(out + i * n + j, count, 0.0f);
      for (int64_t p = 0; p < k; p += kRowsAtOnce) {
        const int64_t rows = std::min(kRowsAtOnce, k - p);
        for (int64_t i = 0; i < m; ++i)
          add_narrow_rows(x.get() + i * k + p, b + p * b_stride + j, b_stride, rows, count, out + i * n + j);
      }
    }
  });
}

template void add_narrow_rows(const float*, const Half*, int64_t, int64_t, int64_t, float*);
template void add_narrow_rows(const float*, const BFloat16*, int64_t, int64_t, int64_t, float*);
template void gemm_narrow_rows(int64_t, int64_t, int64_t, const Half*, int64_t, const Half*, int64_t, float*);
template void gemm_narrow_rows(int64_t, int64_t, int64_t, const BFloat16*, int64_t, const BFloat16*, int64_t,
                               float*);
template void gemm_narrow_dot(int64_t, int64_t, int64_t, const Half*, int64_t, const Half*, int64_t, float*);
template void gemm_narrow_dot(int64_t, int64_t, int64_t, const BFloat16*, int64_t, const BFloat16*, int64_t,
                              float*);

}  // namespace tern::cpu::TERN_CPU_VARIANT
