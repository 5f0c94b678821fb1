// Softmax, log-softmax and logsumexp along rows that lie dense (a thread for each of many narrow ones, a warp
// or a part of one for short ones, a block for long ones), and along other dimensions (threads side by side
// have neighbouring columns; few long columns are cut into pieces).
// Gradients are in softmax_backward.cu.

#include <limits>

#include "tern/backends/cuda/kernels/softmax.cuh"
#include "tern/kernels/math.h"

namespace tern::cuda_backend {
namespace {

/// log(sum) + maximum; a row whose maximum is infinite or NaN has it as its result.
template <class C>
__device__ C log_sum_exp(C maximum, C sum) {
  return maximum - maximum == C(0) ? maximum + math::log(sum) : maximum;
}

/// Results of an element x whose row has this maximum and sum.
template <class C>
__device__ __forceinline__ C result(SoftmaxOp op, C x, C maximum, C scale) {
  return op == SoftmaxOp::Softmax ? math::exp(x - maximum) * scale : x - maximum - scale;
}
template <class C>
__device__ __forceinline__ C scale_of(SoftmaxOp op, C sum) {
  return op == SoftmaxOp::Softmax ? C(1) / sum : math::log(sum);
}

/// The same in two steps, for rows in registers: the first gives the power that is summed, and keeps of the
/// element what the second one needs.
template <class C>
__device__ __forceinline__ C begin_result(SoftmaxOp op, C& x, C maximum) {
  const C power = math::exp(x - maximum);
  x = op == SoftmaxOp::Softmax ? power : x - maximum;
  return power;
}
template <class C>
__device__ __forceinline__ C finish_result(SoftmaxOp op, C x, C scale) {
  return op == SoftmaxOp::Softmax ? x * scale : x - scale;
}

/// A thread for each row, in tiles.
template <class T>
__global__ void __launch_bounds__(kTileThreads) softmax_narrow(SoftmaxArgs args, bool packed) {
  using C = Compute<T>;
  __shared__ RowTile<T> tile;
  const int size = static_cast<int>(args.shape.size);
  const int64_t first = int64_t{blockIdx.x} * tile_rows(size);
  const int rows = static_cast<int>(min(int64_t{tile_rows(size)}, args.shape.outer - first));
  tile.read(static_cast<const T*>(args.in) + first * size, rows * size, packed);
  __syncthreads();
  for (int row = threadIdx.x; row < rows; row += kTileThreads) {
    const int begin = row * size, end = begin + size;
    C maximum = -std::numeric_limits<C>::infinity(), sum = C(0);
    for (int i = begin; i < end; ++i) maximum = Larger()(maximum, tile.at(i));
    for (int i = begin; i < end; ++i) sum += begin_result(args.op, tile.at(i), maximum);
    if (args.op == SoftmaxOp::LogSumExp) {
      static_cast<T*>(args.out)[first + row] = narrow<T>(log_sum_exp(maximum, sum));
      continue;
    }
    const C scale = scale_of(args.op, sum);
    for (int i = begin; i < end; ++i) tile.at(i) = finish_result(args.op, tile.at(i), scale);
  }
  if (args.op == SoftmaxOp::LogSumExp) return;
  __syncthreads();
  tile.write(static_cast<T*>(args.out) + first * size, rows * size, packed);
}

/// `kLanes` threads of a warp for each row of at most kLanes * kItems elements, which they keep in registers.
template <class T, int kLanes, int kItems>
__global__ void softmax_short(SoftmaxArgs args) {
  using C = Compute<T>;
  const int64_t row = (int64_t{blockIdx.x} * kBlock + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  const int size = row < args.shape.outer ? static_cast<int>(args.shape.size) : 0;
  const T* in = static_cast<const T*>(args.in) + row * size;
  constexpr C kLowest = -std::numeric_limits<C>::infinity();
  C x[kItems], maximum = kLowest;
#pragma unroll
  for (int k = 0; k < kItems; ++k) x[k] = lane + kLanes * k < size ? widen(in[lane + kLanes * k]) : kLowest;
#pragma unroll
  for (int k = 0; k < kItems; ++k) maximum = Larger()(maximum, x[k]);
  maximum = warp_reduce(maximum, Larger(), kLanes);
  C sum = C(0);
#pragma unroll
  for (int k = 0; k < kItems; ++k)
    if (lane + kLanes * k < size) sum += begin_result(args.op, x[k], maximum);
  sum = warp_reduce(sum, Plus(), kLanes);
  if (row >= args.shape.outer) return;
  if (args.op == SoftmaxOp::LogSumExp) {
    if (lane == 0) static_cast<T*>(args.out)[row] = narrow<T>(log_sum_exp(maximum, sum));
    return;
  }
  const C scale = scale_of(args.op, sum);
  T* out = static_cast<T*>(args.out) + row * size;
#pragma unroll
  for (int k = 0; k < kItems; ++k)
    if (lane + kLanes * k < size) out[lane + kLanes * k] = narrow<T>(finish_result(args.op, x[k], scale));
}

/// A block for each row, which it keeps in registers.
template <class T>
__global__ void __launch_bounds__(kLongRow, 1) softmax_in_parts(SoftmaxArgs args) {
  using C = Compute<T>;
  const int64_t begin = blockIdx.x * args.shape.size;
  const int size = static_cast<int>(args.shape.size);
  RowPart<T> row;
  row.read(static_cast<const T*>(args.in) + begin, size);
  C maximum = -std::numeric_limits<C>::infinity(), sum = C(0);
  row.each(size, [&](C x, int) { maximum = Larger()(maximum, x); });
  maximum = block_reduce(maximum, Larger());
  row.each(size, [&](C& x, int) { sum += begin_result(args.op, x, maximum); });
  sum = block_reduce(sum, Plus());
  if (args.op == SoftmaxOp::LogSumExp) {
    if (threadIdx.x == 0) static_cast<T*>(args.out)[blockIdx.x] = narrow<T>(log_sum_exp(maximum, sum));
    return;
  }
  const C scale = scale_of(args.op, sum);
  row.each(size, [&](C& x, int) { x = finish_result(args.op, x, scale); });
  row.write(static_cast<T*>(args.out) + begin, size);
}

/// A block for each row, which comes from the cache after the first time.
template <class T>
__global__ void __launch_bounds__(kLongRow, 1) softmax_long(SoftmaxArgs args) {
  using C = Compute<T>;
  const int64_t row = blockIdx.x, size = args.shape.size;
  const T* in = static_cast<const T*>(args.in) + row * size;
  C maximum = -std::numeric_limits<C>::infinity();
  const auto read = [&](int64_t i) { return widen(in[i]); };
  read_ahead<4>(int64_t{threadIdx.x}, size, blockDim.x, read,
                [&](int64_t, C x) { maximum = Larger()(maximum, x); });
  maximum = block_reduce(maximum, Larger());
  const auto power = [&](int64_t i) { return math::exp(read(i) - maximum); };
  const C sum = block_reduce(sum_of<C>(threadIdx.x, size, blockDim.x, power), Plus());
  if (args.op == SoftmaxOp::LogSumExp) {
    if (threadIdx.x == 0) static_cast<T*>(args.out)[row] = narrow<T>(log_sum_exp(maximum, sum));
    return;
  }
  const C scale = scale_of(args.op, sum);
  T* out = static_cast<T*>(args.out) + row * size;
  read_ahead<4>(int64_t{threadIdx.x}, size, blockDim.x, read,
                [&](int64_t i, C x) { out[i] = narrow<T>(result(args.op, x, maximum, scale)); });
}

template <class C>
struct Powers {
  C maximum;
  C sum;  ///< of exp(x - maximum)

  /// The sum with a larger maximum.
  __device__ __forceinline__ C below(C larger) const {
    if (maximum == larger) return sum;
    return maximum == -std::numeric_limits<C>::infinity() ? C(0) : sum * math::exp(maximum - larger);
  }
};
struct JoinPowers {
  template <class C>
  __device__ __forceinline__ Powers<C> operator()(const Powers<C>& a, const Powers<C>& b) const {
    const C maximum = Larger()(a.maximum, b.maximum);
    return {maximum, a.below(maximum) + b.below(maximum)};
  }
};

template <class T>
__device__ __forceinline__ Powers<Compute<T>> powers_of(const SoftmaxArgs& args, const ColumnPart& part) {
  using C = Compute<T>;
  C maximum = -std::numeric_limits<C>::infinity();
  const auto read = [&](int64_t i) { return widen(static_cast<const T*>(args.in)[part.at(i)]); };
  part.read(read, [&](int64_t, C x) { maximum = Larger()(maximum, x); });
  maximum = column_reduce(maximum, Larger());
  return {maximum, part.sum<C>([&](int64_t i) { return math::exp(read(i) - maximum); })};
}
template <class T>
__device__ __forceinline__ void finish_column(const SoftmaxArgs& args, const ColumnPart& part,
                                              const Powers<Compute<T>>& all) {
  using C = Compute<T>;
  T* out = static_cast<T*>(args.out);
  if (args.op == SoftmaxOp::LogSumExp) {
    if (part.is_first()) out[part.column] = narrow<T>(log_sum_exp(all.maximum, all.sum));
    return;
  }
  const C scale = scale_of(args.op, all.sum);
  part.read([&](int64_t i) { return widen(static_cast<const T*>(args.in)[part.at(i)]); },
            [&](int64_t i, C x) { out[part.at(i)] = narrow<T>(result(args.op, x, all.maximum, scale)); });
}

/// Columns, or of pieces of them the powers, which softmax_pieces joins.
template <class T>
__global__ void softmax_columns(SoftmaxArgs args, int64_t piece, Powers<Compute<T>>* partial) {
  const ColumnPart part(args.shape, piece);
  const Powers<Compute<T>> powers = powers_of<T>(args, part);
  if (partial == nullptr) return finish_column<T>(args, part, powers);
  if (part.is_first()) partial[blockIdx.y * part.columns + part.column] = powers;
}

template <class T>
__global__ void softmax_pieces(SoftmaxArgs args, int64_t piece, unsigned pieces,
                               const Powers<Compute<T>>* partial) {
  const ColumnPart part(args.shape, piece);
  constexpr Powers<Compute<T>> kNone{-std::numeric_limits<Compute<T>>::infinity(), Compute<T>(0)};
  finish_column<T>(args, part, part.join(partial, pieces, kNone, JoinPowers()));
}

template <class T>
void run_columns(const LaunchContext& context, const SoftmaxArgs& args) {
  const int64_t columns = args.shape.outer * args.shape.inner;
  const ColumnGrid g(columns, args.shape.size);
  if (g.grid.y == 1) return start(context, g.grid, g.block, 0, softmax_columns<T>, args, g.piece, nullptr);
  const Storage scratch =
      workspace(context, static_cast<size_t>(columns * g.grid.y) * sizeof(Powers<Compute<T>>));
  auto* partial = static_cast<Powers<Compute<T>>*>(scratch->data());
  start(context, g.grid, g.block, 0, softmax_columns<T>, args, g.piece, partial);
  const unsigned pieces = args.op == SoftmaxOp::LogSumExp ? 1 : g.grid.y;
  start(context, dim3(g.grid.x, pieces), g.block, 0, softmax_pieces<T>, args, g.piece, g.grid.y, partial);
}

}  // namespace

void softmax(const LaunchContext& context, const SoftmaxArgs& args) {
  const SoftmaxShape& s = args.shape;
  if (s.outer == 0 || s.inner == 0) return;
  visit_floating(args.dtype, [&]<class T>() {
    if (s.inner > 1) return run_columns<T>(context, args);
    const auto run_short = [&]<int kLanes, int kItems>() {
      start(context, blocks(ceil_div(s.outer * kLanes, kBlock)), kBlock, 0, softmax_short<T, kLanes, kItems>,
            args);
    };
    if (s.size <= kTileSize / kTileThreads && s.outer >= kManyRows)
      return start(context, blocks(ceil_div(s.outer, tile_rows(s.size))), kTileThreads, 0, softmax_narrow<T>,
                   args, are_aligned<T>({args.in, args.out}));
    if (s.size <= 32) return run_short.template operator()<8, 4>();
    if (s.size <= 64) return run_short.template operator()<16, 4>();
    if (s.size <= 256) return run_short.template operator()<32, 8>();
    if (const unsigned threads = row_part_threads<T>(s.size, {args.in, args.out}))
      return start(context, blocks(s.outer), threads, 0, softmax_in_parts<T>, args);
    if (s.size <= 1024) return run_short.template operator()<32, 32>();
    start(context, blocks(s.outer), s.size >= 8192 ? kLongRow : kBlock, 0, softmax_long<T>, args);
  });
}

}  // namespace tern::cuda_backend
