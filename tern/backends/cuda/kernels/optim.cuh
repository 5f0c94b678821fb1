// Fused passes over the tensors of an optimizer's list: entries travel in the arguments of the kernel, some
// dozens at a time, and every block works on one piece of one entry.
#pragma once

#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/kernels/optim.h"

namespace tern::cuda_backend {

/// Elements of one block, at most.
inline constexpr int64_t kPiece = 4096;
/// Entries of one launch: with their first blocks they stay below the 4 KiB that arguments may have.
inline constexpr int kEntries = 40;

struct Entries {
  int count;
  int piece;  ///< elements of a block
  uint32_t first_block[kEntries + 1];
  OptimEntry entry[kEntries];
};
static_assert(sizeof(Entries) + 256 <= 4096);

/// The piece of this block: an entry, and elements [begin, end) of it.
struct OptimPiece {
  const OptimEntry& entry;
  int64_t begin, end;
};
__device__ __forceinline__ OptimPiece piece_of(const Entries& entries) {
  int low = 0, high = entries.count - 1;  // the last entry that begins at or before this block
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (entries.first_block[middle] <= blockIdx.x)
      low = middle;
    else
      high = middle - 1;
  }
  const OptimEntry& entry = entries.entry[low];
  const int64_t begin = (blockIdx.x - entries.first_block[low]) * int64_t{entries.piece};
  return {entry, begin, min(begin + entries.piece, entry.numel)};
}

/// Calls `launch(const Entries&, unsigned blocks)` for all entries of a list, in pieces of `piece` elements.
template <class Launch>
void for_entries(const OptimList& list, int64_t piece, Launch&& launch) {
  constexpr int64_t kMostBlocks = 0x7fffffff;
  Entries entries;
  entries.piece = static_cast<int>(piece);
  for (int32_t next = 0; next < list.count;) {
    int64_t total = 0;
    entries.count = 0;
    for (; next < list.count && entries.count < kEntries; ++next) {
      const OptimEntry& entry = list.entries[next];
      if (entry.numel == 0) continue;
      const int64_t count = ceil_div(entry.numel, piece);
      if (total + count > kMostBlocks && entries.count > 0) break;
      entries.first_block[entries.count] = static_cast<uint32_t>(total);
      entries.entry[entries.count++] = entry;
      total += count;
    }
    if (entries.count == 0) return;
    entries.first_block[entries.count] = static_cast<uint32_t>(total);
    launch(entries, blocks(total));
  }
}

/// Step(C&... ) for every element: a functor with `operator()(const OptimEntry&, int64_t i)` for type T.
template <class T, class Step>
__global__ void __launch_bounds__(kBlock) step_entries(Entries entries, Step step) {
  const OptimPiece piece = piece_of(entries);
#pragma unroll 4
  for (int64_t i = piece.begin + threadIdx.x; i < piece.end; i += kBlock) step.template at<T>(piece.entry, i);
}

template <class Step>
void run_steps(const LaunchContext& context, const OptimList& list, const Step& step) {
  // Short lists keep all processors busy too.
  const int64_t piece =
      std::clamp<int64_t>(ceil_div(ceil_div(list.numel, 1024), kBlock) * kBlock, kBlock, kPiece);
  visit_floating(list.dtype, [&]<class T>() {
    for_entries(list, piece, [&](const Entries& entries, unsigned grid) {
      start(context, grid, kBlock, 0, step_entries<T, Step>, entries, step);
    });
  });
}

template <class T>
__device__ __forceinline__ T& param(const OptimEntry& entry, int64_t i) {
  return static_cast<T*>(entry.param)[i];
}
template <class T>
__device__ __forceinline__ Compute<T> grad(const OptimEntry& entry, int64_t i, bool maximize) {
  const Compute<T> g = widen(static_cast<const T*>(entry.grad)[i]);
  return maximize ? -g : g;
}
template <class T>
__device__ __forceinline__ T& state(const OptimEntry& entry, int number, int64_t i) {
  return static_cast<T*>(entry.state[number])[i];
}

}  // namespace tern::cuda_backend
