// Threads of a block putting their results together, in an order that is always the same.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tern::cuda_backend {

/// The block's memory whose size the launch says, as an array.
#ifndef TERN_DYNAMIC_SHARED
#define TERN_DYNAMIC_SHARED(T, name) extern __shared__ T name[]
#endif

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kLongRow = 1024;            // threads of a block for a long row, at most
inline constexpr unsigned kColumnThreads = 256;  // of a block for columns

/// A value of any type of whole words, each of which `shuffle` takes from another lane.
template <class T, class Shuffle>
__device__ __forceinline__ T shuffle_words(T value, const Shuffle& shuffle) {
  static_assert(sizeof(T) % 4 == 0);
  constexpr int kWords = sizeof(T) / 4;
  uint32_t words[kWords];
  memcpy(words, &value, sizeof value);
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = shuffle(words[i]);
  memcpy(&value, words, sizeof value);
  return value;
}
/// The value of the lane whose number differs by `mask`.
template <class T>
__device__ __forceinline__ T shuffle_xor(T value, int mask) {
  return shuffle_words(value, [&](uint32_t word) { return __shfl_xor_sync(kAllLanes, word, mask); });
}
/// The value of the lane whose number is less by `step`; its own where there is none.
template <class T>
__device__ __forceinline__ T shuffle_up(T value, int step) {
  return shuffle_words(value, [&](uint32_t word) { return __shfl_up_sync(kAllLanes, word, step); });
}

/// The sum of f(first), f(first + step), ... below `end`, as four sums: shorter chains of roundings, and
/// loads that do not wait for each other.
template <class C, class F>
__device__ __forceinline__ C sum_of(int64_t first, int64_t end, int64_t step, const F& f) {
  C sums[4] = {};
  int64_t i = first;
  for (; i + 3 * step < end; i += 4 * step) {
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[k] += f(i + k * step);
  }
#pragma unroll 1
  for (; i < end; i += step) sums[0] += f(i);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// Calls use(i, read(i)) for i = first, first + step, ... below `end`. Several are read before the first is
/// used, so that they do not wait for each other.
template <int kAtOnce, class I, class Read, class Use>
__device__ __forceinline__ void read_ahead(I first, std::type_identity_t<I> end, std::type_identity_t<I> step,
                                           const Read& read, const Use& use) {
  decltype(read(first)) values[kAtOnce];
#pragma unroll 1
  for (I i = first; i < end; i += kAtOnce * step) {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (i + k * step < end) values[k] = read(i + k * step);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (i + k * step < end) use(i + k * step, values[k]);
  }
}

/// Over groups of `width` lanes (a power of two up to 32) of a whole warp; every lane gets the result. Of
/// several values the shuffles do not wait for each other.
template <class T, int N, class Op>
__device__ __forceinline__ void warp_reduce(T (&values)[N], const Op& op, int width = 32) {
  for (int mask = width / 2; mask > 0; mask /= 2) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const T other = shuffle_xor(values[i], mask);
      // The lower lane's value comes first, so that both compute the same.
      values[i] = (threadIdx.x & mask) == 0 ? op(values[i], other) : op(other, values[i]);
    }
  }
}
template <class T, class Op>
__device__ __forceinline__ T warp_reduce(T value, const Op& op, int width = 32) {
  T values[1] = {value};
  warp_reduce(values, op, width);
  return values[0];
}

/// Over the whole one-dimensional block, of whole warps; every thread gets the result.
template <class T, class Op>
__device__ __forceinline__ T block_reduce(T value, const Op& op) {
  alignas(16) __shared__ unsigned char shared[32 * sizeof(T)];
  T* partial = reinterpret_cast<T*>(shared);
  value = warp_reduce(value, op);
  const int warps = blockDim.x / 32;
  if (warps == 1) return value;
  __syncthreads();  // an earlier call may still be read
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  T result = partial[0];
  for (int w = 1; w < warps; ++w) result = op(result, partial[w]);
  return result;
}

/// Over the whole one-dimensional block, of whole warps: `start` joined with the values of all threads before
/// this one, in their order; `total` becomes the join of all values.
template <class T, class Op>
__device__ __forceinline__ T block_scan(T value, T start, const Op& op, T identity, T& total) {
  __shared__ T warp_totals[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T running = value;
  for (int step = 1; step < 32; step *= 2) {
    const T other = shuffle_up(running, step);
    if (lane >= step) running = op(other, running);
  }
  T before = shuffle_up(running, 1);
  if (lane == 0) before = identity;
  __syncthreads();  // an earlier call may still be read
  if (lane == 31) warp_totals[warp] = running;
  __syncthreads();
  T base = total = identity;
  for (int w = 0; w < static_cast<int>(blockDim.x / 32); ++w) {
    if (w == warp) base = total;
    total = op(total, warp_totals[w]);
  }
  return op(op(start, base), before);
}

/// Blocks for columns, whose threads along x have neighbouring columns and those along y share one: as many
/// along y as `size` elements of a column are worth.
inline dim3 column_block(int64_t columns, int64_t size) {
  unsigned x = 1, y = 1;
  while (x < 32 && x < columns) x *= 2;
  while (x * y < kColumnThreads && y * 8 <= size) y *= 2;
  return {kColumnThreads / y, y};
}

/// Over the threads along y, whose number is a power of two; all of them get the result.
template <class T, class Op>
__device__ __forceinline__ T column_reduce(T value, const Op& op) {
  alignas(16) __shared__ unsigned char shared[kColumnThreads * sizeof(T)];
  if (blockDim.y == 1) return value;
  T* column = reinterpret_cast<T*>(shared) + threadIdx.x;
  __syncthreads();  // an earlier call may still be read
  column[threadIdx.y * blockDim.x] = value;
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) {
      T* mine = column + threadIdx.y * blockDim.x;
      *mine = op(*mine, mine[half * blockDim.x]);
    }
  }
  __syncthreads();
  return *column;
}

struct Plus {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};

/// The larger; NaN wins.
struct Larger {
#if __CUDA_ARCH__ >= 800
  /// One instruction, where comparing takes three and predicates that loads could use.
  __device__ __forceinline__ float operator()(float a, float b) const {
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
  }
#endif
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

/// The smaller; NaN wins.
struct Smaller {
#if __CUDA_ARCH__ >= 800
  __device__ __forceinline__ float operator()(float a, float b) const {
    float smaller;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
    return smaller;
  }
#endif
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

}  // namespace tern::cuda_backend
