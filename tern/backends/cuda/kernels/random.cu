// The random kernels: a thread draws one Philox counter and makes its two or four numbers. The formulas are
// in kernels/random.h; what needs sorting is in random_choice.cu.
#include "tern/kernels/random.h"

#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/random_origin.h"

namespace tern::cuda_backend {
namespace {

template <class T>
inline constexpr int kDigits = std::is_same_v<T, Half>       ? 11
                               : std::is_same_v<T, BFloat16> ? 8
                                                             : 24;

/// Whether elements [first, first + kN) exist and can be moved at once.
template <int kN, class T>
__device__ __forceinline__ bool is_pack(const T* array, int64_t first, int64_t numel) {
  return first + kN <= numel && reinterpret_cast<uintptr_t>(array) % sizeof(Pack<T, kN>) == 0;
}

template <class T, int kN>
__device__ __forceinline__ void put(T* out, int64_t first, int64_t numel, const Pack<T, kN>& numbers) {
  if (is_pack<kN>(out, first, numel)) {
    *reinterpret_cast<Pack<T, kN>*>(out + first) = numbers;
    return;
  }
  for (int k = 0; k < kN; ++k)
    if (first + k < numel) out[first + k] = numbers.at[k];
}

/// The words of a counter of the launch.
template <class Args>
__device__ __forceinline__ auto words(const Args& args, int64_t counter) {
  const PhiloxState start = start_of(args);
  return philox(start.seed, start.position + static_cast<uint64_t>(counter));
}

/// Uniform, normal and exponential numbers.
template <class T>
__global__ void draw_floats(RandomArgs args) {
  const int64_t counter = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  constexpr int kN = std::is_same_v<T, double> ? 2 : 4;
  if (counter * kN >= args.numel) return;
  const auto w = words(args, counter);
  Pack<T, kN> numbers;
  if constexpr (std::is_same_v<T, double>) {
    if (args.distribution == Distribution::Normal) {
      const random::DoublePair z = random::normal(w[0], w[1], w[2], w[3]);
      numbers.at[0] = ::fma(args.b, z.first, args.a);
      numbers.at[1] = ::fma(args.b, z.second, args.a);
    } else {
      const double u[2] = {uniform_double(w[0], w[1]), uniform_double(w[2], w[3])};
      for (int k = 0; k < 2; ++k)
        numbers.at[k] = args.distribution == Distribution::Uniform
                            ? ::fmin(::fma(args.width, u[k], args.a), args.b)
                            : -::log(1.0 - u[k]) / args.a;
    }
  } else if (args.distribution == Distribution::Normal) {
    const float mean = static_cast<float>(args.a), std = static_cast<float>(args.b);
    const random::Pair p = random::normal(w[0], w[1]), q = random::normal(w[2], w[3]);
    const float z[4] = {p.first, p.second, q.first, q.second};
    for (int k = 0; k < 4; ++k) numbers.at[k] = narrow<T>(::fmaf(std, z[k], mean));
  } else if (args.distribution == Distribution::Uniform) {
    const float low = static_cast<float>(args.a), last = static_cast<float>(args.b),
                width = static_cast<float>(args.width);
    for (int k = 0; k < 4; ++k) {
      const float x = ::fmaf(width, random::uniform_bits(w[k], kDigits<T>), low);
      numbers.at[k] = narrow<T>(x < last ? x : last);
    }
  } else {
    const float rate = static_cast<float>(args.a);
    for (int k = 0; k < 4; ++k)
      numbers.at[k] = narrow<T>(-random::log(1.0f - random::uniform_bits(w[k], 24)) / rate);
  }
  put(static_cast<T*>(args.out), counter * kN, args.numel, numbers);
}

/// Two integers, or four numbers of 0 and 1.
__global__ void draw_integers(RandomArgs args) {
  const int64_t counter = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const bool bernoulli = args.distribution == Distribution::Bernoulli;
  const int count = bernoulli ? 4 : 2;
  if (counter * count >= args.numel) return;
  const auto w = words(args, counter);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int64_t i = counter * count + k;
    if (k >= count || i >= args.numel) return;
    uint64_t value;
    if (bernoulli) {
      value = uint64_t{w[k]} < args.threshold;
    } else {
      const uint64_t bits = k == 0 ? uint64_t{w[0]} << 32 | w[1] : uint64_t{w[2]} << 32 | w[3];
      value = static_cast<uint64_t>(args.low) + (args.range == 0 ? bits : random::below(bits, args.range));
    }
    const auto number = static_cast<int64_t>(value);
    if (args.dtype == DType::Float64)
      static_cast<double*>(args.out)[i] = static_cast<double>(number);
    else if (is_floating_point(args.dtype))
      store<float>(args.dtype, args.out, i, static_cast<float>(number));
    else
      store<int64_t>(args.dtype, args.out, i, number);
  }
}

template <class T>
__global__ void drop(DropoutArgs args) {
  using C = Compute<T>;
  const int64_t counter = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (counter * 4 >= args.numel) return;
  const auto w = words(args, counter);
  const auto* in = static_cast<const T*>(args.in);
  const C scale = static_cast<C>(args.scale);
  const int64_t first = counter * 4;
  Pack<T, 4> numbers;
  if (is_pack<4>(in, first, args.numel)) {
    numbers = *reinterpret_cast<const Pack<T, 4>*>(in + first);
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) numbers.at[k] = first + k < args.numel ? in[first + k] : T();
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const bool kept = uint64_t{w[k]} < args.threshold && scale != C(0);
    numbers.at[k] = narrow<T>(kept ? widen(numbers.at[k]) * scale : C(0));
  }
  put(static_cast<T*>(args.out), first, args.numel, numbers);
}

struct Origins {
  PhiloxState at[kMostOrigins];
};

__global__ void put_origins(Origins values, int count, PhiloxState* origins) {
  if (static_cast<int>(threadIdx.x) < count) origins[threadIdx.x] = values.at[threadIdx.x];
}

}  // namespace

void set_random_origins(const LaunchContext& context, PhiloxState* origins,
                        std::span<const PhiloxState> values) {
  Origins given;
  std::copy(values.begin(), values.end(), given.at);
  start(context, 1, kMostOrigins, 0, put_origins, given, static_cast<int>(values.size()), origins);
}

void random(const LaunchContext& context, const RandomArgs& args) {
  const int64_t counters = ceil_div(args.numel, numbers_per_counter(args.distribution, args.dtype));
  const unsigned grid = blocks(ceil_div(counters, kBlock));
  if (args.distribution == Distribution::Integer || args.distribution == Distribution::Bernoulli) {
    if (!is_computable(args.dtype)) throw_not_computable(args.dtype);
    return start(context, grid, kBlock, 0, draw_integers, args);
  }
  visit_floating(args.dtype, [&]<class T>() { start(context, grid, kBlock, 0, draw_floats<T>, args); });
}

void dropout(const LaunchContext& context, const DropoutArgs& args) {
  const unsigned grid = blocks(ceil_div(ceil_div(args.numel, 4), kBlock));
  visit_floating(args.dtype, [&]<class T>() { start(context, grid, kBlock, 0, drop<T>, args); });
}

}  // namespace tern::cuda_backend
