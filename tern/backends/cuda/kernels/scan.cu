// Running sums and products, and the gradients of products. Rows that lie dense are scanned in tiles: totals
// of the tiles, their running totals, then every tile from where it starts. Other rows are walked by one
// thread each, whose neighbours walk neighbouring columns.
#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/kernels/scan.h"

namespace tern::cuda_backend {
namespace {

/// What is accumulated in: integers modulo 2^64, float32 in double, 16-bit floats in float.
template <class T>
using Acc = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t,
                               std::conditional_t<std::is_same_v<T, float>, double, Compute<T>>>;

template <class T>
__device__ __forceinline__ Acc<T> take(DType dtype, const void* in, int64_t i) {
  if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<Acc<T>>(load<int64_t>(dtype, in, i));
  else
    return static_cast<Acc<T>>(widen(static_cast<const T*>(in)[i]));
}
template <class T>
__device__ __forceinline__ void put(void* out, int64_t i, Acc<T> a) {
  static_cast<T*>(out)[i] = narrow<T>(static_cast<Compute<T>>(a));
}

template <class A>
struct Join {
  ScanOp op;
  __device__ __forceinline__ A operator()(A a, A b) const { return op == ScanOp::Sum ? a + b : a * b; }
  __device__ __forceinline__ A identity() const { return op == ScanOp::Sum ? A(0) : A(1); }
};

inline constexpr int kScanItems = 8;
inline constexpr int64_t kTile = kBlock * kScanItems;

/// Tile blockIdx.x of row blockIdx.y. With `totals` alone (no `starts`) only its total is written; else the
/// scan, from what stands in `starts`, if anything.
template <class T>
__global__ void scan_tiles(ScanArgs args, Acc<T>* totals, const Acc<T>* starts, int64_t tiles) {
  using A = Acc<T>;
  __shared__ A warp_totals[kBlock / 32];
  const Join<A> join{args.op};
  const int64_t row = blockIdx.y, tile = blockIdx.x, size = args.size;
  const auto address = [&](int64_t i) { return row * size + (args.reverse ? size - 1 - i : i); };
  const int64_t first = tile * kTile + int64_t{threadIdx.x} * kScanItems;
  A values[kScanItems];
  A sum = join.identity();
#pragma unroll
  for (int k = 0; k < kScanItems; ++k) {
    if (first + k < size) sum = join(sum, take<T>(args.dtype, args.in, address(first + k)));
    values[k] = sum;
  }
  // Running totals of the warp's threads, then of the block's warps.
  A running = sum;
  for (int step = 1; step < 32; step *= 2) {
    const A other = __shfl_up_sync(kAllLanes, running, step);
    if (threadIdx.x % 32 >= step) running = join(other, running);
  }
  if (threadIdx.x % 32 == 31) warp_totals[threadIdx.x / 32] = running;
  A before = __shfl_up_sync(kAllLanes, running, 1);
  if (threadIdx.x % 32 == 0) before = join.identity();
  __syncthreads();
  A base = join.identity();
  for (unsigned w = 0; w < threadIdx.x / 32; ++w) base = join(base, warp_totals[w]);
  if (totals && !starts) {
    if (threadIdx.x == kBlock - 1) totals[row * tiles + tile] = join(base, running);
    return;
  }
  if (starts) base = join(starts[row * tiles + tile], base);
  before = join(base, before);
#pragma unroll
  for (int k = 0; k < kScanItems; ++k)
    if (first + k < size) put<T>(args.out, address(first + k), join(before, values[k]));
}

/// Totals of tiles become what each tile starts from; a thread for each row.
template <class A>
__global__ void start_tiles(A* totals, int64_t rows, int64_t tiles, Join<A> join) {
  const int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  A sum = join.identity();
  for (int64_t t = 0; t < tiles; ++t) {
    const A total = totals[row * tiles + t];
    totals[row * tiles + t] = sum;
    sum = join(sum, total);
  }
}

template <class T>
__global__ void scan_columns(ScanArgs args) {
  using A = Acc<T>;
  const int64_t column = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (column >= args.outer * args.inner) return;
  const Join<A> join{args.op};
  const int64_t start = column / args.inner * args.size * args.inner + column % args.inner;
  A sum = join.identity();
  for (int64_t i = 0; i < args.size; ++i) {
    const int64_t at = start + (args.reverse ? args.size - 1 - i : i) * args.inner;
    sum = join(sum, take<T>(args.dtype, args.in, at));
    put<T>(args.out, at, sum);
  }
}

template <class T>
void run_scan(const LaunchContext& context, const ScanArgs& args) {
  using A = Acc<T>;
  if (args.outer == 0 || args.size == 0 || args.inner == 0) return;
  if (args.inner > 1 || args.outer >= 8192)
    return start(context, blocks(ceil_div(args.outer * args.inner, kBlock)), kBlock, 0, scan_columns<T>,
                 args);
  const int64_t tiles = ceil_div(args.size, kTile);
  Storage scratch;
  A* totals = nullptr;
  const dim3 grid(blocks(tiles), static_cast<unsigned>(args.outer));
  if (tiles > 1) {
    scratch = workspace(context, static_cast<size_t>(tiles * args.outer) * sizeof(A));
    totals = static_cast<A*>(scratch->data());
    start(context, grid, kBlock, 0, scan_tiles<T>, args, totals, nullptr, tiles);
    start(context, blocks(ceil_div(args.outer, 32)), 32, 0, start_tiles<A>, totals, args.outer, tiles,
          Join<A>{args.op});
  }
  start(context, grid, kBlock, 0, scan_tiles<T>, args, nullptr, static_cast<const A*>(totals), tiles);
}

template <class T>
__global__ void prod_gradients(ProdBackwardArgs args) {
  using A = Acc<T>;
  const int64_t column = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (column >= args.outer * args.inner) return;
  const int64_t start = column / args.inner * args.size * args.inner + column % args.inner;
  // Down: what stands after k. Up: what stands before it.
  A after = args.cumulative ? A(0) : take<T>(args.dtype, args.grad_out, column);
  for (int64_t i = args.size - 1; i >= 0; --i) {
    const int64_t at = start + i * args.inner;
    const A x = take<T>(args.dtype, args.in, at);
    const A sum = args.cumulative ? take<T>(args.dtype, args.grad_out, at) + after : after;
    put<T>(args.grad_in, at, sum);
    after = sum * x;
  }
  A before = A(1);
  for (int64_t i = 0; i < args.size; ++i) {
    const int64_t at = start + i * args.inner;
    put<T>(args.grad_in, at, take<T>(args.dtype, args.grad_in, at) * before);
    before *= take<T>(args.dtype, args.in, at);
  }
}

}  // namespace

void scan(const LaunchContext& context, const ScanArgs& args) {
  if (is_floating_point(args.dtype))
    return visit_floating(args.dtype, [&]<class T>() { run_scan<T>(context, args); });
  if (!is_computable(args.dtype)) throw_not_computable(args.dtype);
  run_scan<int64_t>(context, args);
}

void prod_backward(const LaunchContext& context, const ProdBackwardArgs& args) {
  if (args.outer == 0 || args.size == 0 || args.inner == 0) return;
  visit_floating(args.dtype, [&]<class T>() {
    start(context, blocks(ceil_div(args.outer * args.inner, kBlock)), kBlock, 0, prod_gradients<T>, args);
  });
}

}  // namespace tern::cuda_backend
