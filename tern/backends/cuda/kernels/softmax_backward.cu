// Gradients of softmax and log-softmax, from their results.
#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/kernels/math.h"
#include "tern/kernels/softmax.h"

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

/// `lanes` threads for each row: a warp, or the whole block.
template <class T, bool whole_block>
__global__ void __launch_bounds__(kLongRow, 1) rows_backward(SoftmaxBackwardArgs args) {
  using C = Compute<T>;
  const int64_t row = whole_block ? int64_t{blockIdx.x} : (int64_t{blockIdx.x} * kBlock + threadIdx.x) / 32;
  if (row >= args.shape.outer) return;
  const int lanes = whole_block ? static_cast<int>(blockDim.x) : 32,
            lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t size = args.shape.size;
  const T* grad = static_cast<const T*>(args.grad_out) + row * size;
  const T* out = static_cast<const T*>(args.out) + row * size;
  const auto read = [&](int64_t i) { return Element<C>{widen(grad[i]), widen(out[i])}; };
  C sum = sum_of<C>(lane, size, lanes, [&](int64_t i) { return term(args.op, read(i)); });
  if constexpr (whole_block)
    sum = block_reduce(sum, Plus());
  else
    sum = warp_reduce(sum, Plus());
  T* to = static_cast<T*>(args.grad_in) + row * size;
  read_ahead<4>(int64_t{lane}, size, lanes, read,
                [&](int64_t i, const Element<C>& e) { to[i] = narrow<T>(gradient(args.op, e, sum)); });
}

/// Threads along y share a column.
template <class T>
__global__ void columns_backward(SoftmaxBackwardArgs args) {
  using C = Compute<T>;
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, inner = args.shape.inner;
  const int64_t size = column < args.shape.outer * inner ? args.shape.size : 0;
  const int64_t start = column / inner * args.shape.size * inner + column % inner;
  const T* grad = static_cast<const T*>(args.grad_out) + start;
  const T* out = static_cast<const T*>(args.out) + start;
  const auto read = [&](int64_t i) { return Element<C>{widen(grad[i * inner]), widen(out[i * inner])}; };
  const auto each = [&](int64_t i) { return term(args.op, read(i)); };
  const C sum = column_reduce(sum_of<C>(threadIdx.y, size, blockDim.y, each), Plus());
  T* to = static_cast<T*>(args.grad_in) + start;
  read_ahead<4>(int64_t{threadIdx.y}, size, blockDim.y, read, [&](int64_t i, const Element<C>& e) {
    to[i * inner] = narrow<T>(gradient(args.op, e, sum));
  });
}

}  // namespace

void softmax_backward(const LaunchContext& context, const SoftmaxBackwardArgs& args) {
  const SoftmaxShape& s = args.shape;
  if (s.outer == 0 || s.inner == 0 || s.size == 0) return;
  visit_floating(args.dtype, [&]<class T>() {
    if (s.inner > 1) {
      const dim3 block = column_block(s.outer * s.inner, s.size);
      return start(context, blocks(ceil_div(s.outer * s.inner, block.x)), block, 0, columns_backward<T>,
                   args);
    }
    if (s.size <= 1024)
      return start(context, blocks(ceil_div(s.outer * 32, kBlock)), kBlock, 0, rows_backward<T, false>, args);
    start(context, blocks(s.outer), s.size >= 8192 ? kLongRow : kBlock, 0, rows_backward<T, true>, args);
  });
}

}  // namespace tern::cuda_backend
