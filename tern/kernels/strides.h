// Stride walking, written once for all backends: several operands of one shape are reduced to the fewest
// dimensions that describe them all, and walked in rows.
#pragma once

#include <cstdint>

#include "tern/core/shape.h"

namespace tern {

/// Dimensions that a kernel can walk after neighbouring ones were merged.
inline constexpr int kMaxDims = 8;

/// One shape with the strides (in elements) of N operands; dimension ndim-1 is the innermost. ndim is at
/// least 1.
template <int N>
struct Geometry {
  int ndim;
  int64_t numel;
  int64_t sizes[kMaxDims];
  int64_t strides[N][kMaxDims];

  /// All operands dense in the same order.
  bool flat() const {
    if (ndim != 1) return false;
    for (int i = 0; i < N; ++i)
      if (strides[i][0] != 1 && numel != 1) return false;
    return true;
  }
};

[[noreturn]] void throw_too_many_dims(IntArrayRef shape);

/// One dimension, all operands dense.
template <int N>
inline void set_flat(Geometry<N>& g, int64_t numel) {
  g.ndim = 1;
  g.numel = numel;
  g.sizes[0] = numel;
  for (int i = 0; i < N; ++i) g.strides[i][0] = 1;
}

/// Merges dimensions of `shape`, given each operand's strides in that shape (0 where it broadcasts). The
/// order of dimensions is kept. Throws NotImplementedError when more than kMaxDims remain.
template <int N>
void collapse(Geometry<N>& g, IntArrayRef shape, const int64_t* const (&strides)[N]) {
  g.ndim = 0;
  g.numel = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    g.numel *= shape[d];
    if (shape[d] == 1) continue;
    bool merges = g.ndim > 0;
    for (int i = 0; i < N && merges; ++i) merges = g.strides[i][g.ndim - 1] == strides[i][d] * shape[d];
    if (merges) {
      g.sizes[g.ndim - 1] *= shape[d];
    } else {
      if (g.ndim == kMaxDims) throw_too_many_dims(shape);
      g.sizes[g.ndim++] = shape[d];
    }
    for (int i = 0; i < N; ++i) g.strides[i][g.ndim - 1] = strides[i][d];
  }
  if (g.ndim == 0) set_flat(g, g.numel);
}

/// Strides of an operand of `shape`/`strides` when broadcast to `target` (right-aligned); `result` has
/// target's rank.
inline void broadcast_strides(IntArrayRef shape, IntArrayRef strides, IntArrayRef target, int64_t* result) {
  size_t offset = target.size() - shape.size();
  for (size_t d = 0; d < target.size(); ++d)
    result[d] = d < offset || (shape[d - offset] == 1 && target[d] != 1) ? 0 : strides[d - offset];
}

/// Calls `row(const int64_t (&offsets)[N], int64_t count)` for the pieces of innermost rows that make up the
/// elements [begin, end) in row-major order; offsets are in elements.
template <int N, class Row>
void walk_rows(const Geometry<N>& g, int64_t begin, int64_t end, Row&& row) {
  int64_t index[kMaxDims];
  int64_t offsets[N] = {};
  int64_t rest = begin;
  for (int d = g.ndim - 1; d >= 0; --d) {
    index[d] = rest % g.sizes[d];
    rest /= g.sizes[d];
    for (int i = 0; i < N; ++i) offsets[i] += index[d] * g.strides[i][d];
  }
  const int inner = g.ndim - 1;
  while (begin < end) {
    int64_t left = g.sizes[inner] - index[inner];
    int64_t count = left < end - begin ? left : end - begin;
    row(offsets, count);
    begin += count;
    if (begin >= end) return;
    for (int i = 0; i < N; ++i) offsets[i] -= index[inner] * g.strides[i][inner];
    index[inner] = 0;
    for (int d = inner - 1; d >= 0; --d) {
      for (int i = 0; i < N; ++i) offsets[i] += g.strides[i][d];
      if (++index[d] < g.sizes[d]) break;
      for (int i = 0; i < N; ++i) offsets[i] -= g.sizes[d] * g.strides[i][d];
      index[d] = 0;
    }
  }
}

}  // namespace tern
