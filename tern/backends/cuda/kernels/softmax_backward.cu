// Gradients of softmax and log-softmax, from their results.
#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/kernels/math.h"
#include "tern/kernels/softmax.h"

namespace tern::cuda_backend {
namespace {

/// What is summed over a row.
template <class C>
__device__ __forceinline__ C term(SoftmaxOp op, C grad, C out) {
  return op == SoftmaxOp::Softmax ? grad * out : grad;
}
template <class C>
__device__ __forceinline__ C gradient(SoftmaxOp op, C grad, C out, C sum) {
  return op == SoftmaxOp::Softmax ? (grad - sum) * out : grad - math::exp(out) * sum;
}

/// `lanes` threads for each row: a warp, or the whole block.
template <class T, bool whole_block>
__global__ void rows_backward(SoftmaxBackwardArgs args) {
  using C = Compute<T>;
  const int64_t row = whole_block ? int64_t{blockIdx.x} : (int64_t{blockIdx.x} * kBlock + threadIdx.x) / 32;
  if (row >= args.shape.outer) return;
  const int lanes = whole_block ? static_cast<int>(blockDim.x) : 32,
            lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t size = args.shape.size;
  const T* grad = static_cast<const T*>(args.grad_out) + row * size;
  const T* out = static_cast<const T*>(args.out) + row * size;
  C sum = C(0);
  for (int64_t i = lane; i < size; i += lanes) sum += term(args.op, widen(grad[i]), widen(out[i]));
  if constexpr (whole_block)
    sum = block_reduce(sum, Plus());
  else
    sum = warp_reduce(sum, Plus());
  T* to = static_cast<T*>(args.grad_in) + row * size;
  for (int64_t i = lane; i < size; i += lanes)
    to[i] = narrow<T>(gradient(args.op, widen(grad[i]), widen(out[i]), sum));
}

template <class T>
__global__ void columns_backward(SoftmaxBackwardArgs args) {
  using C = Compute<T>;
  const int64_t column = int64_t{blockIdx.x} * kBlock + threadIdx.x, inner = args.shape.inner,
                size = args.shape.size;
  if (column >= args.shape.outer * inner) return;
  const int64_t start = column / inner * size * inner + column % inner;
  const T* grad = static_cast<const T*>(args.grad_out) + start;
  const T* out = static_cast<const T*>(args.out) + start;
  C sum = C(0);
  for (int64_t i = 0; i < size; ++i) sum += term(args.op, widen(grad[i * inner]), widen(out[i * inner]));
  T* to = static_cast<T*>(args.grad_in) + start;
  for (int64_t i = 0; i < size; ++i)
    to[i * inner] = narrow<T>(gradient(args.op, widen(grad[i * inner]), widen(out[i * inner]), sum));
}

}  // namespace

void softmax_backward(const LaunchContext& context, const SoftmaxBackwardArgs& args) {
  const SoftmaxShape& s = args.shape;
  if (s.outer == 0 || s.inner == 0 || s.size == 0) return;
  visit_floating(args.dtype, [&]<class T>() {
    if (s.inner > 1)
      return start(context, blocks(ceil_div(s.outer * s.inner, kBlock)), kBlock, 0, columns_backward<T>,
                   args);
    if (s.size <= 1024)
      return start(context, blocks(ceil_div(s.outer * 32, kBlock)), kBlock, 0, rows_backward<T, false>, args);
    start(context, blocks(s.outer), s.size >= 8192 ? 1024 : kBlock, 0, rows_backward<T, true>, args);
  });
}

}  // namespace tern::cuda_backend
