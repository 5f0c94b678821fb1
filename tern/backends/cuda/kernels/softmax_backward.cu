// Gradients of softmax and log-softmax, from their results: rows as in softmax.cu.
#include "tern/backends/cuda/kernels/softmax.cuh"
#include "tern/kernels/math.h"

namespace tern::cuda_backend {
namespace {

template <class C>
struct Element {
  C grad, out;
};
/// What is summed over a row.
template <class C>
__device__ __forceinline__ C term(SoftmaxOp op, const Element<C>& e) {
  return op == SoftmaxOp::Softmax ? e.grad * e.out : e.grad;
}
template <class C>
__device__ __forceinline__ C gradient(SoftmaxOp op, const Element<C>& e, C sum) {
  return op == SoftmaxOp::Softmax ? (e.grad - sum) * e.out : e.grad - math::exp(e.out) * sum;
}

/// A thread for each row, in tiles.
template <class T>
__global__ void __launch_bounds__(kTileThreads) backward_narrow(SoftmaxBackwardArgs args, bool packed) {
  using C = Compute<T>;
  __shared__ RowTile<T> grad, out;
  const int size = static_cast<int>(args.shape.size);
  const int64_t first = int64_t{blockIdx.x} * tile_rows(size);
  const int rows = static_cast<int>(min(int64_t{tile_rows(size)}, args.shape.outer - first));
  grad.read(static_cast<const T*>(args.grad_out) + first * size, rows * size, packed);
  out.read(static_cast<const T*>(args.out) + first * size, rows * size, packed);
  __syncthreads();
  for (int row = threadIdx.x; row < rows; row += kTileThreads) {
    const int begin = row * size, end = begin + size;
    C sum = C(0);
    for (int i = begin; i < end; ++i) sum += term(args.op, Element<C>{grad.at(i), out.at(i)});
    for (int i = begin; i < end; ++i) grad.at(i) = gradient(args.op, Element<C>{grad.at(i), out.at(i)}, sum);
  }
  __syncthreads();
  grad.write(static_cast<T*>(args.grad_in) + first * size, rows * size, packed);
}

/// `kLanes` threads of a warp for each row of at most kLanes * kItems elements, which they keep in registers.
template <class T, int kLanes, int kItems>
__global__ void backward_short(SoftmaxBackwardArgs args) {
  using C = Compute<T>;
  const int64_t row = (int64_t{blockIdx.x} * kBlock + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  const int size = row < args.shape.outer ? static_cast<int>(args.shape.size) : 0;
  const T* grad = static_cast<const T*>(args.grad_out) + row * size;
  const T* out = static_cast<const T*>(args.out) + row * size;
  Element<C> x[kItems];
  C sum = C(0);
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const int i = lane + kLanes * k;
    x[k] = i < size ? Element<C>{widen(grad[i]), widen(out[i])} : Element<C>{};
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k)
    if (lane + kLanes * k < size) sum += term(args.op, x[k]);
  sum = warp_reduce(sum, Plus(), kLanes);
  T* to = static_cast<T*>(args.grad_in) + row * size;
#pragma unroll
  for (int k = 0; k < kItems; ++k)
    if (lane + kLanes * k < size) to[lane + kLanes * k] = narrow<T>(gradient(args.op, x[k], sum));
}

/// A block for each row, which it keeps in registers.
template <class T>
__global__ void __launch_bounds__(kLongRow, 1) backward_in_parts(SoftmaxBackwardArgs args) {
  using C = Compute<T>;
  const int64_t begin = blockIdx.x * args.shape.size;
  const int size = static_cast<int>(args.shape.size);
  RowPart<T> grad, out;
  grad.read(static_cast<const T*>(args.grad_out) + begin, size);
  out.read(static_cast<const T*>(args.out) + begin, size);
  C sum = C(0);
  grad.each_with(out, size, [&](C& g, C o) { sum += term(args.op, Element<C>{g, o}); });
  sum = block_reduce(sum, Plus());
  grad.each_with(out, size, [&](C& g, C o) { g = gradient(args.op, Element<C>{g, o}, sum); });
  grad.write(static_cast<T*>(args.grad_in) + begin, size);
}

/// A block for each row, which comes from the cache the second time.
template <class T>
__global__ void __launch_bounds__(kLongRow, 1) backward_long(SoftmaxBackwardArgs args) {
  using C = Compute<T>;
  const int64_t row = blockIdx.x, size = args.shape.size;
  const T* grad = static_cast<const T*>(args.grad_out) + row * size;
  const T* out = static_cast<const T*>(args.out) + row * size;
  const auto read = [&](int64_t i) { return Element<C>{widen(grad[i]), widen(out[i])}; };
  const auto each = [&](int64_t i) { return term(args.op, read(i)); };
  const C sum = block_reduce(sum_of<C>(threadIdx.x, size, blockDim.x, each), Plus());
  T* to = static_cast<T*>(args.grad_in) + row * size;
  read_ahead<4>(int64_t{threadIdx.x}, size, blockDim.x, read,
                [&](int64_t i, const Element<C>& e) { to[i] = narrow<T>(gradient(args.op, e, sum)); });
}

template <class T>
struct ColumnGradient {
  using C = Compute<T>;
  const SoftmaxBackwardArgs& args;
  ColumnPart part;

  __device__ __forceinline__ ColumnGradient(const SoftmaxBackwardArgs& args_, int64_t piece)
      : args(args_), part(args.shape, piece) {}
  __device__ __forceinline__ Element<C> read(int64_t i) const {
    return {widen(static_cast<const T*>(args.grad_out)[part.at(i)]),
            widen(static_cast<const T*>(args.out)[part.at(i)])};
  }
  __device__ __forceinline__ C sum() const {
    return part.sum<C>([&](int64_t i) { return term(args.op, read(i)); });
  }
  __device__ __forceinline__ void finish(C sum) const {
    T* to = static_cast<T*>(args.grad_in);
    part.read([&](int64_t i) { return read(i); },
              [&](int64_t i, const Element<C>& e) { to[part.at(i)] = narrow<T>(gradient(args.op, e, sum)); });
  }
};

/// Columns, or of pieces of them the sums, which pieces_backward puts together.
template <class T>
__global__ void columns_backward(SoftmaxBackwardArgs args, int64_t piece, Compute<T>* partial) {
  const ColumnGradient<T> columns(args, piece);
  const Compute<T> sum = columns.sum();
  if (partial == nullptr) return columns.finish(sum);
  if (columns.part.is_first()) partial[blockIdx.y * columns.part.columns + columns.part.column] = sum;
}

template <class T>
__global__ void pieces_backward(SoftmaxBackwardArgs args, int64_t piece, const Compute<T>* partial) {
  const ColumnGradient<T> columns(args, piece);
  columns.finish(columns.part.join(partial, gridDim.y, Compute<T>(0), Plus()));
}

template <class T>
void run_columns(const LaunchContext& context, const SoftmaxBackwardArgs& args) {
  const int64_t columns = args.shape.outer * args.shape.inner;
  const ColumnGrid g(columns, args.shape.size);
  if (g.grid.y == 1) return start(context, g.grid, g.block, 0, columns_backward<T>, args, g.piece, nullptr);
  const Storage scratch = workspace(context, static_cast<size_t>(columns * g.grid.y) * sizeof(Compute<T>));
  auto* partial = static_cast<Compute<T>*>(scratch->data());
  start(context, g.grid, g.block, 0, columns_backward<T>, args, g.piece, partial);
  start(context, g.grid, g.block, 0, pieces_backward<T>, args, g.piece, partial);
}

}  // namespace

void softmax_backward(const LaunchContext& context, const SoftmaxBackwardArgs& args) {
  const SoftmaxShape& s = args.shape;
  if (s.outer == 0 || s.inner == 0 || s.size == 0) return;
  visit_floating(args.dtype, [&]<class T>() {
    if (s.inner > 1) return run_columns<T>(context, args);
    const auto run_short = [&]<int kLanes, int kItems>() {
      start(context, blocks(ceil_div(s.outer * kLanes, kBlock)), kBlock, 0, backward_short<T, kLanes, kItems>,
            args);
    };
    if (s.size <= kTileSize / kTileThreads && s.outer >= kManyRows)
      return start(context, blocks(ceil_div(s.outer, tile_rows(s.size))), kTileThreads, 0, backward_narrow<T>,
                   args, are_aligned<T>({args.grad_out, args.out, args.grad_in}));
    if (s.size <= 32) return run_short.template operator()<8, 4>();
    if (s.size <= 64) return run_short.template operator()<16, 4>();
    if (s.size <= 256) return run_short.template operator()<32, 8>();
    if (const unsigned threads = row_part_threads<T>(s.size, {args.grad_out, args.out, args.grad_in}))
      return start(context, blocks(s.outer), threads, 0, backward_in_parts<T>, args);
    start(context, blocks(s.outer), s.size >= 8192 ? kLongRow : kBlock, 0, backward_long<T>, args);
  });
}

}  // namespace tern::cuda_backend
