// Layer, group and RMS norm: a warp for each short row, a block for each long one. Sums of parameter
// gradients go over chunks of rows, whose partial sums are then added in order; where a parameter is that of
// a plane (group norm), all gradients are made of the sums of planes. Batch norm is in norm_batch.cu.
#include "tern/kernels/norm.h"

#include "tern/backends/cuda/kernels/rows.cuh"

namespace tern::cuda_backend {
namespace {

template <class C>
struct Sums {
  C first, second;

  __device__ __forceinline__ void take(C x) {
    first += x;
    second += x * x;
  }
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

/// Where a row's parameters lie. Divisions of 64 bits take longer than all the rest of an element, so that
/// there is one for the row, and one for an element in group norm alone.
struct RowParams {
  int64_t first, inner;
  template <class Args>
  __device__ __forceinline__ RowParams(const Args& args, int64_t row)
      : first(args.groups == 1 ? 0 : row % args.groups * (args.size / args.inner)), inner(args.inner) {}
  __device__ __forceinline__ int64_t at(int64_t i) const { return first + (inner == 1 ? i : i / inner); }
};

/// What a row's result is made of.
template <class T>
struct RowNorm {
  using C = Compute<T>;
  const RowNormArgs& args;
  int64_t row;
  RowParams params;
  C mean = C(0), invstd = C(0);

  __device__ __forceinline__ RowNorm(const RowNormArgs& args_, int64_t row_)
      : args(args_), row(row_), params(args_, row_) {}
  /// What the deviations from `mean`, which was rounded, add to it, and their squares.
  __device__ __forceinline__ void finish(const Sums<C>& deviations) {
    const C n = static_cast<C>(args.size);
    C variance = deviations.second / n;
    if (!args.rms) {
      const C rest = deviations.first / n;
      mean += rest;
      if (!isinf(variance)) variance -= rest * rest;
      if (variance < C(0)) variance = C(0);
    }
    invstd = inverse_root(variance + static_cast<C>(args.eps));
  }
  __device__ __forceinline__ void keep() const {
    if (!args.rms) static_cast<C*>(args.mean)[row] = mean;
    static_cast<C*>(args.invstd)[row] = invstd;
  }
  __device__ __forceinline__ T result(C x, int64_t i) const {
    const C* weight = static_cast<const C*>(args.weight);
    const C* bias = static_cast<const C*>(args.bias);
    const int64_t p = weight || bias ? params.at(i) : 0;
    return narrow<T>((x - mean) * invstd * (weight ? weight[p] : C(1)) + (bias ? bias[p] : C(0)));
  }
};

/// A warp for each row of at most 32 * kItems elements, which it keeps in registers.
template <class T, int kItems>
__global__ void __launch_bounds__(kBlock, sizeof(T) == 8 ? 1 : 3) normalise_short(RowNormArgs args) {
  using C = Compute<T>;
  const int64_t r = (int64_t{blockIdx.x} * kBlock + threadIdx.x) / 32, size = args.size;
  if (r >= args.rows) return;
  const int lane = threadIdx.x % 32;
  const T* in = static_cast<const T*>(args.input) + r * size;
  C x[kItems], sum = C(0);
#pragma unroll
  for (int k = 0; k < kItems; ++k) x[k] = lane + 32 * k < size ? widen(in[lane + 32 * k]) : C(0);
  RowNorm<T> norm(args, r);
  if (!args.rms) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) sum += x[k];
    norm.mean = warp_reduce(sum, Plus()) / static_cast<C>(size);
  }
  Sums<C> deviations{C(0), C(0)};
#pragma unroll
  for (int k = 0; k < kItems; ++k)
    if (lane + 32 * k < size) deviations.take(x[k] - norm.mean);
  norm.finish(warp_reduce(deviations, PlusSums()));
  if (lane == 0) norm.keep();
  T* out = static_cast<T*>(args.output) + r * size;
#pragma unroll
  for (int k = 0; k < kItems; ++k)
    if (lane + 32 * k < size) out[lane + 32 * k] = norm.result(x[k], lane + 32 * k);
}

/// A block for each row, which it keeps in registers. For layer and RMS norm.
template <class T>
__global__ void __launch_bounds__(kLongRow, 1) normalise_in_parts(RowNormArgs args) {
  using C = Compute<T>;
  const int64_t begin = blockIdx.x * args.size;
  const int size = static_cast<int>(args.size);
  RowPart<T> row;
  row.read(static_cast<const T*>(args.input) + begin, size);
  RowNorm<T> norm(args, blockIdx.x);
  if (!args.rms) {
    C sum = C(0);
    row.each(size, [&](C x, int) { sum += x; });
    norm.mean = block_reduce(sum, Plus()) / static_cast<C>(size);
  }
  Sums<C> deviations{C(0), C(0)};
  row.each(size, [&](C x, int) { deviations.take(x - norm.mean); });
  norm.finish(block_reduce(deviations, PlusSums()));
  if (threadIdx.x == 0) norm.keep();
  const C* weight = static_cast<const C*>(args.weight);
  const C* bias = static_cast<const C*>(args.bias);
  row.each(size, [&](C& x, int i) {
    x = (x - norm.mean) * norm.invstd * (weight ? weight[i] : C(1)) + (bias ? bias[i] : C(0));
  });
  row.write(static_cast<T*>(args.output) + begin, size);
}

/// A block for each row, which comes from the cache after the first time.
template <class T>
__global__ void __launch_bounds__(kLongRow, 1) normalise_long(RowNormArgs args) {
  using C = Compute<T>;
  const int64_t size = args.size;
  const T* x = static_cast<const T*>(args.input) + blockIdx.x * size;
  RowNorm<T> norm(args, blockIdx.x);
  const auto read = [&](int64_t i) { return widen(x[i]); };
  if (!args.rms) {
    const C sum = sum_of<C>(threadIdx.x, size, blockDim.x, read);
    norm.mean = block_reduce(sum, Plus()) / static_cast<C>(size);
  }
  Sums<C> deviations{C(0), C(0)};
  read_ahead<4>(int64_t{threadIdx.x}, size, blockDim.x, read,
                [&](int64_t, C value) { deviations.take(value - norm.mean); });
  norm.finish(block_reduce(deviations, PlusSums()));
  if (threadIdx.x == 0) norm.keep();
  T* out = static_cast<T*>(args.output) + blockIdx.x * size;
  read_ahead<4>(int64_t{threadIdx.x}, size, blockDim.x, read,
                [&](int64_t i, C value) { out[i] = norm.result(value, i); });
}

/// With xhat = (x - mean) * invstd and h = g * weight:
/// grad_x = invstd * (h - mean(h) - xhat * mean(h * xhat)); for RMS norm without the term mean(h).
/// That is h * invstd - shift - (x - mean) * along with {shift, along} from a row's sums of h and h * xhat.
template <class C>
__device__ __forceinline__ Sums<C> terms_of(const RowNormBackwardArgs& args, C sum, C xhat_sum, C invstd) {
  const C n = static_cast<C>(args.size);
  return {args.rms ? C(0) : sum * invstd / n, xhat_sum * invstd * invstd / n};
}

template <class T>
__global__ void __launch_bounds__(kLongRow, 1) input_gradient(RowNormBackwardArgs args) {
  using C = Compute<T>;
  const int64_t r = blockIdx.x, size = args.size;
  const T* x = static_cast<const T*>(args.input) + r * size;
  const T* g = static_cast<const T*>(args.grad_output) + r * size;
  T* out = static_cast<T*>(args.grad_input) + r * size;
  const C* weight = static_cast<const C*>(args.weight);
  const RowParams params(args, r);
  const C mean = args.rms ? C(0) : static_cast<const C*>(args.mean)[r];
  const C invstd = static_cast<const C*>(args.invstd)[r];
  struct Element {
    C grad, weight, x;
  };
  const auto read = [&](int64_t i) {
    return Element{widen(g[i]), weight ? weight[params.at(i)] : C(1), widen(x[i])};
  };
  Sums<C> sums{C(0), C(0)};
  read_ahead<4>(int64_t{threadIdx.x}, size, blockDim.x, read, [&](int64_t, const Element& e) {
    const C h = e.grad * e.weight;
    sums.first += h;
    sums.second += h * (e.x - mean);
  });
  sums = block_reduce(sums, PlusSums());
  const Sums<C> terms = terms_of(args, sums.first, sums.second * invstd, invstd);
  read_ahead<4>(int64_t{threadIdx.x}, size, blockDim.x, read, [&](int64_t i, const Element& e) {
    out[i] = narrow<T>(e.grad * e.weight * invstd - terms.first - (e.x - mean) * terms.second);
  });
}

/// Rows of one partial sum, at least.
inline constexpr int64_t kParamRows = 64;

/// A thread for each parameter and chunk of `rows` rows: partial[chunk][0 or 1][parameter].
template <class T>
__global__ void param_partials(RowNormBackwardArgs args, int64_t rows, Compute<T>* partial) {
  using C = Compute<T>;
  const int64_t params = args.size, total = args.groups * params;
  const int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, chunk = blockIdx.y;
  if (p >= total) return;
  const int64_t group = p / params, place = p % params;
  const int64_t begin = chunk * rows, end = min(begin + rows, args.rows);
  const int64_t first = begin + ((group - begin) % args.groups + args.groups) % args.groups;
  struct Element {
    C grad, x, mean, invstd;
  };
  const auto read = [&](int64_t r) {
    const int64_t at = r * params + place;
    return Element{
        widen(static_cast<const T*>(args.grad_output)[at]), widen(static_cast<const T*>(args.input)[at]),
        args.rms ? C(0) : static_cast<const C*>(args.mean)[r], static_cast<const C*>(args.invstd)[r]};
  };
  C weight_sum = C(0), bias_sum = C(0);
  read_ahead<4>(first, end, args.groups, read, [&](int64_t, const Element& e) {
    weight_sum += e.grad * (e.x - e.mean) * e.invstd;
    bias_sum += e.grad;
  });
  partial[2 * chunk * total + p] = weight_sum;
  partial[(2 * chunk + 1) * total + p] = bias_sum;
}

/// Both gradients of layer and RMS norm, so that their inputs are read once: a block for each chunk of `rows`
/// rows, whose threads keep the sums of kItems parameters each. The partial sums are those of param_partials.
inline constexpr int kGradientItems = 8;
template <class T>
inline constexpr int kGradientThreads = sizeof(T) == 8 ? kLongRow / 2 : kLongRow;
template <class T>
__global__ void __launch_bounds__(kGradientThreads<T>, 1)
    gradients_together(RowNormBackwardArgs args, int64_t rows, Compute<T>* partial) {
  using C = Compute<T>;
  const int size = static_cast<int>(args.size);
  const C* weight = static_cast<const C*>(args.weight);
  C weight_sums[kGradientItems] = {}, bias_sums[kGradientItems] = {};
  const int64_t end = min((blockIdx.x + int64_t{1}) * rows, args.rows);
#pragma unroll 1
  for (int64_t r = blockIdx.x * rows; r < end; ++r) {
    const T* x = static_cast<const T*>(args.input) + r * size;
    const T* g = static_cast<const T*>(args.grad_output) + r * size;
    C h[kGradientItems], deviation[kGradientItems];
    const auto each = [&](const auto& f) {
#pragma unroll
      for (int k = 0; k < kGradientItems; ++k)
        if (const int i = threadIdx.x + k * blockDim.x; i < size) f(k, i);
    };
    each([&](int k, int i) { h[k] = widen(g[i]), deviation[k] = widen(x[i]); });
    const C mean = args.rms ? C(0) : static_cast<const C*>(args.mean)[r];
    const C invstd = static_cast<const C*>(args.invstd)[r];
    Sums<C> sums{C(0), C(0)};
    each([&](int k, int i) {
      deviation[k] -= mean;
      weight_sums[k] += h[k] * deviation[k] * invstd;
      bias_sums[k] += h[k];
      if (weight) h[k] *= weight[i];
      sums.first += h[k];
      sums.second += h[k] * deviation[k];
    });
    sums = block_reduce(sums, PlusSums());
    const Sums<C> terms = terms_of(args, sums.first, sums.second * invstd, invstd);
    T* out = static_cast<T*>(args.grad_input) + r * size;
    each(
        [&](int k, int i) { out[i] = narrow<T>(h[k] * invstd - terms.first - deviation[k] * terms.second); });
  }
#pragma unroll
  for (int k = 0; k < kGradientItems; ++k) {
    const int i = threadIdx.x + k * blockDim.x;
    if (i >= size) continue;
    partial[(2 * int64_t{blockIdx.x}) * size + i] = weight_sums[k];
    partial[(2 * int64_t{blockIdx.x} + 1) * size + i] = bias_sums[k];
  }
}

/// The plane of a channel: `inner` elements that share a row and a parameter. A warp has it, or a block.
template <class T, bool whole_block>
struct Plane {
  using C = Compute<T>;
  struct Element {
    C grad, x;
  };
  int64_t number, row, image, param, total;  ///< total: parameters of an image
  int lane, lanes;
  C mean, invstd;

  __device__ __forceinline__ explicit Plane(const RowNormBackwardArgs& args)
      : number(whole_block ? int64_t{blockIdx.x} : (int64_t{blockIdx.x} * kBlock + threadIdx.x) / 32),
        row(number / (args.size / args.inner)),
        image(row / args.groups),
        total(args.groups * (args.size / args.inner)),
        lane(static_cast<int>(whole_block ? threadIdx.x : threadIdx.x % 32)),
        lanes(whole_block ? static_cast<int>(blockDim.x) : 32) {
    param = number - image * total;
    if (row >= args.rows) return;
    mean = args.rms ? C(0) : static_cast<const C*>(args.mean)[row];
    invstd = static_cast<const C*>(args.invstd)[row];
  }
  /// Calls use(i, element), i the place in the tensor.
  template <class Use>
  __device__ __forceinline__ void each(const RowNormBackwardArgs& args, const Use& use) const {
    const T* g = static_cast<const T*>(args.grad_output);
    const T* x = static_cast<const T*>(args.input);
    const int64_t begin = number * args.inner;
    read_ahead<4>(
        begin + lane, begin + args.inner, lanes,
        [&](int64_t i) {
          return Element{widen(g[i]), widen(x[i])};
        },
        use);
  }
};

/// Sums of g * xhat and of g over planes: partial[image][0 or 1][parameter].
template <class T, bool whole_block>
__global__ void __launch_bounds__(kLongRow, 1) plane_sums(RowNormBackwardArgs args, Compute<T>* partial) {
  using C = Compute<T>;
  const Plane<T, whole_block> plane(args);
  if (plane.row >= args.rows) return;
  Sums<C> sums{C(0), C(0)};
  plane.each(args, [&](int64_t, const auto& e) {
    sums.first += e.grad * (e.x - plane.mean);
    sums.second += e.grad;
  });
  if constexpr (whole_block)
    sums = block_reduce(sums, PlusSums());
  else
    sums = warp_reduce(sums, PlusSums());
  if (plane.lane != 0) return;
  partial[2 * plane.image * plane.total + plane.param] = sums.first * plane.invstd;
  partial[(2 * plane.image + 1) * plane.total + plane.param] = sums.second;
}

/// What input_gradient() subtracts in a row, {shift, along}, from the sums of its planes; a warp for each
/// row.
template <class C>
__global__ void row_terms(RowNormBackwardArgs args, const C* partial, Sums<C>* terms) {
  const int64_t row = (int64_t{blockIdx.x} * kBlock + threadIdx.x) / 32, image = row / args.groups;
  if (row >= args.rows) return;
  const int64_t params = args.size / args.inner, total = args.groups * params;
  const int64_t first = (row - image * args.groups) * params;
  const C* weight = static_cast<const C*>(args.weight);
  Sums<C> sums{C(0), C(0)};
  for (int64_t p = first + threadIdx.x % 32; p < first + params; p += 32) {
    const C w = weight ? weight[p] : C(1);
    sums.first += w * partial[(2 * image + 1) * total + p];
    sums.second += w * partial[2 * image * total + p];
  }
  sums = warp_reduce(sums, PlusSums());
  if (threadIdx.x % 32 != 0) return;
  terms[row] = terms_of(args, sums.first, sums.second, static_cast<const C*>(args.invstd)[row]);
}

template <class T, bool whole_block>
__global__ void __launch_bounds__(kLongRow, 1)
    plane_gradient(RowNormBackwardArgs args, const Sums<Compute<T>>* terms) {
  using C = Compute<T>;
  const Plane<T, whole_block> plane(args);
  if (plane.row >= args.rows) return;
  const C shift = terms[plane.row].first, along = terms[plane.row].second;
  const C* weight = static_cast<const C*>(args.weight);
  const C scale = weight ? weight[plane.param] * plane.invstd : plane.invstd;
  T* out = static_cast<T*>(args.grad_input);
  plane.each(args, [&](int64_t i, const auto& e) {
    out[i] = narrow<T>(e.grad * scale - shift - (e.x - plane.mean) * along);
  });
}

/// Weights, and beside them in the grid biases; threads along y share a parameter.
template <class C>
__global__ void join_params(const C* partial, int64_t chunks, int64_t total, C* grad_weight, C* grad_bias) {
  C* grad = blockIdx.y == 0 ? grad_weight : grad_bias;
  const int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (grad == nullptr) return;
  const auto read = [&](int64_t chunk) { return partial[(2 * chunk + blockIdx.y) * total + p]; };
  const C sum = sum_of<C>(threadIdx.y, p < total ? chunks : 0, blockDim.y, read);
  const C all = column_reduce(sum, Plus());
  if (p < total && threadIdx.y == 0) grad[p] = all;
}

unsigned threads_for(int64_t size) {
  return size <= 64 ? 32 : size <= 1024 ? 128 : size <= 8192 ? 256 : kLongRow;
}

}  // namespace

void row_norm(const LaunchContext& context, const RowNormArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    const unsigned warps = blocks(ceil_div(args.rows * 32, kBlock));
    if (args.size <= 64) return start(context, warps, kBlock, 0, normalise_short<T, 2>, args);
    if (args.size <= 256) return start(context, warps, kBlock, 0, normalise_short<T, 8>, args);
    if (args.size <= 1024) return start(context, warps, kBlock, 0, normalise_short<T, 32>, args);
    if (const unsigned threads = row_part_threads<T>(args.size, {args.input, args.output});
        threads > 0 && args.groups == 1 && args.inner == 1)
      return start(context, blocks(args.rows), threads, 0, normalise_in_parts<T>, args);
    start(context, blocks(args.rows), threads_for(args.size), 0, normalise_long<T>, args);
  });
}

void row_norm_backward(const LaunchContext& context, const RowNormBackwardArgs& args) {
  const int64_t total = args.groups * (args.size / args.inner);
  const bool params = (args.grad_weight || args.grad_bias) && total > 0;
  visit_floating(args.dtype, [&]<class T>() {
    using C = Compute<T>;
    const auto join = [&](const C* partial, int64_t chunks) {
      unsigned sharing = 1;  // a parameter; few are side by side where its chunks are many
      while (sharing < 32 && sharing * 8 <= chunks) sharing *= 2;
      const dim3 block(kColumnThreads / sharing, sharing);
      start(context, dim3(blocks(ceil_div(total, block.x)), 2), block, 0, join_params<C>, partial, chunks,
            total, static_cast<C*>(args.grad_weight), static_cast<C*>(args.grad_bias));
    };
    if (args.inner > 1 && total > 0) {
      const int64_t images = args.rows / args.groups, planes = images * total;
      const Storage scratch = workspace(context, static_cast<size_t>(2 * (planes + args.rows)) * sizeof(C));
      auto* partial = static_cast<C*>(scratch->data());
      auto* terms = reinterpret_cast<Sums<C>*>(partial + 2 * planes);
      const auto on_planes = [&](auto by_block, auto by_warp, auto* extra) {
        constexpr int64_t kLongPlane = 512;
        if (args.inner > kLongPlane)
          start(context, blocks(planes), threads_for(args.inner), 0, by_block, args, extra);
        else
          start(context, blocks(ceil_div(planes * 32, kBlock)), kBlock, 0, by_warp, args, extra);
      };
      on_planes(plane_sums<T, true>, plane_sums<T, false>, partial);
      if (args.grad_input) {
        start(context, blocks(ceil_div(args.rows * 32, kBlock)), kBlock, 0, row_terms<C>, args,
              static_cast<const C*>(partial), terms);
        on_planes(plane_gradient<T, true>, plane_gradient<T, false>, static_cast<const Sums<C>*>(terms));
      }
      if (params) join(partial, images);
      return;
    }
    constexpr int64_t kLeastSize = 128, kThreads = 131072;  // that are busy at once on a large GPU
    const int64_t threads = ceil_div(args.size, 32 * kGradientItems) * 32;
    const bool together = params && args.grad_input && args.groups == 1 && args.size >= kLeastSize &&
                          threads <= kGradientThreads<T>;
    if (args.grad_input && !together)
      start(context, blocks(args.rows), threads_for(args.size), 0, input_gradient<T>, args);
    if (!params) return;
    const int64_t rows = together ? std::max<int64_t>(8, ceil_div(args.rows, kThreads / threads))
                                  : std::max({kParamRows, args.groups, ceil_div(args.rows, 1024)});
    const int64_t chunks = std::max<int64_t>(1, ceil_div(args.rows, rows));
    const Storage scratch = workspace(context, static_cast<size_t>(2 * chunks * total) * sizeof(C));
    auto* partial = static_cast<C*>(scratch->data());
    if (together)
      start(context, blocks(chunks), static_cast<unsigned>(threads), 0, gradients_together<T>, args, rows,
            partial);
    else
      start(context, dim3(blocks(ceil_div(total, 64)), static_cast<unsigned>(chunks)), 64, 0,
            param_partials<T>, args, rows, partial);
    join(partial, chunks);
  });
}

}  // namespace tern::cuda_backend
