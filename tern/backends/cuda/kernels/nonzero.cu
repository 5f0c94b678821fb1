// Elements that are not zero: how many, and where. Blocks count theirs, running totals say where each block
// writes.
#include "tern/backends/cuda/kernels/reduce.cuh"
#include "tern/kernels/index.h"

namespace tern::cuda_backend {
namespace {

/// Elements of a thread, kBlock apart, and of a block.
inline constexpr int kItems = 16;
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
__global__ void __launch_bounds__(kLongRow) start_blocks(int64_t* counts, int64_t blocks_, int64_t* total) {
  constexpr int kCounts = 4;  // of a thread, neighbours
  int64_t before = 0;
  for (int64_t base = 0; base < blocks_; base += kLongRow * kCounts) {
    const int64_t first = base + threadIdx.x * kCounts;
    int64_t mine[kCounts], sum = 0, all;
#pragma unroll
    for (int k = 0; k < kCounts; ++k) mine[k] = first + k < blocks_ ? counts[first + k] : 0;
#pragma unroll
    for (int k = 0; k < kCounts; ++k) sum += mine[k];
    int64_t start = block_scan(sum, before, Plus(), int64_t{0}, all);
#pragma unroll
    for (int k = 0; k < kCounts; ++k) {
      if (first + k < blocks_) counts[first + k] = start;
      start += mine[k];
    }
    before += all;
  }
  if (total && threadIdx.x == 0) *total = before;
}

/// Element number `position` is the one at `place` of the list. Index numbers all elements.
template <class Index>
__device__ __forceinline__ void write_place(const NonzeroArgs& args, int64_t place, Index position) {
  int64_t* out = args.out + place * args.row_stride;
#pragma unroll 1
  for (int d = args.rank - 1; d > 0; --d) {
    const Index size = static_cast<Index>(args.sizes[d]), rest = position / size;
    out[d * args.column_stride] = position - rest * size;
    position = rest;
  }
  if (args.rank > 0) *out = position;
}

__global__ void __launch_bounds__(kBlock) list_blocks(NonzeroArgs args, Walk walk, const int64_t* starts) {
  constexpr int kWarps = kBlock / 32;
  static_assert(kItems * kWarps <= kBlock);
  __shared__ int totals[kBlock];  // of warps, in the order of their elements; then those before each
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
  int all;
  const int mine = threadIdx.x < kItems * kWarps ? totals[threadIdx.x] : 0;
  totals[threadIdx.x] = block_scan(mine, 0, Plus(), 0, all);
  __syncthreads();
  const int64_t start = starts[blockIdx.x];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const int64_t place = start + totals[k * kWarps + warp] + __popc(votes[k] & ((1u << lane) - 1));
    if (!set[k] || place >= args.count) continue;
    const int64_t position = first_item() + k * kBlock;
    if (walk.numel <= kMostElements)
      write_place(args, place, static_cast<uint32_t>(position));
    else
      write_place(args, place, position);
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
  start(context, 1, kLongRow, 0, start_blocks, data, count, total);
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
