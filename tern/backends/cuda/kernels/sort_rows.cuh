// Keys that order like elements, and rows that are sorted or selected from without a radix sort.
#pragma once

#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/device/backend.h"
#include "tern/kernels/sort.h"

namespace tern::cuda_backend {

/// Unsigned numbers of as many bits as an element has, in the order asked for: NaN above everything, or below
/// when descending, and -0 equal to 0.
struct KeyOrder {
  int nbytes;
  bool floating, descending;
  uint64_t mask, sign, infinity;

  explicit KeyOrder(const SortArgs& args)
      : nbytes(static_cast<int>(itemsize(args.dtype))),
        floating(is_floating_point(args.dtype)),
        descending(args.descending),
        mask(~uint64_t{0} >> (64 - 8 * nbytes)),
        sign(args.dtype == DType::Bool || args.dtype == DType::UInt8 ? 0 : mask ^ mask >> 1),
        infinity(args.dtype == DType::Float64    ? 0x7ff0000000000000
                 : args.dtype == DType::Float32  ? 0x7f800000
                 : args.dtype == DType::BFloat16 ? 0x7f80
                                                 : 0x7c00) {}

  /// Of an element's bits; Key is uint32_t, or uint64_t for elements of eight bytes.
  template <class Key>
  __device__ __forceinline__ Key key(Key bits) const {
    const Key all = static_cast<Key>(mask), top = static_cast<Key>(sign);
    if (floating) {
      const Key magnitude = bits & ~top;
      if (magnitude == 0) bits = 0;
      bits = magnitude > static_cast<Key>(infinity) ? all : bits & top ? bits ^ all : bits | top;
    } else {
      bits ^= top;
    }
    return descending ? bits ^ all : bits;
  }
  __device__ __forceinline__ bool is_nan(uint64_t key) const {
    return floating && key == (descending ? 0 : mask);
  }
};

/// Calls f with `data` as a pointer to the bits of elements whose keys are of type Key.
template <class Key, class F>
__device__ __forceinline__ void visit_raw(const KeyOrder& order, const void* data, const F& f) {
  if constexpr (sizeof(Key) == 8)
    f(static_cast<const uint64_t*>(data));
  else if (order.nbytes == 4)
    f(static_cast<const uint32_t*>(data));
  else if (order.nbytes == 2)
    f(static_cast<const uint16_t*>(data));
  else
    f(static_cast<const uint8_t*>(data));
}

/// Where `only_last` finds its element in a sorted row: is_nan(i) tells it of the i-th.
template <class IsNan>
__device__ __forceinline__ int64_t last_rank(const SortArgs& args, const IsNan& is_nan) {
  if (!args.nan_wins) return args.count - 1;
  if (args.descending) return is_nan(0) ? 0 : args.count - 1;
  if (!is_nan(args.size - 1)) return args.count - 1;
  return first_place(args.size - 1, is_nan);
}

/// Does what it can do faster than a radix sort of all elements: rows that fit into a block, and the first
/// few of any rows. False: nothing was done.
bool sort_in_blocks(const LaunchContext& context, const SortArgs& args);

}  // namespace tern::cuda_backend
