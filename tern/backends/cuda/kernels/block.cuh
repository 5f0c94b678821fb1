// Threads of a block putting their results together, in an order that is always the same.
#pragma once

#include <cstdint>
#include <cstring>

namespace tern::cuda_backend {

inline constexpr unsigned kAllLanes = 0xffffffffu;

/// The value of the lane whose number differs by `mask`; of any type of whole words.
template <class T>
__device__ __forceinline__ T shuffle_xor(T value, int mask) {
  static_assert(sizeof(T) % 4 == 0);
  constexpr int kWords = sizeof(T) / 4;
  uint32_t words[kWords];
  memcpy(words, &value, sizeof value);
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_xor_sync(kAllLanes, words[i], mask);
  memcpy(&value, words, sizeof value);
  return value;
}

/// Over groups of `width` lanes (a power of two up to 32) of a whole warp; every lane gets the result.
template <class T, class Op>
__device__ __forceinline__ T warp_reduce(T value, const Op& op, int width = 32) {
  for (int mask = width / 2; mask > 0; mask /= 2) {
    const T other = shuffle_xor(value, mask);
    // The lower lane's value comes first, so that both compute the same.
    value = (threadIdx.x & mask) == 0 ? op(value, other) : op(other, value);
  }
  return value;
}

/// Over the whole one-dimensional block, of whole warps; every thread gets the result.
template <class T, class Op>
__device__ __forceinline__ T block_reduce(T value, const Op& op) {
  __shared__ alignas(16) unsigned char shared[32 * sizeof(T)];
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

struct Plus {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};

/// The larger; NaN wins.
struct Larger {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

}  // namespace tern::cuda_backend
