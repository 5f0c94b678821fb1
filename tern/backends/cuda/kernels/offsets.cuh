// The offset calculator: from the number of an element to where it lies in each operand.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/kernels/strides.h"

namespace tern::cuda_backend {

/// Division of numbers below 2^31 by a fixed one: a product and a shift (Granlund and Montgomery, 1994).
struct Divider {
  uint32_t divisor = 1, factor = 1, shift = 0;

  Divider() = default;
  explicit Divider(int64_t by) : divisor(static_cast<uint32_t>(by)) {
    while (shift < 32 && (uint64_t{1} << shift) < divisor) ++shift;
    factor = static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift) - divisor)) / divisor + 1);
  }
  __device__ __forceinline__ uint32_t divide(uint32_t n) const { return (__umulhi(n, factor) + n) >> shift; }
};

/// The channels of [planes, size] elements whose planes belong to one channel after the other, of at most
/// 2^31 - 1 elements.
struct Channels {
  Divider size, count;
  uint32_t first;  ///< channel of the first plane

  Channels(int64_t size_, int64_t count_, int64_t first_plane)
      : size(size_), count(count_), first(static_cast<uint32_t>(first_plane % count_)) {}
  __device__ __forceinline__ uint32_t at(uint32_t i) const {
    const uint32_t plane = size.divide(i) + first;
    return plane - count.divide(plane) * count.divisor;
  }
};

/// Where element i of a channel lies in [batch, channels, inner].
struct InChannel {
  int64_t channels, inner;
  Divider by;
  bool narrow;  ///< whether the elements of a channel can be numbered with 31 bits

  InChannel(int64_t batch, int64_t channels_, int64_t inner_)
      : channels(channels_),
        inner(inner_),
        by(std::clamp<int64_t>(inner_, 1, 0x7fffffff)),
        narrow(batch * inner_ <= 0x7fffffff) {}
  __device__ __forceinline__ int64_t at(int64_t c, int64_t i) const {
    if (inner == 1) return i * channels + c;
    const int64_t image = narrow ? by.divide(static_cast<uint32_t>(i)) : i / inner;
    return (image * channels + c) * inner + (i - image * inner);
  }
};

/// Of at most 2^31 - 1 elements, row-major. May be made for more, and then not asked.
template <int N>
struct Offsets {
  int ndim;
  Divider sizes[kMaxDims];
  int64_t strides[N][kMaxDims];

  explicit Offsets(const Geometry<N>& g) : ndim(g.ndim) {
    for (int d = 0; d < g.ndim; ++d) {
      sizes[d] = Divider(std::clamp<int64_t>(g.sizes[d], 1, 0x7fffffff));
      for (int i = 0; i < N; ++i) strides[i][d] = g.strides[i][d];
    }
  }

  __device__ __forceinline__ void at(uint32_t index, int64_t (&offsets)[N]) const {
#pragma unroll
    for (int i = 0; i < N; ++i) offsets[i] = 0;
      // A loop as it stands: unrolled eight times it would make up most of every kernel.
#pragma unroll 1
    for (int d = ndim - 1; d > 0; --d) {
      const uint32_t rest = sizes[d].divide(index), place = index - rest * sizes[d].divisor;
#pragma unroll
      for (int i = 0; i < N; ++i) offsets[i] += place * strides[i][d];
      index = rest;
    }
#pragma unroll
    for (int i = 0; i < N; ++i) offsets[i] += index * strides[i][0];
  }
};

}  // namespace tern::cuda_backend
