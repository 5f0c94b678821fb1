// Long rows that a block reads once, keeps in registers and writes once, 16 bytes at a time.
#pragma once

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"

namespace tern::cuda_backend {

/// Packs that a thread keeps: as many as the registers of a block of kLongRow threads hold.
template <class T>
inline constexpr int kRowPacks = sizeof(T) == 8 ? 2 : 4;

/// This thread's part of a row: every blockDim.x-th pack.
template <class T>
struct RowPart {
  static constexpr int kN = kPack<T>;
  Compute<T> at[kRowPacks<T> * kN];

  /// Calls f(p, first) for its packs, of which number p begins at `first` in the row.
  template <class F>
  static __device__ __forceinline__ void packs(int size, const F& f) {
#pragma unroll
    for (int p = 0; p < kRowPacks<T>; ++p) {
      const int first = static_cast<int>(threadIdx.x + p * blockDim.x) * kN;
      if (first >= size) return;
      f(p, first);
    }
  }
  /// Calls f(x, i) for its elements, x the value and i the place in the row.
  template <class F>
  __device__ __forceinline__ void each(int size, const F& f) {
    packs(size, [&](int p, int first) {
#pragma unroll
      for (int j = 0; j < kN; ++j) f(at[p * kN + j], first + j);
    });
  }
  /// Calls f(x, y) for its elements and those of another part at the same places.
  template <class F>
  __device__ __forceinline__ void each_with(const RowPart& other, int size, const F& f) {
    packs(size, [&](int p, int) {
#pragma unroll
      for (int j = 0; j < kN; ++j) f(at[p * kN + j], other.at[p * kN + j]);
    });
  }
  __device__ __forceinline__ void read(const T* row, int size) {
    packs(size, [&](int p, int first) {
      const auto pack = *reinterpret_cast<const Pack<T, kN>*>(row + first);
#pragma unroll
      for (int j = 0; j < kN; ++j) at[p * kN + j] = widen(pack.at[j]);
    });
  }
  __device__ __forceinline__ void write(T* row, int size) const {
    packs(size, [&](int p, int first) {
      Pack<T, kN> pack;
#pragma unroll
      for (int j = 0; j < kN; ++j) pack.at[j] = narrow<T>(at[p * kN + j]);
      *reinterpret_cast<Pack<T, kN>*>(row + first) = pack;
    });
  }
};

/// Threads of a block for rows of `size` elements in parts; 0 when they do not fit: too long, or rows that do
/// not begin at whole packs.
template <class T>
unsigned row_part_threads(int64_t size, std::initializer_list<const void*> arrays) {
  constexpr int64_t kN = kPack<T>;
  for (const void* array : arrays)
    if (!is_aligned(array, sizeof(Pack<T, kN>))) return 0;
  if (size % kN != 0 || size > kLongRow * kRowPacks<T> * kN) return 0;
  return static_cast<unsigned>(ceil_div(ceil_div(size, kRowPacks<T> * kN), 32) * 32);
}

}  // namespace tern::cuda_backend
