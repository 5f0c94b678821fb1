// What the kernels that write by index share: where they write, and how they put values together.
#pragma once

#include "tern/backends/cuda/kernels/index.cuh"
#include "tern/kernels/functors.h"

namespace tern::cuda_backend {

/// Integers wrap.
struct WrappingSum {
  template <class C>
  __device__ __forceinline__ C operator()(C a, C b) const {
    return functors::wrap_add(a, b);
  }
};

/// Sums in C: float, double or int64.
template <class C>
struct AddElements {
  static constexpr bool kLastCounts = false;
  C value;
  C sum = C(0);
  __device__ C read(const void* source, DType dtype, int64_t i) const {
    return source ? load<C>(dtype, source, i) : value;
  }
  __device__ void take(C x) { sum = WrappingSum()(sum, x); }
  __device__ void finish(void* out, DType dtype, int64_t i) const {
    store<C>(dtype, out, i, WrappingSum()(load<C>(dtype, out, i), sum));
  }
};

/// Elements in C, joined by a functor: products, largest or smallest ones.
template <class C, class Functor>
struct JoinElements {
  static constexpr bool kLastCounts = false;
  C value;
  Functor join;
  C joined{};
  bool any = false;
  __device__ C read(const void* source, DType dtype, int64_t i) const {
    return source ? load<C>(dtype, source, i) : value;
  }
  __device__ void take(C x) {
    joined = any ? join(joined, x) : x;
    any = true;
  }
  __device__ void finish(void* out, DType dtype, int64_t i) const {
    if (any) store<C>(dtype, out, i, join(load<C>(dtype, out, i), joined));
  }
};

template <int N>
struct Put {
  DType dtype;
  void* out;
  const void* source;
  IndexedDims dims;
  uint32_t free_count, addressed_count;
  Offsets<2 + N> free, addressed;
  Fault* fault;
  int64_t unit = 1;  ///< of addresses, in elements of the target

  /// Makes addresses the places that a single index tensor names.
  void count_places() {
    unit = dims.stride[0];
    dims.stride[0] = 1;
  }
};

template <int N>
bool is_fixed(const IndexGeometry& free, const IndexedDims& dims) {
  for (int j = 0; j < std::min(N, dims.count); ++j)
    for (int d = 0; d < free.ndim; ++d)
      if (free.strides[2 + j][d] != 0 && free.sizes[d] > 1) return false;
  return true;
}

/// So many addresses every thread walks.
inline constexpr int64_t kFewAddresses = 16;

/// Adds what a single index tensor says by sums in shared memory. False, and nothing done, where lines (the
/// elements that one free element's addresses may name) are too long or addresses too few.
template <class C>
bool add_lines(const LaunchContext& context, const IndexPutArgs& args);

}  // namespace tern::cuda_backend
