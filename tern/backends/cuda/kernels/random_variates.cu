// Random numbers of distributions whose parameters differ from element to element. The algorithms are in
// kernels/variates.h.
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/kernels/variates.h"

namespace tern::cuda_backend {
namespace {

template <class T>
__global__ void draw_variates(VariatesArgs args) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= args.numel) return;
  const auto *a = static_cast<const T*>(args.a), *b = static_cast<const T*>(args.b);
  random::ElementSource source(start_of(args), i);
  const double number = random::drawn<T>(args.variate, widen(a[i]), b == nullptr ? 0 : widen(b[i]), source);
  static_cast<T*>(args.out)[i] = narrow<T>(static_cast<Compute<T>>(number));
}

}  // namespace

void variates(const LaunchContext& context, const VariatesArgs& args) {
  const unsigned grid = blocks(ceil_div(args.numel, kBlock));
  visit_floating(args.dtype, [&]<class T>() { start(context, grid, kBlock, 0, draw_variates<T>, args); });
}

}  // namespace tern::cuda_backend
