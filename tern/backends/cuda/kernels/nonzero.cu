// Elements that are not zero: how many, and where. Blocks count theirs, running totals say where each block
// writes.
#include "tern/backends/cuda/kernels/reduce.cuh"
#include "tern/kernels/index.h"

namespace tern::cuda_backend {
namespace {

__device__ __forceinline__ bool is_set(DType dtype, const void* in, int64_t i) {
  if (dtype == DType::Float64) return static_cast<const double*>(in)[i] != 0;
  if (is_floating_point(dtype)) return load<float>(dtype, in, i) != 0;
  return load<int64_t>(dtype, in, i) != 0;
}

__global__ void count_blocks(DType dtype, const void* in, Walk walk, int64_t* counts) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const int set = i < walk.numel && is_set(dtype, in, walk.at(i));
  const int total = __syncthreads_count(set);
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

/// Counts become the totals before each; one block walks over all of them. `total`: null, or where the sum
/// goes.
__global__ void start_blocks(int64_t* counts, int64_t blocks_, int64_t* total) {
  __shared__ int64_t warp_totals[kBlock / 32];
  int64_t before = 0;
  for (int64_t base = 0; base < blocks_; base += kBlock) {
    const int64_t i = base + threadIdx.x;
    const int64_t mine = i < blocks_ ? counts[i] : 0;
    int64_t running = mine;
    for (int step = 1; step < 32; step *= 2) {
      const int64_t other = __shfl_up_sync(kAllLanes, running, step);
      if (threadIdx.x % 32 >= step) running += other;
    }
    if (threadIdx.x % 32 == 31) warp_totals[threadIdx.x / 32] = running;
    __syncthreads();
    int64_t sum = 0;
    for (int w = 0; w < kBlock / 32; ++w) {
      if (w == static_cast<int>(threadIdx.x / 32)) running += sum;
      sum += warp_totals[w];
    }
    if (i < blocks_) counts[i] = before + running - mine;
    before += sum;
    __syncthreads();
  }
  if (total && threadIdx.x == 0) *total = before;
}

__global__ void list_blocks(NonzeroArgs args, Walk walk, const int64_t* starts) {
  __shared__ int warp_totals[kBlock / 32];
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const bool set = i < walk.numel && is_set(args.dtype, args.in, walk.at(i));
  const unsigned votes = __ballot_sync(kAllLanes, set);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) warp_totals[warp] = __popc(votes);
  __syncthreads();
  if (!set) return;
  int64_t place = starts[blockIdx.x] + __popc(votes & ((1u << lane) - 1));
  for (int w = 0; w < warp; ++w) place += warp_totals[w];
  if (place >= args.count) return;
  int64_t position = i;
  for (int d = args.rank - 1; d >= 0; --d) {
    args.out[place * args.row_stride + d * args.column_stride] = position % args.sizes[d];
    position /= args.sizes[d];
  }
}

/// Totals before each block, and of all into `total`.
Storage count_set(const LaunchContext& context, DType dtype, const void* in, const Geometry<1>& g,
                  int64_t* total) {
  if (!is_computable(dtype)) throw_not_computable(dtype);
  const int64_t count = ceil_div(g.numel, kBlock);
  Storage counts = workspace(context, static_cast<size_t>(std::max<int64_t>(count, 1)) * 8);
  auto* data = static_cast<int64_t*>(counts->data());
  start(context, blocks(count), kBlock, 0, count_blocks, dtype, in, Walk(g), data);
  start(context, 1, kBlock, 0, start_blocks, data, count, total);
  return counts;
}

}  // namespace

void nonzero_count(const LaunchContext& context, const NonzeroCountArgs& args) {
  count_set(context, args.dtype, args.in, args.geometry, args.count);
}

void nonzero(const LaunchContext& context, const NonzeroArgs& args) {
  const Storage starts = count_set(context, args.dtype, args.in, args.geometry, nullptr);
  start(context, blocks(ceil_div(args.geometry.numel, kBlock)), kBlock, 0, list_blocks, args,
        Walk(args.geometry), static_cast<const int64_t*>(starts->data()));
}

}  // namespace tern::cuda_backend
