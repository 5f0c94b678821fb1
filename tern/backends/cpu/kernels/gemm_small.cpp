// Matrix products with few rows or a short sum, where packing would cost more than the product itself.
// The blocked product for everything else is in gemm.cpp.
#include <algorithm>

#include "tern/backends/cpu/kernels/gemm.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

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

/// The epilogue of one register of row i from column j on.
template <class T, class Load>
[[gnu::always_inline]] inline Vec<T> finish(const Epilogue<T>& e, int64_t i, int64_t j, Vec<T> v,
                                            const Load& load_addend) {
  v *= splat(e.alpha);
  if (e.addend != nullptr) v += load_addend(e.addend + i * e.addend_row_stride + j) * splat(e.beta);
  if (e.row_bias != nullptr) v += splat(e.row_bias[i]);
  return e.relu ? relu<T>(v) : v;
}

// ---- x W: few rows
// ---------------------------------------------------------------------------------------------------

constexpr int kWideVectors = 4;
/// Rows of W that are read side by side when W comes from memory: as many streams as the hardware follows.
#if defined(__AVX512F__)
constexpr int64_t kWideDepth = 16;
#else
constexpr int64_t kWideDepth = 8;
#endif
/// Elements of W from which this pays.
constexpr int64_t kWideLarge = 65536;

template <class T>
void wide_columns(const Gemm<T>& g, int64_t begin, int64_t end) {
  constexpr int64_t kWide = kWideVectors * kLanes<T>, W = kTileColumns<T>;
  const int64_t depth = g.k * g.n > kWideLarge ? kWideDepth : std::max<int64_t>(g.k, 1);
  int64_t p = 0;
  do {
    Tile<T> tile;
    tile.k = std::min(depth, g.k - p);
    tile.a = g.a + p * g.a_col_stride;
    tile.a_row_stride = g.a_row_stride;
    tile.a_col_stride = g.a_col_stride;
    tile.b_row_stride = g.b_row_stride;
    tile.c_row_stride = g.c_row_stride;
    Epilogue<T> epilogue = g.epilogue;
    if (p > 0) {
      epilogue = {.addend = g.c,
                  .addend_row_stride = g.c_row_stride,
                  .alpha = g.epilogue.alpha,
                  .relu = g.epilogue.relu};
    }
    if (p + depth < g.k) epilogue.relu = false;
    for (int64_t j = begin; j < end;) {
      tile.b = g.b + p * g.b_row_stride + j;
      tile.c = g.c + j;
      Epilogue<T> here = epilogue;
      if (here.addend != nullptr) here.addend += j;
      if (end - j >= kWide) {
        find_micro_kernel<T, kWideRows, kWideVectors, false, Indirect::None>(g.m)(tile, here);
        j += kWide;
      } else {
        const int64_t columns = std::min(W, end - j);
        run_tile<T, Indirect::None, kWideRows>(g.m, columns, tile, here);
        j += columns;
      }
    }
    p += depth;
  } while (p < g.k);
}

// ---- a short sum
// -----------------------------------------------------------------------------------------------------

/// Columns [j, j + width) of all rows: b stays in registers. Vectors registers of columns, the last one
/// partial.
template <class T, int K, int Vectors>
void outer_columns(const Gemm<T>& g, int64_t j, int64_t width) {
  constexpr int L = kLanes<T>;
  const Tail<T> tail(width - (Vectors - 1) * L);
  Vec<T> b[K][Vectors];
  TERN_UNROLL for (int p = 0; p < K; ++p) {
    TERN_UNROLL for (int v = 0; v < Vectors; ++v) {
      const T* from = g.b + p * g.b_row_stride + j + v * L;
      b[p][v] = v == Vectors - 1 ? tail.load(from) : load(from);
    }
  }
  const Epilogue<T> epilogue = g.epilogue;
  const int64_t rows = g.m, a_rs = g.a_row_stride, a_cs = g.a_col_stride, c_rs = g.c_row_stride;
  const T* a = g.a;
  T* c = g.c + j;
  const bool plain =
      epilogue.alpha == T(1) && epilogue.addend == nullptr && epilogue.row_bias == nullptr && !epilogue.relu;
  for (int64_t i = 0; i < rows; ++i, a += a_rs, c += c_rs) {
    Vec<T> sum[Vectors];
    TERN_UNROLL for (int p = 0; p < K; ++p) {
      const Vec<T> x = splat(a[p * a_cs]);
      TERN_UNROLL for (int v = 0; v < Vectors; ++v) sum[v] = p == 0 ? x * b[p][v] : sum[v] + x * b[p][v];
    }
    TERN_UNROLL for (int v = 0; v < Vectors; ++v) {
      const bool partial = v == Vectors - 1;
      if (!plain) {
        sum[v] = finish(epilogue, i, j + v * L, sum[v],
                        [&](const T* from) { return partial ? tail.load(from) : load(from); });
      }
      if (partial)
        tail.store(c + v * L, sum[v]);
      else
        store(c + v * L, sum[v]);
    }
  }
}

template <class T, int K>
void outer(const Gemm<T>& g) {
  constexpr int64_t L = kLanes<T>;
  for (int64_t j = 0; j < g.n; j += 2 * L) {
    const int64_t width = std::min(2 * L, g.n - j);
    if (width > L)
      outer_columns<T, K, 2>(g, j, width);
    else
      outer_columns<T, K, 1>(g, j, width);
  }
}

// ---- x W^T
// -----------------------------------------------------------------------------------------------------------

#if defined(__AVX2__)

/// Four values, and the same four in every quarter of a register.
struct QuadLoader {
  __m128 operator()(const float* p) const { return _mm_loadu_ps(p); }
};
struct MaskedQuadLoader {
  __m128i mask;
  __m128 operator()(const float* p) const { return _mm_maskload_ps(p, mask); }
};

/// Four values of each of four rows (two without AVX-512), `stride` apart.
template <class LoadQuad>
[[gnu::always_inline]] inline Vec<float> load_quads(const float* from, int64_t stride,
                                                    const LoadQuad& load_quad) {
  __m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(load_quad(from)), load_quad(from + stride), 1);
#if defined(__AVX512F__)
  from += 2 * stride;
  __m256 high = _mm256_insertf128_ps(_mm256_castps128_ps256(load_quad(from)), load_quad(from + stride), 1);
  return (Vec<float>)_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
#else
  return (Vec<float>)low;
#endif
}
[[gnu::always_inline]] inline Vec<float> repeat_quad(__m128 quad) {
#if defined(__AVX512F__)
  return (Vec<float>)_mm512_maskz_broadcast_f32x4(0xffff, quad);
#else
  return (Vec<float>)_mm256_insertf128_ps(_mm256_castps128_ps256(quad), quad, 1);
#endif
}

/// In quarter l: the sums of quarter l of a, b, c and d.
[[gnu::always_inline]] inline Vec<float> sum_quads(Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> d) {
#if defined(__AVX512F__)
#define TERN_SUM2(a, b)                                                                      \
  (__builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) + \
   __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31))
  Vec<float> ab = TERN_SUM2(a, b), cd = TERN_SUM2(c, d);
  return __builtin_shufflevector(ab, cd, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
         __builtin_shufflevector(ab, cd, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
#else
#define TERN_SUM2(a, b)                                      \
  (__builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13) + \
   __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15))
  Vec<float> ab = TERN_SUM2(a, b), cd = TERN_SUM2(c, d);
  return __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) +
         __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
#endif
#undef TERN_SUM2
}

/// Rows [i, i + Rows) against the columns [0, end) of g, kLanes columns at a time; for short k. Every
/// register holds four values of k for a quarter of the columns, so that few shuffles are left to the end.
template <int Rows>
void quad_columns(const Gemm<float>& g, int64_t i, int64_t end) {
  constexpr int L = kLanes<float>;
  const int64_t k = g.k, full = k & ~int64_t{3}, b_stride = g.b_col_stride, a_stride = g.a_row_stride,
                c_stride = g.c_row_stride;
  const float* a = g.a + i * a_stride;
  const float* b = g.b;
  float* c = g.c + i * c_stride;
  const Epilogue<float> epilogue = g.epilogue;
  const MaskedQuadLoader load_rest{
      _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int>(k - full)), _mm_setr_epi32(0, 1, 2, 3))};
  for (int64_t j = 0; j < end; j += L, b += L * b_stride) {
    Vec<float> acc[Rows][4];
    TERN_UNROLL for (int r = 0; r < Rows; ++r) {
      TERN_UNROLL for (int q = 0; q < 4; ++q) acc[r][q] = Vec<float>{};
    }
    const auto add = [&](int64_t p, const auto& load_quad) __attribute__((always_inline)) {
      Vec<float> x[Rows];
      TERN_UNROLL for (int r = 0; r < Rows; ++r) x[r] = repeat_quad(load_quad(a + r * a_stride + p));
      TERN_UNROLL for (int q = 0; q < 4; ++q) {  // quarter l: column j + 4 l + q
        const Vec<float> w = load_quads(b + q * b_stride + p, 4 * b_stride, load_quad);
        TERN_UNROLL for (int r = 0; r < Rows; ++r) acc[r][q] += w * x[r];
      }
    };
    for (int64_t p = 0; p < full; p += 4) add(p, QuadLoader{});
    if (full < k) add(full, load_rest);
    TERN_UNROLL for (int r = 0; r < Rows; ++r) {
      const auto load_addend = [](const float* from) { return load(from); };
      store(c + r * c_stride + j,
            finish(epilogue, i + r, j, sum_quads(acc[r][0], acc[r][1], acc[r][2], acc[r][3]), load_addend));
    }
  }
}

/// All rows against the columns [0, end), a multiple of kLanes.
void quads(const Gemm<float>& g, int64_t end) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 4 <= g.m; i += 4) quad_columns<4>(g, i, end);
#endif
  for (; i + 2 <= g.m; i += 2) quad_columns<2>(g, i, end);
  if (i < g.m) quad_columns<1>(g, i, end);
}

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
#if defined(__AVX512F__)
[[gnu::always_inline]] inline __m256 fold(Vec<float> v) {
  return (__m256)(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                  __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
}
[[gnu::always_inline]] inline __m256d fold(Vec<double> v) {
  return (__m256d)(__builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7));
}
#else
[[gnu::always_inline]] inline __m256 fold(Vec<float> v) { return (__m256)v; }
[[gnu::always_inline]] inline __m256d fold(Vec<double> v) { return (__m256d)v; }
#endif

/// Rows [i, i + Rows) against the columns [begin, end) of g, four columns at a time.
template <class T, int Rows>
void dot_columns(const Gemm<T>& g, int64_t i, int64_t begin, int64_t end) {
  constexpr int L = kLanes<T>;
  const int64_t k = g.k, full = k - k % L, rs = g.a_row_stride, b_stride = g.b_col_stride, last = g.n - 1;
  const Tail<T> rest(k - full);
  const T* a = g.a + i * rs;
  const Epilogue<T> e = g.epilogue;
  for (int64_t j = begin; j < end; j += 4) {
    const T* b[4];  // beyond the last column the last one again
    TERN_UNROLL for (int c = 0; c < 4; ++c) b[c] = g.b + std::min(j + c, last) * b_stride;
    Vec<T> acc[Rows][4];
    TERN_UNROLL for (int r = 0; r < Rows; ++r) {
      TERN_UNROLL for (int c = 0; c < 4; ++c) acc[r][c] = Vec<T>{};
    }
    const auto add = [&](int64_t p, const auto& load_part) __attribute__((always_inline)) {
      Vec<T> bv[4];
      TERN_UNROLL for (int c = 0; c < 4; ++c) bv[c] = load_part(b[c] + p);
      TERN_UNROLL for (int r = 0; r < Rows; ++r) {
        const Vec<T> av = load_part(a + r * rs + p);
        TERN_UNROLL for (int c = 0; c < 4; ++c) acc[r][c] += av * bv[c];
      }
    };
    for (int64_t p = 0; p < full; p += L) add(p, [](const T* from) { return load(from); });
    if (full < k) add(full, [&](const T* from) { return rest.load(from); });
    TERN_UNROLL for (int r = 0; r < Rows; ++r) {
      auto s = sum_each(fold(acc[r][0]), fold(acc[r][1]), fold(acc[r][2]), fold(acc[r][3])) * e.alpha;
      const T* addend = e.addend != nullptr ? e.addend + (i + r) * e.addend_row_stride + j : nullptr;
      const T bias = e.row_bias != nullptr ? e.row_bias[i + r] : T(0);
      T* c = g.c + (i + r) * g.c_row_stride + j;
      for (int64_t t = 0; t < std::min<int64_t>(4, end - j); ++t) {
        T v = s[t];
        if (addend != nullptr) v += addend[t] * e.beta;
        if (e.row_bias != nullptr) v += bias;
        c[t] = e.relu && v < T(0) ? T(0) : v;
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

}  // namespace

template <class T>
void gemm_wide(const Gemm<T>& g) {
  split_columns(g, kWideVectors * kLanes<T>,
                [&](int64_t begin, int64_t end) { wide_columns(g, begin, end); });
}

template <class T>
void gemm_outer(const Gemm<T>& g) {
  static_assert(kOuterDepth == 4);
  switch (g.k) {
    case 1:
      return outer<T, 1>(g);
    case 2:
      return outer<T, 2>(g);
    case 3:
      return outer<T, 3>(g);
    default:
      return outer<T, 4>(g);
  }
}

template <class T>
void gemm_dot([[maybe_unused]] const Gemm<T>& g) {
#if defined(__AVX2__)
  if constexpr (sizeof(T) == 4) {
    constexpr int64_t kShort = 48;
    if (g.k <= kShort) {
      const int64_t end = g.n - g.n % kLanes<T>;
      quads(g, end);
      return dot_rows(g, end, g.n);
    }
  }
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
template void gemm_outer(const Gemm<float>&);
template void gemm_outer(const Gemm<double>&);
template void gemm_dot(const Gemm<float>&);
template void gemm_dot(const Gemm<double>&);

}  // namespace tern::cpu::TERN_CPU_VARIANT
