// What softmax and its gradient share: blocks of a row as the compute type, results written past the cache.
#pragma once

#include "tern/backends/cpu/kernels/reduce_ops.h"
#include "tern/backends/cpu/kernels/short_rows.h"
#include "tern/backends/cpu/kernels/turned_rows.h"
#include "tern/kernels/math.h"
#include "tern/kernels/softmax.h"

namespace tern::cpu::TERN_CPU_VARIANT::softmax_detail {

/// Elements that are worked on while they lie in the first cache.
inline constexpr int64_t kBlock = 1024;
/// Rows from this size on are cut in pieces of kPiece, which threads share.
inline constexpr int64_t kLongRow = 32768;
inline constexpr int64_t kPiece = 16384;
/// Elements of the short rows that are worked on together, and of the longest such row.
inline constexpr int64_t kTogether = 2048, kShortest = wide::kShortRow, kLongest = kTogether / kShortest;
static_assert(kShortest <= kMostTurned);
/// Columns worked on together: few where their rows then stay in the second cache, else so many that memory
/// is read in long runs.
inline constexpr int64_t kMinTile = 64;
inline constexpr int64_t kMaxTile = 256;
inline constexpr int64_t kTileBytes = 256 * 1024;
/// Rows after which the sums of columns are put away.
inline constexpr int64_t kFlush = 16;
/// Elements worth a thread.
inline constexpr int64_t kGrain = 8192;

inline int64_t grain(int64_t elements) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, elements));
}

/// results[r] = the row r of `rows` dense ones combined.
template <template <class> class Op, class C>
void reduce_short_rows(const C* x, int64_t rows, int64_t size, C* results) {
  wide::reduce_rows(Op<C>{}, x, size, rows, size, results, [](C value) { return value; });
}

/// to[r * size + i] = values[r].
template <class C>
void spread_over_rows(const C* values, int64_t rows, int64_t size, C* to) {
  const int64_t sizes[] = {rows, size}, strides[] = {1, 0};
  gather_rows({2, sizes, strides, sizeof(C)}, values, 0, rows, to);
}

template <class C, template <class> class Op>
C reduce_dense(const C* p, int64_t n) {
  Geometry<1> g;
  g.ndim = 1;
  g.numel = g.sizes[0] = n;
  g.strides[0][0] = 1;
  return wide::reduce_row(Op<C>{}, p, g, 0, n);
}

/// The sum of the n values that `fill(C* block, first, count)` writes block by block.
template <class T, class Fill>
Compute<T> sum_blocks(int64_t n, const Fill& fill) {
  using C = Compute<T>;
  C block[kBlock];
  double sum = 0;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    fill(block, first, count);
    sum += static_cast<double>(reduce_dense<C, wide::Sum>(block, count));
  }
  return static_cast<C>(sum);
}

/// to[0 .. n) = what `fill(C* block, first, count)` writes, past the cache when `stream` and the addresses
/// allow it.
template <class T, class Fill>
void write_blocks(T* to, int64_t n, bool stream, const Fill& fill) {
  using C = Compute<T>;
  alignas(64) C block[kBlock];
  stream = stream && reinterpret_cast<uintptr_t>(to) % 64 == 0;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    if constexpr (std::is_same_v<C, T>) {
      const int64_t nbytes = count * static_cast<int64_t>(sizeof(T));
      if (stream && nbytes % 64 == 0) {
        fill(block, first, count);
        stream_store(to + first, block, nbytes);
      } else {
        fill(to + first, first, count);
      }
    } else {
      fill(block, first, count);
      from_compute(to + first, block, count);
    }
  }
}

/// Ends a task that wrote past the cache.
inline void end_stream(bool stream) {
#if defined(__AVX__)
  if (stream) _mm_sfence();
#else
  (void)stream;
#endif
}

template <class T>
int64_t tile_width(const SoftmaxShape& s) {
  const bool fits = s.size * kMinTile * static_cast<int64_t>(sizeof(T)) <= kTileBytes;
  return std::max<int64_t>(1, std::min(s.inner, fits ? kMinTile : kMaxTile));
}

template <class T>
bool streams(const SoftmaxShape& s) {
  return s.outer * s.size * s.inner * static_cast<int64_t>(sizeof(T)) >= kStreamBytes;
}

}  // namespace tern::cpu::TERN_CPU_VARIANT::softmax_detail
