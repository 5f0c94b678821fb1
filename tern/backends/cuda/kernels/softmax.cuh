// What softmax and its gradients share: how columns are cut, and rows.
#pragma once

#include "tern/backends/cuda/kernels/rows.cuh"
#include "tern/kernels/softmax.h"

namespace tern::cuda_backend {

/// How the threads of softmax over columns are laid out: few long columns are cut into pieces, which need a
/// second kernel.
struct ColumnGrid {
  dim3 grid, block;
  int64_t piece;  ///< elements of a column

  ColumnGrid(int64_t columns, int64_t size) : block(column_block(columns, size)) {
    constexpr int64_t kLeast = 16;  // elements of a thread
    const int64_t across = ceil_div(columns, block.x);
    const int64_t pieces = across < 1024 ? std::min(2048 / across, size / (block.y * kLeast)) : 1;
    piece = ceil_div(size, std::max<int64_t>(1, pieces));
    grid = dim3(blocks(across), size > 0 ? blocks(ceil_div(size, piece)) : 1);
  }
};

/// This block's columns of a tensor [outer, size, inner], or a piece of them; threads along y share one.
struct ColumnPart {
  int64_t inner, columns, column, start, begin, end;

  __device__ __forceinline__ ColumnPart(const SoftmaxShape& shape, int64_t piece)
      : inner(shape.inner),
        columns(shape.outer * inner),
        column(int64_t{blockIdx.x} * blockDim.x + threadIdx.x),
        start(column / inner * shape.size * inner + column % inner),
        begin(blockIdx.y * piece),
        end(column < columns ? min(begin + piece, shape.size) : 0) {}
  /// Whether this thread writes what there is one of for a column.
  __device__ __forceinline__ bool is_first() const { return threadIdx.y == 0 && column < columns; }
  __device__ __forceinline__ int64_t at(int64_t i) const { return start + i * inner; }

  /// Calls use(i, from(i)) for this thread's elements, several read ahead.
  template <class Read, class Use>
  __device__ __forceinline__ void read(const Read& from, const Use& use) const {
    read_ahead<4>(begin + threadIdx.y, end, blockDim.y, from, use);
  }
  /// The sum of f(i) over the whole part.
  template <class C, class F>
  __device__ __forceinline__ C sum(const F& f) const {
    return column_reduce(sum_of<C>(begin + threadIdx.y, end, blockDim.y, f), Plus());
  }
  /// What the pieces of the column gave, [pieces, columns], put together.
  template <class P, class Op>
  __device__ __forceinline__ P join(const P* partial, unsigned pieces, P identity, const Op& op) const {
    P all = identity;
    if (column < columns)
      read_ahead<4>(
          threadIdx.y, pieces, blockDim.y, [&](unsigned p) { return partial[p * columns + column]; },
          [&](unsigned, const P& other) { all = op(all, other); });
    return column_reduce(all, op);
  }
};

}  // namespace tern::cuda_backend
