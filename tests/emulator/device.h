// What nvcc knows of a .cu file, for a C++ compiler: included before everything else. With it the sources of
// the CUDA backend become a plugin that runs on the CPU, whose kernels are those of the real one, statement
// by statement. Arithmetic is the host's: rounding and the functions of kernels/math.h are those of the CPU
// kernels.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/emulator/grid.h"
#include "tests/emulator/queue.h"
#include "tests/emulator/watch.h"

namespace emulator {

/// Takes a copy of the arguments, as CUDA does, and runs the grid when its turn has come.
template <class... P>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, void** args, size_t shared,
                   cudaStream_t stream) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || shared > kMostDynamicShared || grid.x == 0 || grid.x > 0x7fffffff ||
      grid.y == 0 || grid.y > 65535 || grid.z == 0 || grid.z > 65535)
    return cudaErrorInvalidConfiguration;
  const auto copied = [&]<size_t... I>(std::index_sequence<I...>) {
    return std::tuple<P...>(*static_cast<P*>(args[I])...);
  }
  (std::index_sequence_for<P...>());
  return enqueue(stream, [=] { run_grid(grid, block, shared, [&] { std::apply(kernel, copied); }); });
}

/// The bits of a value of up to eight bytes.
template <class T>
uint64_t bits_of(T value) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
T shuffled(T value, unsigned source) {
  const uint64_t bits = shuffle(bits_of(value), source);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline unsigned lane() {
  const Position& p = position();
  return (p.thread.x + p.block_size.x * (p.thread.y + p.block_size.y * p.thread.z)) % 32;
}

}  // namespace emulator

// A block's memory is a variable of its own: one grid runs at a time.
#undef __shared__
#define __shared__ static
#define TERN_DYNAMIC_SHARED(T, name) T* const name = static_cast<T*>(::emulator::dynamic_shared())
#undef __launch_bounds__
#define __launch_bounds__(...)

#define threadIdx (::emulator::position().thread)
#define blockIdx (::emulator::position().block)
#define blockDim (::emulator::position().block_size)
#define gridDim (::emulator::position().grid_size)
#define cudaLaunchKernel ::emulator::launch

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  return b < a ? b : a;
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  return a < b ? b : a;
}

inline void __syncthreads() { emulator::sync_block(); }
inline int __syncthreads_count(int vote) { return emulator::sync_block(vote != 0); }
inline unsigned __ballot_sync(unsigned, int vote) { return emulator::ballot(vote != 0); }
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return emulator::shuffled(value, static_cast<unsigned>(lane));
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return emulator::shuffled(value, emulator::lane() ^ static_cast<unsigned>(mask));
}
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned delta) {
  const unsigned lane = emulator::lane();
  return emulator::shuffled(value, lane < delta ? lane : lane - delta);
}

inline void __threadfence_system() {}

#define TERN_ATOMIC __attribute__((noinline, no_sanitize("thread")))
TERN_ATOMIC inline int atomicCAS_system(int* address, int expected, int value) {
  emulator::watch::touch(address, sizeof value, emulator::watch::Access::Atomic, __builtin_return_address(0));
  const int old = *address;
  if (old == expected) *address = value;
  return old;
}

TERN_ATOMIC inline unsigned atomicMin(unsigned* address, unsigned value) {
  emulator::watch::touch(address, sizeof value, emulator::watch::Access::Atomic, __builtin_return_address(0));
  const unsigned old = *address;
  if (value < old) *address = value;
  return old;
}
#undef TERN_ATOMIC

inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
