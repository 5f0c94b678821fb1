// The matrix product with a thread for each element of the result.
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/matmul.h"
#include "tern/kernels/math.h"

namespace tern::cuda_backend {
namespace {

template <class C>
__global__ void multiply_plainly(MatmulArgs args) {
  int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const int64_t size = args.m * args.n;
  int64_t batch = i / size, a_at = 0, b_at = 0, c_at = 0, out_at = 0;
  i %= size;
  for (int d = args.batch_dims - 1; d >= 0; --d) {
    const int64_t place = batch % args.batch_sizes[d];
    batch /= args.batch_sizes[d];
    a_at += place * args.a_batch_strides[d];
    b_at += place * args.b_batch_strides[d];
    c_at += place * args.addend_batch_strides[d];
    out_at += place * args.out_batch_strides[d];
  }
  if (batch > 0) return;
  const int64_t row = i / args.n, col = i % args.n;
  a_at += row * args.a_row_stride;
  b_at += col * args.b_col_stride;
  C sum = C(0);
  for (int64_t k = 0; k < args.k; ++k) {
    const C x = load<C>(args.dtype, args.a, a_at + k * args.a_col_stride);
    const C y = load<C>(args.dtype, args.b, b_at + k * args.b_row_stride);
    if constexpr (std::is_integral_v<C>)
      sum = static_cast<C>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
    else
      sum += x * y;
  }
  C value = static_cast<C>(args.alpha) * sum;
  if (args.addend)
    value +=
        static_cast<C>(args.beta) *
        load<C>(args.dtype, args.addend, c_at + row * args.addend_row_stride + col * args.addend_col_stride);
  if (args.epilogue == MatmulEpilogue::Relu) value = value < C(0) ? C(0) : value;
  store<C>(args.dtype, args.out, out_at + row * args.out_row_stride + col, value);
}

}  // namespace

void matmul_plain(const LaunchContext& context, const MatmulArgs& args) {
  visit_compute(args.dtype, [&]<class C>() {
    start(context, blocks(ceil_div(args.batch_count() * args.m * args.n, kBlock)), kBlock, 0,
          multiply_plainly<C>, args);
  });
}

}  // namespace tern::cuda_backend
