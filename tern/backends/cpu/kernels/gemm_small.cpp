// Matrix products with few rows, where packing would cost more than the product: x W by wide tiles, x W^T by
// dot products.
#include <algorithm>

#include "tern/backends/cpu/kernels/gemm.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

constexpr int kWideVectors = 4;

/// Columns [begin, end) of g.
template <class T>
void wide_columns(const Gemm<T>& g, int64_t begin, int64_t end) {
  constexpr int64_t kWide = kWideVectors * kLanes<T>, W = kTileColumns<T>;
  Tile<T> tile;
  tile.k = g.k;
  tile.a = g.a;
  tile.a_row_stride = g.a_row_stride;
  tile.a_col_stride = g.a_col_stride;
  tile.b_row_stride = g.b_row_stride;
  tile.c_row_stride = g.c_row_stride;
  for (int64_t j = begin; j < end;) {
    tile.b = g.b + j;
    tile.c = g.c + j;
    Epilogue<T> epilogue = g.epilogue;
    if (epilogue.addend != nullptr) epilogue.addend += j;
    if (end - j >= kWide) {
      find_micro_kernel<T, kWideRows, kWideVectors, false, false>(g.m)(tile, epilogue);
      j += kWide;
    } else {
      const int64_t columns = std::min(W, end - j);
      run_tile<T, false>(g.m, columns, tile, epilogue);
      j += columns;
    }
  }
}

#if defined(__AVX2__)

/// Four registers of partial sums to four sums.
[[gnu::always_inline]] inline __m128 sum_each(__m256 a, __m256 b, __m256 c, __m256 d) {
  __m256 ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
  __m256 cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
  __m256 s = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
  return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}
[[gnu::always_inline]] inline __m256d sum_each(__m256d a, __m256d b, __m256d c, __m256d d) {
  __m256d ab = _mm256_hadd_pd(a, b), cd = _mm256_hadd_pd(c, d);
  return _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x20), _mm256_permute2f128_pd(ab, cd, 0x31));
}

template <class T>
struct Dot;
template <>
struct Dot<float> {
  using Vector = __m256;
  using Sums = __m128;
  static constexpr int kWidth = 8;
  static __m256i mask(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static Vector load(const float* p, __m256i mask) { return _mm256_maskload_ps(p, mask); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Sums load_sums(const float* p) { return _mm_loadu_ps(p); }
  static void store_sums(float* p, Sums v) { _mm_storeu_ps(p, v); }
};
template <>
struct Dot<double> {
  using Vector = __m256d;
  using Sums = __m256d;
  static constexpr int kWidth = 4;
  static __m256i mask(int64_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  static Vector load(const double* p) { return _mm256_loadu_pd(p); }
  static Vector load(const double* p, __m256i mask) { return _mm256_maskload_pd(p, mask); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
  static Sums load_sums(const double* p) { return _mm256_loadu_pd(p); }
  static void store_sums(double* p, Sums v) { _mm256_storeu_pd(p, v); }
};

/// Rows [i, i + Rows) against the columns [begin, end) of g, four columns at a time.
template <class T, int Rows>
void dot_columns(const Gemm<T>& g, int64_t i, int64_t begin, int64_t end) {
  using D = Dot<T>;
  using V = typename D::Vector;
  constexpr int K = D::kWidth;
  const int64_t k = g.k, full = k - k % K;
  const __m256i mask = D::mask(k - full);
  const T* a = g.a + i * g.a_row_stride;
  const int64_t rs = g.a_row_stride;
  const Epilogue<T>& e = g.epilogue;
  for (int64_t j = begin; j < end; j += 4) {
    // The last columns are taken from further left, so that there are always four where there can be.
    const int64_t last = g.n - 1;
    const T* b[4];
    TERN_UNROLL for (int c = 0; c < 4; ++c) b[c] = g.b + std::min(j + c, last) * g.b_col_stride;
    V acc[Rows][4];
    TERN_UNROLL for (int r = 0; r < Rows; ++r) { TERN_UNROLL for (int c = 0; c < 4; ++c) acc[r][c] = V{}; }
    for (int64_t p = 0; p < full; p += K) {
      V bv[4];
      TERN_UNROLL for (int c = 0; c < 4; ++c) bv[c] = D::load(b[c] + p);
      TERN_UNROLL for (int r = 0; r < Rows; ++r) {
        V av = D::load(a + r * rs + p);
        TERN_UNROLL for (int c = 0; c < 4; ++c) acc[r][c] = D::fma(av, bv[c], acc[r][c]);
      }
    }
    if (full < k) {
      V bv[4];
      TERN_UNROLL for (int c = 0; c < 4; ++c) bv[c] = D::load(b[c] + full, mask);
      TERN_UNROLL for (int r = 0; r < Rows; ++r) {
        V av = D::load(a + r * rs + full, mask);
        TERN_UNROLL for (int c = 0; c < 4; ++c) acc[r][c] = D::fma(av, bv[c], acc[r][c]);
      }
    }
    TERN_UNROLL for (int r = 0; r < Rows; ++r) {
      typename D::Sums s = sum_each(acc[r][0], acc[r][1], acc[r][2], acc[r][3]) * e.alpha;
      const T* addend = e.addend != nullptr ? e.addend + (i + r) * e.addend_row_stride + j : nullptr;
      const T bias = e.row_bias != nullptr ? e.row_bias[i + r] : T(0);
      T* c = g.c + (i + r) * g.c_row_stride + j;
      if (j + 4 <= end) {
        if (addend != nullptr) s += D::load_sums(addend) * e.beta;
        if (e.row_bias != nullptr) s += bias;
        if (e.relu) s = s < typename D::Sums{} ? typename D::Sums{} : s;
        D::store_sums(c, s);
      } else {
        T sums[4];
        D::store_sums(sums, s);
        for (int64_t t = 0; t < end - j; ++t) {
          T v = sums[t];
          if (addend != nullptr) v += addend[t] * e.beta;
          v += bias;
          c[t] = e.relu && v < T(0) ? T(0) : v;
        }
      }
    }
  }
}

#if defined(__AVX512VL__)
constexpr int kDotBlock = 4;
#else
constexpr int kDotBlock = 2;
#endif

template <class T>
void dot_rows(const Gemm<T>& g, int64_t begin, int64_t end) {
  int64_t i = 0;
  if constexpr (kDotBlock == 4)
    for (; i + 4 <= g.m; i += 4) dot_columns<T, 4>(g, i, begin, end);
  for (; i + 2 <= g.m; i += 2) dot_columns<T, 2>(g, i, begin, end);
  if (i < g.m) dot_columns<T, 1>(g, i, begin, end);
}

#endif

/// Calls body(begin, end) for the columns of g, on several cores if the work is worth it.
template <class T, class Body>
void split_columns(const Gemm<T>& g, int64_t step, const Body& body) {
  const int64_t threads =
      threads_for(static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k));
  if (threads == 1) return body(int64_t{0}, g.n);
  const int64_t steps = (g.n + step - 1) / step;
  parallel_for(steps, (steps + threads - 1) / threads,
               [&](int64_t begin, int64_t end) { body(begin * step, std::min(g.n, end * step)); });
}

}  // namespace

template <class T>
void gemm_wide(const Gemm<T>& g) {
  split_columns(g, kWideVectors * kLanes<T>,
                [&](int64_t begin, int64_t end) { wide_columns(g, begin, end); });
}

template <class T>
void gemm_dot([[maybe_unused]] const Gemm<T>& g) {
#if defined(__AVX2__)
  // Columns in chunks whose rows of W stay in the first-level cache while all rows of x pass.
  const int64_t chunk =
      std::max<int64_t>(4, 16384 / (std::max<int64_t>(g.k, 1) * static_cast<int64_t>(sizeof(T))) / 4 * 4);
  split_columns(g, 4, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; j += chunk) dot_rows(g, j, std::min(end, j + chunk));
  });
#endif
}

template void gemm_wide(const Gemm<float>&);
template void gemm_wide(const Gemm<double>&);
template void gemm_dot(const Gemm<float>&);
template void gemm_dot(const Gemm<double>&);

}  // namespace tern::cpu::TERN_CPU_VARIANT
