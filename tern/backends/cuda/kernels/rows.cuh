// Rows that a block reads once and writes once, 16 bytes at a time: long ones stay in registers, many short
// ones in shared memory.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"

namespace tern::cuda_backend {

/// Packs that a thread keeps: as many as the registers of a block of kLongRow threads hold.
template <class T>
inline constexpr int kRowPacks = 64 / static_cast<int>(sizeof(Compute<T>)) / kPack<T>;

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

/// Whether these arrays begin at whole packs.
template <class T>
bool are_aligned(std::initializer_list<const void*> arrays) {
  return std::all_of(arrays.begin(), arrays.end(),
                     [](const void* array) { return is_aligned(array, sizeof(Pack<T, kPack<T>>)); });
}

/// Threads of a block for rows of `size` elements in parts; 0 when they do not fit: too long, or rows that do
/// not begin at whole packs.
template <class T>
unsigned row_part_threads(int64_t size, std::initializer_list<const void*> arrays) {
  constexpr int64_t kN = kPack<T>;
  if (!are_aligned<T>(arrays) || size % kN != 0 || size > kLongRow * kRowPacks<T> * kN) return 0;
  return static_cast<unsigned>(ceil_div(ceil_div(size, kRowPacks<T> * kN), 32) * 32);
}

inline constexpr int kTileThreads = 128, kTileSize = 16 * kTileThreads;
inline constexpr int64_t kManyRows = 1
                                     << 14;  // fill the GPU with a thread for each; fewer wait less in lanes

/// Rows of a tile: whole packs together, of rows of at most 16 elements one for every thread.
__host__ __device__ constexpr int tile_rows(int64_t size) {
  return size > 0 ? kTileSize / static_cast<int>(size) / 32 * 32 : kTileSize;
}

/// Dense rows in shared memory, where threads that have a row each do not meet in a bank.
template <class T>
struct RowTile {
  static constexpr int kN = kPack<T>;
  Compute<T> elements[kTileSize + kTileSize / 32];

  __device__ __forceinline__ Compute<T>& at(unsigned i) { return elements[i + i / 32]; }
  __device__ __forceinline__ void read(const T* in, int count, bool packed) {
    const int whole = packed ? count / kN * kN : 0;
    const auto read_pack = [&](int i) { return *reinterpret_cast<const Pack<T, kN>*>(in + i); };
    const auto keep = [&](int i, const Pack<T, kN>& pack) {
      Compute<T>* to = &at(i);
#pragma unroll
      for (int j = 0; j < kN; ++j) to[j] = widen(pack.at[j]);
    };
    read_ahead<4>(static_cast<int>(threadIdx.x) * kN, whole, kTileThreads * kN, read_pack, keep);
    for (int i = whole + static_cast<int>(threadIdx.x); i < count; i += kTileThreads) at(i) = widen(in[i]);
  }
  __device__ __forceinline__ void write(T* out, int count, bool packed) {
    const int whole = packed ? count / kN * kN : 0;
    for (int i = static_cast<int>(threadIdx.x) * kN; i < whole; i += kTileThreads * kN) {
      const Compute<T>* from = &at(i);
      Pack<T, kN> pack;
#pragma unroll
      for (int j = 0; j < kN; ++j) pack.at[j] = narrow<T>(from[j]);
      *reinterpret_cast<Pack<T, kN>*>(out + i) = pack;
    }
    for (int i = whole + static_cast<int>(threadIdx.x); i < count; i += kTileThreads)
      out[i] = narrow<T>(at(i));
  }
};

}  // namespace tern::cuda_backend
