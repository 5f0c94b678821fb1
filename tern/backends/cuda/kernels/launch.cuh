// Starting of kernels from the functions of the table: grid sizes, the checked launch, pieces of huge
// geometries.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "tern/backends/cuda/check.h"
#include "tern/backends/cuda/device.h"
#include "tern/backends/cuda/kernels/offsets.cuh"
#include "tern/core/dtype.h"
#include "tern/kernels/strides.h"

namespace tern::cuda_backend {

inline constexpr int kBlock = 256;  // threads of a block where nothing asks for another number

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A grid's first dimension. Throws for more blocks than CUDA takes, which no tensor that fits into memory
/// needs.
inline unsigned blocks(int64_t count) {
  if (count > 0x7fffffff) throw_too_many_blocks(count);
  return static_cast<unsigned>(count);
}

/// Starts a kernel on the stream of the launch, whose GPU is the current one. An empty grid does nothing.
template <class... P>
void start(const LaunchContext& context, dim3 grid, dim3 block, size_t shared, void (*kernel)(P...),
           const std::type_identity_t<P>&... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const void* pointers[] = {&args...};
  TERN_CUDA_CALL(cudaLaunchKernel(kernel, grid, block, const_cast<void**>(pointers), shared,
                                  stream_of(context.stream).handle()));
}

/// Elements that one kernel can number with 31 bits.
inline constexpr int64_t kMostElements = 0x7fffffff;

/// Calls `f(piece, offsets)` for pieces of at most `most` elements; `offsets` are what each operand's pointer
/// moves by, in elements. The first elements come first.
template <int N, class F>
void for_pieces(const Geometry<N>& g, int64_t most, const int64_t (&offsets)[N], const F& f) {
  if (g.numel <= most) return f(g, offsets);
  int d = 0;
  while (g.sizes[d] == 1) ++d;
  int64_t begin = 0;
  for (int64_t size : {g.sizes[d] / 2, g.sizes[d] - g.sizes[d] / 2}) {
    Geometry<N> piece = g;
    piece.numel = g.numel / g.sizes[d] * size;
    piece.sizes[d] = size;
    int64_t moved[N];
    for (int i = 0; i < N; ++i) moved[i] = offsets[i] + begin * g.strides[i][d];
    for_pieces(piece, most, moved, f);
    begin += size;
  }
}
template <int N, class F>
void for_pieces(const Geometry<N>& g, int64_t most, const F& f) {
  const int64_t none[N] = {};
  if (g.numel > 0) for_pieces(g, most, none, f);
}
template <int N, class F>
void for_pieces(const Geometry<N>& g, const F& f) {
  for_pieces(g, kMostElements, f);
}

/// Throws for channels that for_planes does not take.
inline void check_planes(int64_t channels, int64_t size) {
  if (size > kMostElements || channels > kMostElements / 2) throw_not_on_gpus("channels of 2^31 elements");
}

/// Calls `f(begin, count, channels)` for pieces of [batch, channels, size] that are whole planes of at most
/// kMostElements together; `channels` tells a piece's element its channel.
template <class F>
void for_planes(int64_t batch, int64_t channels, int64_t size, const F& f) {
  check_planes(channels, size);
  const int64_t planes = batch * channels;
  if (planes * size == 0) return;
  const int64_t at_once = std::min(kMostElements / size, kMostElements / 2);
  for (int64_t p = 0; p < planes; p += at_once)
    f(p * size, static_cast<uint32_t>(std::min(at_once, planes - p) * size), Channels(size, channels, p));
}

template <class T>
T* moved(T* pointer, int64_t elements) {
  return pointer ? pointer + elements : nullptr;
}
inline const void* moved(const void* pointer, int64_t elements, DType dtype) {
  return moved(static_cast<const char*>(pointer), elements * static_cast<int64_t>(itemsize(dtype)));
}
inline void* moved(void* pointer, int64_t elements, DType dtype) {
  return moved(static_cast<char*>(pointer), elements * static_cast<int64_t>(itemsize(dtype)));
}

inline bool is_aligned(const void* pointer, size_t nbytes) {
  return reinterpret_cast<uintptr_t>(pointer) % nbytes == 0;
}

}  // namespace tern::cuda_backend
