// The kernels that make tensors from little or nothing: ranges and triangles.
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/kernels/creation.h"

namespace tern::cuda_backend {
namespace {

__global__ void fill_range(RangeArgs args) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= args.count) return;
  if (args.integers && !is_floating_point(args.dtype)) {
    // Unsigned arithmetic wraps, as PyTorch's narrow integers do.
    const uint64_t value = static_cast<uint64_t>(args.integer_start) +
                           static_cast<uint64_t>(i) * static_cast<uint64_t>(args.integer_step);
    return store<int64_t>(args.dtype, args.out, i, static_cast<int64_t>(value));
  }
  const double value = i < args.pivot ? ::fma(static_cast<double>(i), args.step, args.start)
                                      : ::fma(-static_cast<double>(args.count - 1 - i), args.step, args.end);
  if (is_floating_point(args.dtype))
    store<double>(args.dtype, args.out, i, value);
  else
    store<int64_t>(args.dtype, args.out, i, static_cast<int64_t>(value));
}

template <class T>
__global__ void keep_triangle(T* out, const T* in, int64_t numel, int64_t rows, int64_t cols,
                              int64_t diagonal, bool upper) {
  const int64_t at = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (at >= numel) return;
  const int64_t i = at / cols % rows, j = at % cols;
  const bool kept = upper ? j - i >= diagonal : j - i <= diagonal;
  if (!kept)
    out[at] = T(0);
  else if (out != in)
    out[at] = in[at];
}

template <class T>
void run_triangle(const LaunchContext& context, const TriangleArgs& args) {
  const int64_t numel = args.batch * args.rows * args.cols;
  start(context, blocks(ceil_div(numel, kBlock)), kBlock, 0, keep_triangle<T>, static_cast<T*>(args.out),
        static_cast<const T*>(args.in), numel, args.rows, args.cols, args.diagonal, args.upper);
}

}  // namespace

void range(const LaunchContext& context, const RangeArgs& args) {
  if (!is_computable(args.dtype)) throw_not_computable(args.dtype);
  start(context, blocks(ceil_div(args.count, kBlock)), kBlock, 0, fill_range, args);
}

void triangle(const LaunchContext& context, const TriangleArgs& args) {
  switch (itemsize(args.dtype)) {
    case 1:
      return run_triangle<uint8_t>(context, args);
    case 2:
      return run_triangle<uint16_t>(context, args);
    case 4:
      return run_triangle<uint32_t>(context, args);
    default:
      return run_triangle<uint64_t>(context, args);
  }
}

}  // namespace tern::cuda_backend
