// Layer, group and RMS norm: a block for each row. Sums of parameter gradients go over chunks of rows, whose
// partial sums are then added in order. Batch norm is in norm_batch.cu.
#include "tern/kernels/norm.h"

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"

namespace tern::cuda_backend {
namespace {

template <class C>
struct Sums {
  C first, second;
};
struct PlusSums {
  template <class C>
  __device__ __forceinline__ Sums<C> operator()(const Sums<C>& a, const Sums<C>& b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

/// One over a standard deviation, in double for double alone.
__device__ __forceinline__ float inverse_root(float x) { return 1.0f / ::sqrtf(x); }
__device__ __forceinline__ double inverse_root(double x) { return 1.0 / ::sqrt(x); }

/// The parameter of element j of row r.
template <class Args>
__device__ __forceinline__ int64_t param_at(const Args& args, int64_t r, int64_t j) {
  return r % args.groups * (args.size / args.inner) + (args.inner == 1 ? j : j / args.inner);
}

template <class T>
__global__ void normalise_rows(RowNormArgs args) {
  using C = Compute<T>;
  const int64_t r = blockIdx.x, size = args.size;
  const T* x = static_cast<const T*>(args.input) + r * size;
  T* out = static_cast<T*>(args.output) + r * size;
  const C n = static_cast<C>(size);
  C mean = C(0);
  if (!args.rms) {
    C sum = C(0);
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) sum += widen(x[i]);
    mean = block_reduce(sum, Plus()) / n;
  }
  C squares = C(0);
  for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
    const C d = widen(x[i]) - mean;
    squares += d * d;
  }
  const C invstd = inverse_root(block_reduce(squares, Plus()) / n + static_cast<C>(args.eps));
  if (threadIdx.x == 0) {
    if (!args.rms) static_cast<C*>(args.mean)[r] = mean;
    static_cast<C*>(args.invstd)[r] = invstd;
  }
  const C* weight = static_cast<const C*>(args.weight);
  const C* bias = static_cast<const C*>(args.bias);
  for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
    const int64_t p = weight || bias ? param_at(args, r, i) : 0;
    const C y = (widen(x[i]) - mean) * invstd * (weight ? weight[p] : C(1)) + (bias ? bias[p] : C(0));
    out[i] = narrow<T>(y);
  }
}

/// With xhat = (x - mean) * invstd and h = g * weight:
/// grad_x = invstd * (h - mean(h) - xhat * mean(h * xhat)); for RMS norm without the term mean(h).
template <class T>
__global__ void input_gradient(RowNormBackwardArgs args) {
  using C = Compute<T>;
  const int64_t r = blockIdx.x, size = args.size;
  const T* x = static_cast<const T*>(args.input) + r * size;
  const T* g = static_cast<const T*>(args.grad_output) + r * size;
  T* out = static_cast<T*>(args.grad_input) + r * size;
  const C* weight = static_cast<const C*>(args.weight);
  const C mean = args.rms ? C(0) : static_cast<const C*>(args.mean)[r];
  const C invstd = static_cast<const C*>(args.invstd)[r];
  Sums<C> sums{C(0), C(0)};
  for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
    const C h = widen(g[i]) * (weight ? weight[param_at(args, r, i)] : C(1));
    sums.first += h;
    sums.second += h * (widen(x[i]) - mean);
  }
  sums = block_reduce(sums, PlusSums());
  const C n = static_cast<C>(size);
  const C along = sums.second * invstd * invstd * invstd / n;
  const C shift = args.rms ? C(0) : sums.first * invstd / n;
  for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
    const C h = widen(g[i]) * (weight ? weight[param_at(args, r, i)] : C(1));
    out[i] = narrow<T>(h * invstd - shift - (widen(x[i]) - mean) * along);
  }
}

/// Rows of one partial sum, at least.
inline constexpr int64_t kParamRows = 64;

/// A thread for each parameter and chunk of `rows` rows: partial[chunk][0 or 1][parameter].
template <class T>
__global__ void param_partials(RowNormBackwardArgs args, int64_t rows, Compute<T>* partial) {
  using C = Compute<T>;
  const int64_t params = args.size / args.inner, total = args.groups * params;
  const int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, chunk = blockIdx.y;
  if (p >= total) return;
  const int64_t group = p / params, place = p % params;
  const int64_t begin = chunk * rows, end = min(begin + rows, args.rows);
  C weight_sum = C(0), bias_sum = C(0);
  for (int64_t r = begin + ((group - begin) % args.groups + args.groups) % args.groups; r < end;
       r += args.groups) {
    const C mean = args.rms ? C(0) : static_cast<const C*>(args.mean)[r];
    const C invstd = static_cast<const C*>(args.invstd)[r];
    const int64_t start = r * args.size + place * args.inner;
    for (int64_t i = 0; i < args.inner; ++i) {
      const C g = widen(static_cast<const T*>(args.grad_output)[start + i]);
      weight_sum += g * (widen(static_cast<const T*>(args.input)[start + i]) - mean) * invstd;
      bias_sum += g;
    }
  }
  partial[2 * chunk * total + p] = weight_sum;
  partial[(2 * chunk + 1) * total + p] = bias_sum;
}

template <class C>
__global__ void join_params(const C* partial, int64_t chunks, int64_t total, C* grad_weight, C* grad_bias) {
  const int64_t p = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (p >= total) return;
  C weight_sum = C(0), bias_sum = C(0);
  for (int64_t c = 0; c < chunks; ++c) {
    weight_sum += partial[2 * c * total + p];
    bias_sum += partial[(2 * c + 1) * total + p];
  }
  if (grad_weight) grad_weight[p] = weight_sum;
  if (grad_bias) grad_bias[p] = bias_sum;
}

unsigned threads_for(int64_t size) {
  return size <= 64 ? 32 : size <= 1024 ? 128 : size <= 8192 ? 256 : 1024;
}

}  // namespace

void row_norm(const LaunchContext& context, const RowNormArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    start(context, blocks(args.rows), threads_for(args.size), 0, normalise_rows<T>, args);
  });
}

void row_norm_backward(const LaunchContext& context, const RowNormBackwardArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    using C = Compute<T>;
    if (args.grad_input)
      start(context, blocks(args.rows), threads_for(args.size), 0, input_gradient<T>, args);
    if (!args.grad_weight && !args.grad_bias) return;
    const int64_t total = args.groups * (args.size / args.inner);
    if (total == 0) return;
    const int64_t rows = std::max({kParamRows, args.groups, ceil_div(args.rows, 1024)});
    const int64_t chunks = std::max<int64_t>(1, ceil_div(args.rows, rows));
    const Storage scratch = workspace(context, static_cast<size_t>(2 * chunks * total) * sizeof(C));
    auto* partial = static_cast<C*>(scratch->data());
    start(context, dim3(blocks(ceil_div(total, 64)), static_cast<unsigned>(chunks)), 64, 0, param_partials<T>,
          args, rows, partial);
    start(context, blocks(ceil_div(total, kBlock)), kBlock, 0, join_params<C>, static_cast<const C*>(partial),
          chunks, total, static_cast<C*>(args.grad_weight), static_cast<C*>(args.grad_bias));
  });
}

}  // namespace tern::cuda_backend
