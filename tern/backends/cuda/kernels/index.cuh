// Addresses from index tensors, shared by the kernels that read and write through them.
#pragma once

#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/offsets.cuh"
#include "tern/backends/cuda/kernels/report.cuh"
#include "tern/kernels/index.h"

namespace tern::cuda_backend {

/// The element of the addressed tensor that `indices` name; -1 after a report when one of them is out of
/// range.
template <int N>
__device__ __forceinline__ int64_t address(const IndexedDims& dims, const int64_t (&indices)[N],
                                           Fault* fault) {
  int64_t at = 0;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if (j >= dims.count) break;
    const int64_t index = indices[j];
    const int64_t wrapped = dims.wrap && index < 0 ? index + dims.size[j] : index;
    if (static_cast<uint64_t>(wrapped) >= static_cast<uint64_t>(dims.size[j])) {
      report(fault, FaultKind::Index, dims.op, index, dims.size[j], dims.dim[j]);
      return -1;
    }
    at += wrapped * dims.stride[j];
  }
  return at;
}

/// What the index tensors hold at `offsets`.
template <int N>
__device__ __forceinline__ void read_indices(const IndexedDims& dims, const int64_t* offsets,
                                             int64_t (&indices)[N]) {
#pragma unroll
  for (int j = 0; j < N; ++j) indices[j] = j < dims.count ? dims.index[j][offsets[j]] : 0;
}

/// Both at once.
template <int N>
__device__ __forceinline__ int64_t address(const IndexedDims& dims, const int64_t* offsets, Fault* fault) {
  int64_t indices[N];
  read_indices(dims, offsets, indices);
  return address(dims, indices, fault);
}

/// Calls `f.template operator()<T>()` with an unsigned type of the size of a dtype; throws DTypeError where
/// there is none.
template <class F>
void visit_bits(DType dtype, F&& f) {
  switch (itemsize(dtype)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      throw_not_computable(dtype);
  }
}

}  // namespace tern::cuda_backend
