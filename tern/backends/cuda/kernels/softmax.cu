// Softmax, log-softmax and logsumexp along rows that lie dense (a warp for short rows, a block for long
// ones), and along other dimensions (threads side by side have neighbouring columns).
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

/// A warp for each row of at most 32 * kItems elements, which it keeps in registers.
template <class T, int kItems>
__global__ void softmax_short(SoftmaxArgs args) {
  using C = Compute<T>;
  const int64_t row = (int64_t{blockIdx.x} * kBlock + threadIdx.x) / 32, size = args.shape.size;
  if (row >= args.shape.outer) return;
  const int lane = threadIdx.x % 32;
  const T* in = static_cast<const T*>(args.in) + row * size;
  constexpr C kLowest = -std::numeric_limits<C>::infinity();
  C x[kItems], maximum = kLowest;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const int i = lane + 32 * k;
    x[k] = i < size ? widen(in[i]) : kLowest;
    maximum = Larger()(maximum, x[k]);
  }
  maximum = warp_reduce(maximum, Larger());
  C sum = C(0);
#pragma unroll
  for (int k = 0; k < kItems; ++k)
    if (lane + 32 * k < size) sum += math::exp(x[k] - maximum);
  sum = warp_reduce(sum, Plus());
  if (args.op == SoftmaxOp::LogSumExp) {
    if (lane == 0) static_cast<T*>(args.out)[row] = narrow<T>(log_sum_exp(maximum, sum));
    return;
  }
  const C scale = scale_of(args.op, sum);
  T* out = static_cast<T*>(args.out) + row * size;
#pragma unroll
  for (int k = 0; k < kItems; ++k)
    if (lane + 32 * k < size) out[lane + 32 * k] = narrow<T>(result(args.op, x[k], maximum, scale));
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
  row.each(size, [&](C& x, int) {
    const C power = math::exp(x - maximum);
    sum += power;
    x = args.op == SoftmaxOp::Softmax ? power : x - maximum;
  });
  sum = block_reduce(sum, Plus());
  if (args.op == SoftmaxOp::LogSumExp) {
    if (threadIdx.x == 0) static_cast<T*>(args.out)[blockIdx.x] = narrow<T>(log_sum_exp(maximum, sum));
    return;
  }
  const C scale = scale_of(args.op, sum);
  row.each(size, [&](C& x, int) { x = args.op == SoftmaxOp::Softmax ? x * scale : x - scale; });
  row.write(static_cast<T*>(args.out) + begin, size);
}

/// A block for each row, which comes from the cache after the first time.
template <class T>
__global__ void __launch_bounds__(kLongRow, 1) softmax_long(SoftmaxArgs args) {
  using C = Compute<T>;
  const int64_t row = blockIdx.x, size = args.shape.size;
  const T* in = static_cast<const T*>(args.in) + row * size;
  C maximum = -std::numeric_limits<C>::infinity();
  for (int64_t i = threadIdx.x; i < size; i += blockDim.x) maximum = Larger()(maximum, widen(in[i]));
  maximum = block_reduce(maximum, Larger());
  const auto power = [&](int64_t i) { return math::exp(widen(in[i]) - maximum); };
  const C sum = block_reduce(sum_of<C>(threadIdx.x, size, blockDim.x, power), Plus());
  if (args.op == SoftmaxOp::LogSumExp) {
    if (threadIdx.x == 0) static_cast<T*>(args.out)[row] = narrow<T>(log_sum_exp(maximum, sum));
    return;
  }
  const C scale = scale_of(args.op, sum);
  T* out = static_cast<T*>(args.out) + row * size;
  for (int64_t i = threadIdx.x; i < size; i += blockDim.x)
    out[i] = narrow<T>(result(args.op, widen(in[i]), maximum, scale));
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
  for (int64_t i = threadIdx.y; i < size; i += blockDim.y) maximum = Larger()(maximum, widen(in[i * inner]));
  maximum = column_reduce(maximum, Larger());
  const auto power = [&](int64_t i) { return math::exp(widen(in[i * inner]) - maximum); };
  const C sum = column_reduce(sum_of<C>(threadIdx.y, size, blockDim.y, power), Plus());
  if (!there) return;
  if (args.op == SoftmaxOp::LogSumExp) {
    if (threadIdx.y == 0) static_cast<T*>(args.out)[column] = narrow<T>(log_sum_exp(maximum, sum));
    return;
  }
  const C scale = scale_of(args.op, sum);
  T* out = static_cast<T*>(args.out) + start;
  for (int64_t i = threadIdx.y; i < size; i += blockDim.y)
    out[i * inner] = narrow<T>(result(args.op, widen(in[i * inner]), maximum, scale));
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
    const unsigned warps = blocks(ceil_div(s.outer * 32, kBlock));
    if (s.size <= 64) return start(context, warps, kBlock, 0, softmax_short<T, 2>, args);
    if (s.size <= 256) return start(context, warps, kBlock, 0, softmax_short<T, 8>, args);
    if (s.size <= 1024) return start(context, warps, kBlock, 0, softmax_short<T, 32>, args);
    if (const unsigned threads = row_part_threads<T>(s.size, {args.in, args.out}))
      return start(context, blocks(s.outer), threads, 0, softmax_in_parts<T>, args);
    start(context, blocks(s.outer), s.size >= 8192 ? kLongRow : kBlock, 0, softmax_long<T>, args);
  });
}

}  // namespace tern::cuda_backend
