// Loops over contiguous rows for pointwise kernels, written so that the compiler vectorises them; large
// results go past the cache. Walking of strided operands is in walk.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "tern/backends/cpu/kernels/widen.h"
#include "tern/base/parallel.h"
#include "tern/core/dtype.h"
#include "tern/kernels/strides.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// Elements below which a pointwise kernel is not worth a second thread.
inline constexpr int64_t kPointwiseGrain = 32768;
/// Results of at least this many bytes are written past the cache.
inline constexpr int64_t kStreamBytes = int64_t{24} << 20;

[[gnu::always_inline]] inline void stream_store(void* to, const void* from, int64_t nbytes) {
#if defined(__AVX512F__)
  auto* t = static_cast<char*>(to);
  auto* f = static_cast<const char*>(from);
  for (int64_t i = 0; i < nbytes; i += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(t + i), _mm512_load_si512(f + i));
#elif defined(__AVX__)
  auto* t = static_cast<char*>(to);
  auto* f = static_cast<const char*>(from);
  for (int64_t i = 0; i < nbytes; i += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(t + i),
                        _mm256_load_si256(reinterpret_cast<const __m256i*>(f + i)));
#else
  std::memcpy(to, from, static_cast<size_t>(nbytes));
#endif
}

/// Calls `block(Out* to, int64_t first, int64_t count)` for pieces of [0, n) of a contiguous result, in
/// parallel. `to` is the result itself, or for large results a buffer whose content then goes past the cache.
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

/// Calls `body(first, count)` for pieces of `at_once` of the rows (the last may have fewer); in parallel, at
/// least `grain` pieces a thread.
template <class Body>
void for_row_pieces(int64_t rows, int64_t at_once, int64_t grain, const Body& body) {
  parallel_for((rows + at_once - 1) / at_once, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
    for (int64_t first = begin * at_once; first < std::min(rows, end * at_once); first += at_once)
      body(first, std::min(at_once, rows - first));
  });
}

/// out[i] = fast(i) in the tiles all of whose elements are inside, slow(i) in the others.
template <class Out, class Inside, class Fast, class Slow>
[[gnu::always_inline]] inline void fast_where_inside(Out* out, int64_t n, Inside inside, Fast fast,
                                                     Slow slow) {
  for (int64_t begin = 0; begin < n; begin += kWideTile) {
    const int64_t end = std::min(n, begin + kWideTile);
    uint32_t outside = 0;  // GCC vectorises no sum of bools
    for (int64_t i = begin; i < end; ++i) outside |= inside(i) ? 0u : 1u;
    if (outside == 0) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) out[i] = fast(i);
    } else {
      for (int64_t i = begin; i < end; ++i) out[i] = slow(i);
    }
  }
}

template <class F>
concept ManySteps = F::kManySteps;

template <class Out, class In, class F>
void row1(Out* out, const In* in, int64_t n, const F& functor);

/// row1 for loops over many rows; f must be a local copy, which can not be changed through `out`.
template <class Out, class In, class F>
[[gnu::always_inline]] inline void row1_inline(Out* out, const In* in, int64_t n, const F& f) {
  constexpr bool widened = kWidened<In> || kWidened<Out>;
  constexpr bool has_fast = requires(Compute<In> v) { f.fast(v); };
  if constexpr (widened && (has_fast || ManySteps<F>)) {
    Compute<In> x[kWideTile];
    Compute<Out> y[kWideTile];
    for (int64_t i = 0; i < n; i += kWideTile) {
      const int64_t count = std::min(kWideTile, n - i);
      row1(y, to_compute(in + i, count, x), count, f);
      from_compute(out + i, y, count);
    }
  } else if constexpr (widened) {
    int64_t i = 0;
    for (; i + kWideLanes <= n; i += kWideLanes) {
      Compute<In> x[kWideLanes];
      Compute<Out> y[kWideLanes];
      widen_lanes(x, in + i);
      for (int64_t j = 0; j < kWideLanes; ++j) y[j] = static_cast<Compute<Out>>(f(x[j]));
      narrow_lanes(out + i, y);
    }
    if (i < n) {
      Out last[kWideLanes];
      row1(last, PaddedLanes<In>(in + i, n - i).data, kWideLanes, f);
      std::memcpy(static_cast<void*>(out + i), last, static_cast<size_t>(n - i) * sizeof(Out));
    }
  } else if constexpr (has_fast) {
    fast_where_inside(
        out, n, [=](int64_t i) { return f.inside(in[i]); }, [=](int64_t i) { return f.fast(in[i]); },
        [=](int64_t i) { return f(in[i]); });
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(f(in[i]));
  }
}

/// out[i] = f(in[i]) for contiguous rows. `f` takes and returns the compute types. Never inlined: one
/// vectorised copy of each loop serves every way of walking (builds stay short). The 16-bit floats are
/// widened in registers, or for functors of many steps or with a `fast` form go through the loop of float.
template <class Out, class In, class F>
[[gnu::noinline]] void row1(Out* out, const In* in, int64_t n, const F& functor) {
  const F f = functor;
  row1_inline(out, in, n, f);
}

/// Rows that lie evenly spaced: how many, and from one to the next in elements.
struct RowSteps {
  int64_t rows = 1, out = 0, a = 0, b = 0;
};

/// out[i] = f(a[i], b[i]) for contiguous rows, as row1.
template <class Out, class A, class B, class F>
[[gnu::noinline]] void rows2(Out* out, const A* a, const B* b, int64_t n, const RowSteps& steps,
                             const F& functor) {
  const F f = functor;
  const RowSteps by = steps;
  constexpr bool widened = kWidened<A> || kWidened<B> || kWidened<Out>;
  constexpr bool has_fast = requires(Compute<A> v, Compute<B> w) { f.fast(v, w); };
  for (int64_t k = 0; k < by.rows; ++k, out += by.out, a += by.a, b += by.b) {
    if constexpr (widened && (has_fast || ManySteps<F>)) {
      Compute<A> x[kWideTile];
      Compute<B> y[kWideTile];
      Compute<Out> z[kWideTile];
      for (int64_t i = 0; i < n; i += kWideTile) {
        const int64_t count = std::min(kWideTile, n - i);
        rows2(z, to_compute(a + i, count, x), to_compute(b + i, count, y), count, {}, f);
        from_compute(out + i, z, count);
      }
    } else if constexpr (widened) {
      int64_t i = 0;
      for (; i + kWideLanes <= n; i += kWideLanes) {
        Compute<A> x[kWideLanes];
        Compute<B> y[kWideLanes];
        Compute<Out> z[kWideLanes];
        widen_lanes(x, a + i);
        widen_lanes(y, b + i);
        for (int64_t j = 0; j < kWideLanes; ++j) z[j] = static_cast<Compute<Out>>(f(x[j], y[j]));
        narrow_lanes(out + i, z);
      }
      if (i < n) {
        Out last[kWideLanes];
        rows2(last, PaddedLanes<A>(a + i, n - i).data, PaddedLanes<B>(b + i, n - i).data, kWideLanes, {}, f);
        std::memcpy(static_cast<void*>(out + i), last, static_cast<size_t>(n - i) * sizeof(Out));
      }
    } else if constexpr (has_fast) {
      fast_where_inside(
          out, n, [=](int64_t i) { return f.inside(a[i], b[i]); },
          [=](int64_t i) { return f.fast(a[i], b[i]); }, [=](int64_t i) { return f(a[i], b[i]); });
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(f(a[i], b[i]));
    }
  }
}
template <class Out, class A, class B, class F>
void row2(Out* out, const A* a, const B* b, int64_t n, const F& f) {
  rows2(out, a, b, n, {}, f);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
