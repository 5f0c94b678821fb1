// Elements that are not zero: how many, and where. Blocks count theirs, running totals say where each block
// writes.
#include "tern/backends/cuda/kernels/reduce.cuh"
#include "tern/kernels/index.h"

namespace tern::cuda_backend {
namespace {

/// Elements of a thread, kBlock apart, and of a block.
inline constexpr int kItems = 4;
inline constexpr int64_t kSection = kBlock * kItems;

/// The first element of this thread.
__device__ __forceinline__ int64_t first_item() { return blockIdx.x * kSection + threadIdx.x; }

/// Which of a thread's elements are set.
__device__ __forceinline__ void read_items(DType dtype, const void* in, const Walk& walk,
                                           bool (&set)[kItems]) {
  int64_t places[kItems];
  walk.at(first_item(), kBlock, places);
  const auto read = [&]<class T>(const T* from) {
    T values[kItems];  // all are read before the first is looked at
#pragma unroll
    for (int k = 0; k < kItems; ++k)
      values[k] = first_item() + k * kBlock < walk.numel ? from[places[k]] : T{};
#pragma unroll
    for (int k = 0; k < kItems; ++k) set[k] = widen(values[k]) != 0;
  };
  if (is_floating_point(dtype))
    visit_stored<double>(dtype, in, read);
  else
    visit_stored<int64_t>(dtype, in, read);
}

__global__ void count_blocks(DType dtype, const void* in, Walk walk, int64_t* counts) {
  bool set[kItems];
  read_items(dtype, in, walk, set);
  int mine = 0;
#pragma unroll
  for (int k = 0; k < kItems; ++k) mine += set[k] ? 1 : 0;
  const int total = block_reduce(mine, Plus());
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

/// Counts become the totals before each; one block walks over all of them. `total`: null, or where the sum
/// goes.
__global__ void start_blocks(int64_t* counts, int64_t blocks_, int64_t* total) {
  int64_t before = 0;
  for (int64_t base = 0; base < blocks_; base += kBlock) {
    const int64_t i = base + threadIdx.x;
    int64_t sum;
    const int64_t start = block_scan(i < blocks_ ? counts[i] : 0, before, Plus(), int64_t{0}, sum);
    if (i < blocks_) counts[i] = start;
    before += sum;
  }
  if (total && threadIdx.x == 0) *total = before;
}

__global__ void list_blocks(NonzeroArgs args, Walk walk, const int64_t* starts) {
  constexpr int kWarps = kBlock / 32;
  __shared__ int totals[kItems * kWarps];  // of warps, in the order of their elements
  bool set[kItems];
  read_items(args.dtype, args.in, walk, set);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned votes[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    votes[k] = __ballot_sync(kAllLanes, set[k]);
    if (lane == 0) totals[k * kWarps + warp] = __popc(votes[k]);
  }
  __syncthreads();
  int64_t start = starts[blockIdx.x];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    int64_t place = start + __popc(votes[k] & ((1u << lane) - 1));
    for (int w = 0; w < kWarps; ++w) {
      const int total = totals[k * kWarps + w];
      if (w < warp) place += total;
      start += total;
    }
    if (!set[k] || place >= args.count) continue;
    int64_t position = first_item() + k * kBlock;
#pragma unroll 1
    for (int d = args.rank - 1; d >= 0; --d) {
      args.out[place * args.row_stride + d * args.column_stride] = position % args.sizes[d];
      position /= args.sizes[d];
    }
  }
}

/// Totals before each block, and of all into `total`.
Storage count_set(const LaunchContext& context, DType dtype, const void* in, const Geometry<1>& g,
                  int64_t* total) {
  if (!is_computable(dtype)) throw_not_computable(dtype);
  const int64_t count = ceil_div(g.numel, kSection);
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
  start(context, blocks(ceil_div(args.geometry.numel, kSection)), kBlock, 0, list_blocks, args,
        Walk(args.geometry), static_cast<const int64_t*>(starts->data()));
}

}  // namespace tern::cuda_backend
