// Loops over strided operands for pointwise kernels: contiguous and broadcast rows are written so that the compiler
// vectorises them, large contiguous results go past the cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "tern/base/parallel.h"
#include "tern/core/dtype.h"
#include "tern/kernels/strides.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// The type in which an element is computed with.
template <class T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<Half> {
  using type = float;
};
template <>
struct ComputeOf<BFloat16> {
  using type = float;
};
template <class T>
using Compute = typename ComputeOf<T>::type;

/// Elements below which a pointwise kernel is not worth a second thread.
inline constexpr int64_t kPointwiseGrain = 32768;
/// Results of at least this many bytes are written past the cache.
inline constexpr int64_t kStreamBytes = int64_t{24} << 20;

[[gnu::always_inline]] inline void stream_store(void* to, const void* from, int64_t nbytes) {
#if defined(__AVX512F__)
  auto* t = static_cast<char*>(to);
  auto* f = static_cast<const char*>(from);
  for (int64_t i = 0; i < nbytes; i += 64) _mm512_stream_si512(reinterpret_cast<__m512i*>(t + i), _mm512_load_si512(f + i));
#elif defined(__AVX__)
  auto* t = static_cast<char*>(to);
  auto* f = static_cast<const char*>(from);
  for (int64_t i = 0; i < nbytes; i += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(t + i), _mm256_load_si256(reinterpret_cast<const __m256i*>(f + i)));
#else
  std::memcpy(to, from, static_cast<size_t>(nbytes));
#endif
}

/// Calls `block(Out* to, int64_t first, int64_t count)` for pieces of [0, n) of a contiguous result, in parallel. `to` is the
/// result itself, or for large results a buffer whose content then goes past the cache.
template <class Out, class Block>
void for_each_block(Out* out, int64_t n, Block&& block) {
  if (n <= kPointwiseGrain) {
    block(out, int64_t{0}, n);
    return;
  }
  bool past_cache = n * static_cast<int64_t>(sizeof(Out)) >= kStreamBytes;
  constexpr int64_t kTile = 4096 / static_cast<int64_t>(sizeof(Out));
  parallel_for(n, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    if (past_cache) {
      alignas(64) Out tile[kTile];
      while (begin < end && reinterpret_cast<uintptr_t>(out + begin) % 64 != 0) {
        block(out + begin, begin, int64_t{1});
        ++begin;
      }
      for (; begin + kTile <= end; begin += kTile) {
        block(tile, begin, kTile);
        stream_store(out + begin, tile, kTile * static_cast<int64_t>(sizeof(Out)));
      }
#if defined(__AVX__)
      _mm_sfence();
#endif
    }
    if (begin < end) block(out + begin, begin, end - begin);
  });
}

/// out[i] = f(in[i]) for contiguous rows. `f` takes and returns the compute types.
template <class Out, class In, class F>
[[gnu::always_inline]] inline void row1(Out* out, const In* in, int64_t n, const F& f) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(f(static_cast<Compute<In>>(in[i])));
}

template <class Out, class A, class B, class F>
[[gnu::always_inline]] inline void row2(Out* out, const A* a, const B* b, int64_t n, const F& f) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(f(static_cast<Compute<A>>(a[i]), static_cast<Compute<B>>(b[i])));
}

/// out = f(in) over a geometry (out, in).
template <class Out, class In, class F>
void map1(const Geometry<2>& g, Out* out, const In* in, const F& f) {
  if (g.flat()) {
    for_each_block(out, g.numel, [&](Out* to, int64_t first, int64_t count) { row1(to, in + first, count, f); });
    return;
  }
  const int64_t so = g.strides[0][g.ndim - 1], si = g.strides[1][g.ndim - 1];
  parallel_for(g.numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    walk_rows(g, begin, end, [&](const int64_t(&offset)[2], int64_t n) {
      Out* o = out + offset[0];
      const In* x = in + offset[1];
      if (so == 1 && si == 1) {
        row1(o, x, n, f);
      } else {
        for (int64_t i = 0; i < n; ++i) o[i * so] = static_cast<Out>(f(static_cast<Compute<In>>(x[i * si])));
      }
    });
  });
}

/// out = f(a, b) over a geometry (out, a, b). Null `a` or `b` stands for a scalar.
template <class Out, class T, class F>
void map2(const Geometry<3>& g, Out* out, const T* a, const T* b, Compute<T> scalar, const F& f) {
  using C = Compute<T>;
  auto row_scalar_b = [&f](Out* o, const T* x, C y, int64_t n) { row1(o, x, n, [&f, y](C v) { return f(v, y); }); };
  auto row_scalar_a = [&f](Out* o, C x, const T* y, int64_t n) { row1(o, y, n, [&f, x](C v) { return f(x, v); }); };
  if (g.ndim == 1 && (g.strides[0][0] == 1 || g.numel == 1)) {
    bool a_fixed = a == nullptr || g.strides[1][0] == 0, b_fixed = b == nullptr || g.strides[2][0] == 0;
    bool a_dense = a != nullptr && (g.strides[1][0] == 1 || g.numel == 1);
    bool b_dense = b != nullptr && (g.strides[2][0] == 1 || g.numel == 1);
    if (a_dense && b_dense) {
      for_each_block(out, g.numel, [&](Out* to, int64_t first, int64_t n) { row2(to, a + first, b + first, n, f); });
      return;
    }
    if (a_dense && b_fixed) {
      C y = b ? static_cast<C>(*b) : scalar;
      for_each_block(out, g.numel, [&](Out* to, int64_t first, int64_t n) { row_scalar_b(to, a + first, y, n); });
      return;
    }
    if (a_fixed && b_dense) {
      C x = a ? static_cast<C>(*a) : scalar;
      for_each_block(out, g.numel, [&](Out* to, int64_t first, int64_t n) { row_scalar_a(to, x, b + first, n); });
      return;
    }
  }
  const int inner = g.ndim - 1;
  const int64_t so = g.strides[0][inner], sa = a ? g.strides[1][inner] : 0, sb = b ? g.strides[2][inner] : 0;
  parallel_for(g.numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    walk_rows(g, begin, end, [&](const int64_t(&offset)[3], int64_t n) {
      Out* o = out + offset[0];
      const T* x = a ? a + offset[1] : nullptr;
      const T* y = b ? b + offset[2] : nullptr;
      if (so == 1 && sa == 1 && sb == 1) {
        row2(o, x, y, n, f);
      } else if (so == 1 && sa == 1 && sb == 0) {
        row_scalar_b(o, x, y ? static_cast<C>(*y) : scalar, n);
      } else if (so == 1 && sa == 0 && sb == 1) {
        row_scalar_a(o, x ? static_cast<C>(*x) : scalar, y, n);
      } else {
        for (int64_t i = 0; i < n; ++i) {
          C u = x ? static_cast<C>(x[i * sa]) : scalar;
          C v = y ? static_cast<C>(y[i * sb]) : scalar;
          o[i * so] = static_cast<Out>(f(u, v));
        }
      }
    });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
