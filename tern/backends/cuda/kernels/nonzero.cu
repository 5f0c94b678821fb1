// Elements that are not zero: how many, and where. A block for each section.
#include "tern/backends/cuda/kernels/reduce.cuh"
#include "tern/kernels/index.h"

namespace tern::cuda_backend {
namespace {

/// Elements of a thread, kBlock apart.
inline constexpr int kItems = kNonzeroSection / kBlock;

/// The first element of this thread.
__device__ __forceinline__ int64_t first_item() { return blockIdx.x * kNonzeroSection + threadIdx.x; }

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

__global__ void count_sections(DType dtype, const void* in, Walk walk, int64_t* counts) {
  bool set[kItems];
  read_items(dtype, in, walk, set);
  int mine = 0;
#pragma unroll
  for (int k = 0; k < kItems; ++k) mine += set[k] ? 1 : 0;
  const int total = block_reduce(mine, Plus());
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

/// Counts become the totals before each, and one more that of all; one block walks over them.
__global__ void __launch_bounds__(kLongRow) start_sections(int64_t* counts, int64_t sections) {
  constexpr int kCounts = 4;  // of a thread, neighbours
  int64_t before = 0;
  for (int64_t base = 0; base < sections; base += kLongRow * kCounts) {
    const int64_t first = base + threadIdx.x * kCounts;
    int64_t mine[kCounts], sum = 0, all;
#pragma unroll
    for (int k = 0; k < kCounts; ++k) mine[k] = first + k < sections ? counts[first + k] : 0;
#pragma unroll
    for (int k = 0; k < kCounts; ++k) sum += mine[k];
    int64_t start = block_scan(sum, before, Plus(), int64_t{0}, all);
#pragma unroll
    for (int k = 0; k < kCounts; ++k) {
      if (first + k < sections) counts[first + k] = start;
      start += mine[k];
    }
    before += all;
  }
  if (threadIdx.x == 0) counts[sections] = before;
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

__global__ void __launch_bounds__(kBlock) list_sections(NonzeroArgs args, Walk walk) {
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
  const int64_t start = args.starts[blockIdx.x];
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

}  // namespace

void nonzero_count(const LaunchContext& context, const NonzeroCountArgs& args) {
  if (!is_computable(args.dtype)) throw_not_computable(args.dtype);
  const int64_t sections = nonzero_sections(args.geometry.numel);
  start(context, blocks(sections), kBlock, 0, count_sections, args.dtype, args.in, Walk(args.geometry),
        args.starts);
  start(context, 1, kLongRow, 0, start_sections, args.starts, sections);
}

void nonzero(const LaunchContext& context, const NonzeroArgs& args) {
  start(context, blocks(nonzero_sections(args.geometry.numel)), kBlock, 0, list_sections, args,
        Walk(args.geometry));
}

}  // namespace tern::cuda_backend
