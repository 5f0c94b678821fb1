// Small matrices, a warp for each; triangles, and what exchanges of rows make of their order.
#include "tern/backends/cuda/kernels/linalg.h"

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/kernels/real_types.h"

namespace tern::cuda_backend {
namespace {

constexpr int kOrder = static_cast<int>(kSmallOrder);
/// Threads of a block that solves triangular systems, a right side for each.
constexpr int kSolvers = 128;
/// Rows up to which their order is kept in a block's memory.
constexpr int kSharedRows = 4096;

/// Row `lane` of the matrix is that thread's.
template <class T>
__global__ void __launch_bounds__(kOrder) factor_cholesky(T* a, int32_t* info, int n) {
  __shared__ T tile[kOrder][kOrder + 1];
  const int lane = threadIdx.x;
  a += static_cast<int64_t>(blockIdx.x) * n * n;
  for (int i = 0; i < n; ++i)
    if (lane < n) tile[i][lane] = a[i * n + lane];
  __syncthreads();
  int failed = 0;
  for (int j = 0; j < n; ++j) {
    const T pivot = tile[j][j];
    if (!(pivot > 0)) {
      failed = j + 1;
      break;
    }
    const T root = sqrt(pivot);
    __syncthreads();
    if (lane >= j && lane < n) tile[lane][j] = lane == j ? root : tile[lane][j] / root;
    __syncthreads();
    if (lane > j && lane < n)
      for (int p = j + 1; p <= lane; ++p) tile[lane][p] -= tile[lane][j] * tile[p][j];
    __syncthreads();
  }
  __syncthreads();
  for (int i = 0; i < n; ++i)
    if (lane < n) a[i * n + lane] = lane <= i ? tile[i][lane] : T(0);
  if (lane == 0) info[blockIdx.x] = failed;
}

template <class T>
__global__ void __launch_bounds__(kOrder) factor_lu(T* a, int32_t* pivots, int32_t* info, int m, int n) {
  __shared__ T tile[kOrder][kOrder + 1];
  const int lane = threadIdx.x, count = m < n ? m : n;
  a += static_cast<int64_t>(blockIdx.x) * m * n;
  for (int j = 0; j < n; ++j)
    if (lane < m) tile[lane][j] = a[j * m + lane];
  __syncthreads();
  int failed = 0;
  for (int j = 0; j < count; ++j) {
    int pivot = j;
    for (int i = j + 1; i < m; ++i)
      if (abs(tile[i][j]) > abs(tile[pivot][j])) pivot = i;
    const T divisor = tile[pivot][j];
    if (lane == 0) pivots[static_cast<int64_t>(blockIdx.x) * count + j] = pivot + 1;
    __syncthreads();
    if (divisor == T(0)) {
      if (failed == 0) failed = j + 1;
      continue;
    }
    if (lane < n && pivot != j) {
      const T other = tile[j][lane];
      tile[j][lane] = tile[pivot][lane];
      tile[pivot][lane] = other;
    }
    __syncthreads();
    if (lane > j && lane < m) {
      const T factor = tile[lane][j] /= divisor;
      for (int c = j + 1; c < n; ++c) tile[lane][c] -= factor * tile[j][c];
    }
    __syncthreads();
  }
  for (int j = 0; j < n; ++j)
    if (lane < m) a[j * m + lane] = tile[lane][j];
  if (lane == 0) info[blockIdx.x] = failed;
}

template <class T>
__global__ void __launch_bounds__(kBlock) clear_rows(T* a, int64_t rows, int64_t n) {
  const int64_t row = blockIdx.x;
  if (row >= rows) return;
  for (int64_t j = row % n + 1 + threadIdx.x; j < n; j += kBlock) a[row * n + j] = T(0);
}

/// An upper triangle is solved from below: it is read with both orders turned round.
template <class T>
__global__ void __launch_bounds__(kSolvers) solve_small(TriangularSolveArgs args, unsigned tiles) {
  __shared__ T triangle[kOrder][kOrder + 1];
  const int n = static_cast<int>(args.n);
  const int64_t matrix = blockIdx.x / tiles;
  const int64_t side = static_cast<int64_t>(blockIdx.x % tiles) * kSolvers + threadIdx.x;
  const T* a = static_cast<const T*>(args.a) + matrix * args.a_batch_stride;
  const auto place = [&](int i) { return static_cast<int64_t>(args.upper ? n - 1 - i : i); };
  for (int i = threadIdx.x; i < n * n; i += kSolvers) {
    const int row = i / n, column = i % n;
    if (column < row || (column == row && !args.unit))
      triangle[row][column] = a[place(row) * args.a_row_stride + place(column) * args.a_col_stride];
  }
  __syncthreads();
  if (side >= args.k) return;
  T* x = static_cast<T*>(args.x) + matrix * args.x_batch_stride + side * args.x_col_stride;
  T values[kOrder];
#pragma unroll
  for (int i = 0; i < kOrder; ++i) {
    if (i >= n) break;
    T value = x[place(i) * args.x_row_stride];
#pragma unroll
    for (int p = 0; p < i; ++p) value -= triangle[i][p] * values[p];
    if (!args.unit) value /= triangle[i][i];
    values[i] = value;
    x[place(i) * args.x_row_stride] = value;
  }
}

/// A block for each matrix; its first thread exchanges.
__global__ void __launch_bounds__(kBlock) order_rows(LuPermutationArgs args) {
  __shared__ int order[kSharedRows];
  const int64_t m = args.m;
  int64_t* const rows = args.permutation + blockIdx.x * m;
  const int32_t* const pivots = args.pivots + blockIdx.x * args.count;
  const bool fits = m <= kSharedRows;
  for (int64_t i = threadIdx.x; i < m; i += kBlock) {
    if (fits)
      order[i] = static_cast<int>(i);
    else
      rows[i] = i;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const auto exchange = [&](auto* in) {
      for (int64_t i = 0; i < args.count; ++i) {
        const int64_t other = pivots[i] - 1;
        const auto kept = in[i];
        in[i] = in[other];
        in[other] = kept;
      }
    };
    if (fits)
      exchange(order);
    else
      exchange(rows);
  }
  __syncthreads();
  if (fits)
    for (int64_t i = threadIdx.x; i < m; i += kBlock) rows[i] = order[i];
}

template <class T>
__global__ void __launch_bounds__(kBlock) find_nan(const T* values, int64_t n, int32_t* info) {
  int found = 0;
  for (int64_t i = threadIdx.x; i < n; i += kBlock) {
    const T value = values[blockIdx.x * n + i];
    if (value != value) found = 1;
  }
  found = block_reduce(found, Larger());
  if (threadIdx.x == 0 && found != 0 && info[blockIdx.x] == 0) info[blockIdx.x] = static_cast<int32_t>(n);
}

}  // namespace

void cholesky_small(const LaunchContext& context, const CholeskyArgs& args) {
  visit_real(args.dtype, [&]<class T>() {
    start(context, blocks(args.batch), kOrder, 0, factor_cholesky<T>, static_cast<T*>(args.a), args.info,
          static_cast<int>(args.n));
  });
}

void lu_factor_small(const LaunchContext& context, const LuFactorArgs& args) {
  visit_real(args.dtype, [&]<class T>() {
    start(context, blocks(args.batch), kOrder, 0, factor_lu<T>, static_cast<T*>(args.a), args.pivots,
          args.info, static_cast<int>(args.m), static_cast<int>(args.n));
  });
}

void clear_above(const LaunchContext& context, const CholeskyArgs& args) {
  const int64_t rows = args.batch * args.n;
  visit_real(args.dtype, [&]<class T>() {
    start(context, blocks(rows), kBlock, 0, clear_rows<T>, static_cast<T*>(args.a), rows, args.n);
  });
}

void triangular_solve_small(const LaunchContext& context, const TriangularSolveArgs& args) {
  const int64_t tiles = ceil_div(args.k, kSolvers);
  visit_real(args.dtype, [&]<class T>() {
    start(context, blocks(tiles * args.batch), kSolvers, 0, solve_small<T>, args,
          static_cast<unsigned>(tiles));
  });
}

void lu_permutation(const LaunchContext& context, const LuPermutationArgs& args) {
  start(context, blocks(args.batch), kBlock, 0, order_rows, args);
}

void report_nan(const LaunchContext& context, DType dtype, const void* values, int64_t batch, int64_t n,
                int32_t* info) {
  visit_real(dtype, [&]<class T>() {
    start(context, blocks(batch), kBlock, 0, find_nan<T>, static_cast<const T*>(values), n, info);
  });
}

}  // namespace tern::cuda_backend
