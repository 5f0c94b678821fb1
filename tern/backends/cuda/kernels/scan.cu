// Running sums, products and extremes, and the gradients of products. Rows that lie dense are scanned in
// tiles: totals of the tiles, their running totals, then every tile from where it starts. Other rows are
// walked by one thread each, whose neighbours walk neighbouring columns; few long ones in pieces, as tiles.
#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/kernels/scan.h"
#include "tern/kernels/scan_steps.h"

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

/// Sums and products of rows of T: what is read, joined and written.
template <class T, ScanOp op>
struct RunningSum {
  using A = Acc<T>;
  ScanArgs args;

  __device__ __forceinline__ A operator()(A a, A b) const {
    if constexpr (op == ScanOp::Sum) {
      return a + b;
    } else if constexpr (op == ScanOp::Prod) {
      return a * b;
    } else {
      return scan_steps::log_add<Compute<T>>(a, b);
    }
  }
  __device__ __forceinline__ A identity() const {
    return op == ScanOp::Sum ? A(0) : op == ScanOp::Prod ? A(1) : A(-std::numeric_limits<double>::infinity());
  }
  __device__ __forceinline__ A read(int64_t i, int64_t) const { return take<T>(args.dtype, args.in, i); }
  __device__ __forceinline__ void write(int64_t i, A a) const { put<T>(args.out, i, a); }
  __host__ __device__ __forceinline__ bool reverse() const { return args.reverse; }
};

template <class C>
struct Placed {
  C value;
  int64_t at;  ///< below 0: nothing yet
};

/// The largest or smallest elements and their places.
template <class C>
struct RunningExtreme {
  using A = Placed<C>;
  ScanExtremeArgs args;

  __device__ __forceinline__ A operator()(const A& a, const A& b) const {
    if (a.at < 0) return b;
    return b.at >= 0 && scan_steps::takes_over(b.value, a.value, args.largest) ? b : a;
  }
  __device__ __forceinline__ A identity() const { return {C(0), -1}; }
  __device__ __forceinline__ A read(int64_t i, int64_t place) const {
    return {load<C>(args.dtype, args.in, i), place};
  }
  __device__ __forceinline__ void write(int64_t i, const A& a) const {
    store<C>(args.dtype, args.values, i, a.value);
    args.indices[i] = a.at;
  }
  __host__ __device__ __forceinline__ bool reverse() const { return false; }
};

inline constexpr int kScanItems = 8;
inline constexpr int64_t kTile = kBlock * kScanItems;

/// Where element i of a tile lies in shared memory: threads that take several in a row meet in no bank.
template <class A>
__device__ __forceinline__ constexpr int64_t in_tile(int64_t i) {
  return i + i / (128 / sizeof(A));
}

/// Tile by tile, row by row. With `totals` alone (no `starts`) only the tile's total is written; else the
/// scan, from what stands in `starts`, if anything. Memory is read and written side by side, by way of shared
/// memory.
template <class S, class A = typename S::A>
__global__ void scan_tiles(S join, A* totals, const A* starts, uint32_t tiles) {
  __shared__ A shared[in_tile<A>(kTile)];
  const int64_t row = blockIdx.x / tiles, begin = blockIdx.x % tiles * kTile, size = join.args.size;
  const auto address = [&](int64_t i) { return row * size + (join.reverse() ? size - 1 - i : i); };
  A values[kScanItems];
#pragma unroll
  for (int k = 0; k < kScanItems; ++k) {
    const int64_t i = begin + k * kBlock + threadIdx.x;
    values[k] = i < size ? join.read(address(i), i) : join.identity();
  }
#pragma unroll
  for (int k = 0; k < kScanItems; ++k) shared[in_tile<A>(k * kBlock + threadIdx.x)] = values[k];
  __syncthreads();
  A sum = join.identity(), total;
#pragma unroll
  for (int k = 0; k < kScanItems; ++k)
    values[k] = sum = join(sum, shared[in_tile<A>(threadIdx.x * kScanItems + k)]);
  const A before =
      block_scan(sum, starts ? starts[blockIdx.x] : join.identity(), join, join.identity(), total);
  if (totals && !starts) {
    if (threadIdx.x == 0) totals[blockIdx.x] = total;
    return;
  }
#pragma unroll
  for (int k = 0; k < kScanItems; ++k)
    shared[in_tile<A>(threadIdx.x * kScanItems + k)] = join(before, values[k]);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kScanItems; ++k) {
    const int64_t i = begin + k * kBlock + threadIdx.x;
    if (i < size) join.write(address(i), shared[in_tile<A>(k * kBlock + threadIdx.x)]);
  }
}

/// Totals of a row's tiles become what each tile starts from; a block for each row.
template <class S, class A = typename S::A>
__global__ void start_tiles(S join, A* totals, int64_t tiles) {
  A* row = totals + blockIdx.x * tiles;
  A start = join.identity();
  for (int64_t begin = 0; begin < tiles; begin += kTile) {
    const int64_t first = begin + int64_t{threadIdx.x} * kScanItems;
    A values[kScanItems], sum = join.identity(), total;
#pragma unroll
    for (int k = 0; k < kScanItems; ++k) values[k] = first + k < tiles ? row[first + k] : join.identity();
#pragma unroll
    for (int k = 0; k < kScanItems; ++k) sum = join(sum, values[k]);
    A before = block_scan(sum, start, join, join.identity(), total);
#pragma unroll
    for (int k = 0; k < kScanItems; ++k) {
      if (first + k < tiles) row[first + k] = before;
      before = join(before, values[k]);
    }
    start = join(start, total);
  }
}

/// Columns, or pieces of them; `totals` and `starts` as above, [pieces, columns].
template <class S, class A = typename S::A>
__global__ void scan_columns(S join, A* totals, const A* starts, int64_t piece) {
  const auto& args = join.args;
  const int64_t column = int64_t{blockIdx.x} * kBlock + threadIdx.x, columns = args.outer * args.inner;
  if (column >= columns) return;
  const int64_t start = column / args.inner * args.size * args.inner + column % args.inner;
  const auto address = [&](int64_t i) {
    return start + (join.reverse() ? args.size - 1 - i : i) * args.inner;
  };
  const int64_t begin = blockIdx.y * piece, end = min(begin + piece, args.size);
  A sum = starts ? starts[blockIdx.y * columns + column] : join.identity();
  for (int64_t first = begin; first < end; first += kScanItems) {
    A values[kScanItems];  // read before the first one is written
#pragma unroll
    for (int k = 0; k < kScanItems; ++k)
      if (first + k < end) values[k] = join.read(address(first + k), first + k);
#pragma unroll
    for (int k = 0; k < kScanItems; ++k) {
      if (first + k >= end) break;
      sum = join(sum, values[k]);
      if (!totals) join.write(address(first + k), sum);
    }
  }
  if (totals) totals[blockIdx.y * columns + column] = sum;
}

/// Totals of a column's pieces become what each piece starts from.
template <class S, class A = typename S::A>
__global__ void start_columns(S join, A* totals, int64_t columns, int64_t pieces) {
  const int64_t column = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (column >= columns) return;
  A start = join.identity();
  for (int64_t first = 0; first < pieces; first += kScanItems) {
    A values[kScanItems];
#pragma unroll
    for (int k = 0; k < kScanItems; ++k)
      if (first + k < pieces) values[k] = totals[(first + k) * columns + column];
#pragma unroll
    for (int k = 0; k < kScanItems; ++k) {
      if (first + k >= pieces) break;
      totals[(first + k) * columns + column] = start;
      start = join(start, values[k]);
    }
  }
}

template <class S>
void run_columns(const LaunchContext& context, const S& join) {
  using A = typename S::A;
  const auto& args = join.args;
  constexpr int64_t kLeast = 64, kMostPieces = 128, kEnoughBlocks = 1024;
  const int64_t columns = args.outer * args.inner, across = ceil_div(columns, kBlock);
  const int64_t most = std::min({kEnoughBlocks / across, kMostPieces, args.size / kLeast});
  // Neighbouring rows of one element each share no line of memory: those are whole.
  const int64_t piece = args.inner == 1 || most < 2 ? args.size : ceil_div(args.size, most);
  const int64_t pieces = ceil_div(args.size, piece);
  const dim3 grid(blocks(across), blocks(pieces));
  if (pieces == 1) return start(context, grid, kBlock, 0, scan_columns<S>, join, nullptr, nullptr, piece);
  const Storage scratch = workspace(context, static_cast<size_t>(pieces * columns) * sizeof(A));
  A* const totals = static_cast<A*>(scratch->data());
  start(context, grid, kBlock, 0, scan_columns<S>, join, totals, nullptr, piece);
  start(context, grid.x, kBlock, 0, start_columns<S>, join, totals, columns, pieces);
  start(context, grid, kBlock, 0, scan_columns<S>, join, nullptr, static_cast<const A*>(totals), piece);
}

/// Rows up to the first size are walked by a thread each, up to the second where there are many.
constexpr int64_t kShortRow = 32, kShortOfManyRows = 128;

template <class S>
void run_scan(const LaunchContext& context, const S& join) {
  using A = typename S::A;
  const auto& args = join.args;
  if (args.outer == 0 || args.size == 0 || args.inner == 0) return;
  if (args.inner > 1 || args.size <= kShortRow || (args.outer >= 8192 && args.size <= kShortOfManyRows))
    return run_columns(context, join);
  const int64_t tiles = ceil_div(args.size, kTile);
  Storage scratch;
  A* totals = nullptr;
  const unsigned grid = blocks(tiles * args.outer);
  if (tiles > 1) {
    scratch = workspace(context, static_cast<size_t>(tiles * args.outer) * sizeof(A));
    totals = static_cast<A*>(scratch->data());
    start(context, grid, kBlock, 0, scan_tiles<S>, join, totals, nullptr, blocks(tiles));
    start(context, blocks(args.outer), kBlock, 0, start_tiles<S>, join, totals, tiles);
  }
  start(context, grid, kBlock, 0, scan_tiles<S>, join, nullptr, static_cast<const A*>(totals), blocks(tiles));
}

/// `afters`: an element of working memory for each element, as wide as is computed; may be grad_in.
template <class T>
__global__ void prod_gradients(ProdBackwardArgs args, Acc<T>* afters) {
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
    afters[at] = sum;
    after = sum * x;
  }
  A before = A(1);
  for (int64_t i = 0; i < args.size; ++i) {
    const int64_t at = start + i * args.inner;
    put<T>(args.grad_in, at, afters[at] * before);
    before *= take<T>(args.dtype, args.in, at);
  }
}

/// The same of products alone, of rows that lie dense: a block for each, which walks over it in tiles.
template <class T>
__global__ void __launch_bounds__(kBlock) prod_row_gradients(ProdBackwardArgs args, Acc<T>* afters) {
  using A = Acc<T>;
  constexpr int kItems = 4;
  const int64_t start = blockIdx.x * args.size, tile = int64_t{blockDim.x} * kItems;
  const RunningSum<T, ScanOp::Prod> times{};
  // Calls use(i, the product of `from` and all elements before number i) in one direction.
  const auto walk = [&](A from, bool up, const auto& use) {
    for (int64_t base = 0; base < args.size; base += tile) {
      const int64_t first = base + threadIdx.x * kItems;
      const auto number = [&](int j) { return up ? first + j : args.size - 1 - first - j; };
      A x[kItems], product = A(1), total;
#pragma unroll
      for (int j = 0; j < kItems; ++j)
        x[j] = first + j < args.size ? take<T>(args.dtype, args.in, start + number(j)) : A(1);
#pragma unroll
      for (int j = 0; j < kItems; ++j) product *= x[j];
      A before = block_scan(product, from, times, times.identity(), total);
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        if (first + j < args.size) use(start + number(j), before);
        before *= x[j];
      }
      from *= total;
    }
  };
  walk(take<T>(args.dtype, args.grad_out, blockIdx.x), /*up=*/false,
       [&](int64_t at, A after) { afters[at] = after; });
  __syncthreads();
  walk(A(1), /*up=*/true, [&](int64_t at, A before) { put<T>(args.grad_in, at, afters[at] * before); });
}

}  // namespace

void scan(const LaunchContext& context, const ScanArgs& args) {
  const auto run = [&]<class T>() {
    if constexpr (!std::is_same_v<T, int64_t>)
      if (args.op == ScanOp::LogSumExp) return run_scan(context, RunningSum<T, ScanOp::LogSumExp>{args});
    if (args.op == ScanOp::Sum)
      run_scan(context, RunningSum<T, ScanOp::Sum>{args});
    else
      run_scan(context, RunningSum<T, ScanOp::Prod>{args});
  };
  if (is_floating_point(args.dtype)) return visit_floating(args.dtype, run);
  if (!is_computable(args.dtype)) throw_not_computable(args.dtype);
  run.template operator()<int64_t>();
}

void scan_extreme(const LaunchContext& context, const ScanExtremeArgs& args) {
  visit_compute(args.dtype, [&]<class C>() { run_scan(context, RunningExtreme<C>{args}); });
}

void prod_backward(const LaunchContext& context, const ProdBackwardArgs& args) {
  if (args.outer == 0 || args.size == 0 || args.inner == 0) return;
  visit_floating(args.dtype, [&]<class T>() {
    using A = Acc<T>;
    const bool fits = sizeof(A) == sizeof(T);
    const auto nbytes = static_cast<size_t>(args.outer * args.size * args.inner) * sizeof(A);
    const Storage scratch = fits ? Storage() : workspace(context, nbytes);
    auto* afters = static_cast<A*>(fits ? args.grad_in : scratch->data());
    constexpr int64_t kLongRows = 32;
    if (!args.cumulative && args.inner == 1 && args.size >= kLongRows)
      return start(context, blocks(args.outer), args.size <= kBlock ? 64 : kBlock, 0, prod_row_gradients<T>,
                   args, afters);
    start(context, blocks(ceil_div(args.outer * args.inner, kBlock)), kBlock, 0, prod_gradients<T>, args,
          afters);
  });
}

}  // namespace tern::cuda_backend
