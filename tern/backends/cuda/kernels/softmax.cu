// Softmax, log-softmax and logsumexp along rows that lie dense (a warp or a part of one for short rows, a
// block for long ones), and along other dimensions (threads side by side have neighbouring columns).
// Gradients are in softmax_backward.cu.
#include "tern/kernels/softmax.h"

#include <limits>

#include "tern/backends/cuda/kernels/rows.cuh"
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

/// Threads along y share a column.
template <class T>
__global__ void softmax_columns(SoftmaxArgs args) {
  using C = Compute<T>;
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, inner = args.shape.inner;
  const bool there = column < args.shape.outer * inner;
  const int64_t size = there ? args.shape.size : 0;
  const int64_t start = column / inner * args.shape.size * inner + column % inner;
  const T* in = static_cast<const T*>(args.in) + start;
  C maximum = -std::numeric_limits<C>::infinity();
  const auto read = [&](int64_t i) { return widen(in[i * inner]); };
  read_ahead<4>(int64_t{threadIdx.y}, size, blockDim.y, read,
                [&](int64_t, C x) { maximum = Larger()(maximum, x); });
  maximum = column_reduce(maximum, Larger());
  const auto power = [&](int64_t i) { return math::exp(read(i) - maximum); };
  const C sum = column_reduce(sum_of<C>(threadIdx.y, size, blockDim.y, power), Plus());
  if (!there) return;
  if (args.op == SoftmaxOp::LogSumExp) {
    if (threadIdx.y == 0) static_cast<T*>(args.out)[column] = narrow<T>(log_sum_exp(maximum, sum));
    return;
  }
  const C scale = scale_of(args.op, sum);
  T* out = static_cast<T*>(args.out) + start;
  read_ahead<4>(int64_t{threadIdx.y}, size, blockDim.y, read,
                [&](int64_t i, C x) { out[i * inner] = narrow<T>(result(args.op, x, maximum, scale)); });
}

}  // namespace

void softmax(const LaunchContext& context, const SoftmaxArgs& args) {
  const SoftmaxShape& s = args.shape;
  if (s.outer == 0 || s.inner == 0) return;
  visit_floating(args.dtype, [&]<class T>() {
    if (s.inner > 1) {
      const dim3 block = column_block(s.outer * s.inner, s.size);
      return start(context, blocks(ceil_div(s.outer * s.inner, block.x)), block, 0, softmax_columns<T>, args);
    }
    const auto run_short = [&]<int kLanes, int kItems>() {
      start(context, blocks(ceil_div(s.outer * kLanes, kBlock)), kBlock, 0, softmax_short<T, kLanes, kItems>,
            args);
    };
    if (s.size <= 8) return run_short.template operator()<8, 1>();
    if (s.size <= 16) return run_short.template operator()<16, 1>();
    if (s.size <= 64) return run_short.template operator()<32, 2>();
    if (s.size <= 256) return run_short.template operator()<32, 8>();
    if (s.size <= 1024) return run_short.template operator()<32, 32>();
    if (const unsigned threads = row_part_threads<T>(s.size, {args.in, args.out}))
      return start(context, blocks(s.outer), threads, 0, softmax_in_parts<T>, args);
    start(context, blocks(s.outer), s.size >= 8192 ? kLongRow : kBlock, 0, softmax_long<T>, args);
  });
}

}  // namespace tern::cuda_backend
