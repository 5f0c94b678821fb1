// Products of blocks of attention, in float32: what attention.cpp and attention_backward.cpp share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/backends/cpu/kernels/gemm.h"
#include "tern/backends/cpu/kernels/widen.h"
#include "tern/kernels/attention.h"

namespace tern::cpu::TERN_CPU_VARIANT {

/// A matrix of floats, whose element [i, j] is at data + i * row_stride + j * column_stride.
struct FloatMatrix {
  float* data;
  int64_t row_stride;
  int64_t column_stride = 1;
};
inline FloatMatrix transposed(const FloatMatrix& x) { return {x.data, x.column_stride, x.row_stride}; }

/// `columns`, rounded up to whole panels.
inline int64_t whole_panels(int64_t columns) {
  constexpr int64_t W = kTileColumns<float>;
  return (columns + W - 1) / W * W;
}

/// Some rows of an operand as float: where they are, or in `wide`.
template <class T>
FloatMatrix rows_of(const AttentionOperand& x, int64_t batch, int64_t head, int64_t first, int64_t rows,
                    int64_t width, float* wide) {
  if constexpr (kWidened<T>) {
    for (int64_t r = 0; r < rows; ++r)
      widen_row(wide + r * width, x.row<const T>(batch, head, first + r), width);
    return {wide, width};
  } else {
    return {x.row<float>(batch, head, first), x.row_stride};
  }
}

/// The right operand of products, [depth, columns], in panels of kTileColumns columns, each `depth` rows
/// long.
inline void pack_panels(const FloatMatrix& from, int64_t depth, int64_t columns, float* to) {
  constexpr int64_t W = kTileColumns<float>;
  for (int64_t j = 0; j < columns; j += W)
    pack_panel(from.data + j * from.column_stride, from.column_stride, from.row_stride,
               std::min(W, columns - j), depth, to + j * depth);
}

/// Rows first, first + 1, ... of what pack_panels() has written with `depth`.
struct Panels {
  const float* data;
  int64_t depth;
  int64_t first = 0;
};

/// c = alpha * a b, or c += a b: a is [rows, depth], b [depth, columns].
inline void multiply(const FloatMatrix& a, int64_t rows, int64_t depth, const Panels& b, int64_t columns,
                     const FloatMatrix& c, float alpha = 1, bool adds = false) {
  constexpr int64_t W = kTileColumns<float>;
  for (int64_t p = 0; p < depth; p += kMaxDepth<float>)
    for (int64_t j = 0; j < columns; j += W)
      for (int64_t i = 0; i < rows; i += kMaxRows) {
        const int64_t width = std::min(W, columns - j);
        Tile<float> tile;
        tile.k = std::min(kMaxDepth<float>, depth - p);
        tile.a = a.data + i * a.row_stride + p * a.column_stride;
        tile.a_row_stride = a.row_stride;
        tile.a_col_stride = a.column_stride;
        tile.b = b.data + j * b.depth + (b.first + p) * width;
        tile.b_row_stride = width;
        tile.c = c.data + i * c.row_stride + j;
        tile.c_row_stride = c.row_stride;
        const Epilogue<float> epilogue{
            .addend = p > 0 || adds ? tile.c : nullptr, .addend_row_stride = c.row_stride, .alpha = alpha};
        run_tile<float, Indirect::None>(std::min<int64_t>(kMaxRows, rows - i), width, tile, epilogue);
      }
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
