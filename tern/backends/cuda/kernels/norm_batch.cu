// Batch norm: statistics of each channel by one block (in chunks of the batch where a channel is large and
// channels are few), then the elements. Sums of channels go on in double, as on the CPU.
#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/pointwise.cuh"
#include "tern/kernels/norm.h"

namespace tern::cuda_backend {
namespace {

/// Count, mean and sum of squared deviations; merged by Chan, Golub and LeVeque's formula (1979).
struct Moments {
  double count, mean, squares;
};
struct Merge {
  __device__ Moments operator()(const Moments& a, const Moments& b) const {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    const double count = a.count + b.count, delta = b.mean - a.mean, share = b.count / count;
    return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
  }
};
struct GradSums {
  double grad, grad_x;
};
struct PlusGradSums {
  __device__ GradSums operator()(const GradSums& a, const GradSums& b) const {
    return {a.grad + b.grad, a.grad_x + b.grad_x};
  }
};

/// Piece blockIdx.y of channel blockIdx.x. A thread keeps sums of deviations from the channel's first
/// element, which are as good as running means where the data are not far from it.
template <class T>
__global__ void channel_moments(BatchNormArgs args, InChannel place, int64_t piece, Moments* partial) {
  using C = Compute<T>;
  const int64_t c = blockIdx.x, count = args.batch * args.inner;
  const int64_t begin = blockIdx.y * piece, end = min(begin + piece, count);
  const T* x = static_cast<const T*>(args.input);
  Moments m{0, 0, 0};
  const C shift = begin < end ? widen(x[place.at(c, begin)]) : C(0);
  C sum = C(0), squares = C(0);
  int64_t taken = 0;
  const auto flush = [&] {
    if (taken == 0) return;
    const double n = static_cast<double>(taken), s = static_cast<double>(sum);
    double rest = static_cast<double>(squares) - s * s / n;
    if (rest < 0) rest = 0;
    m = Merge()(m, Moments{n, static_cast<double>(shift) + s / n, rest});
    sum = squares = C(0);
    taken = 0;
  };
  const auto read = [&](int64_t i) { return widen(x[place.at(c, i)]); };
  read_ahead<4>(begin + threadIdx.x, end, blockDim.x, read, [&](int64_t, C value) {
    const C d = value - shift;
    sum += d;
    squares += d * d;
    if (++taken == 64) flush();
  });
  flush();
  m = block_reduce(m, Merge());
  if (threadIdx.x == 0) partial[c * gridDim.y + blockIdx.y] = m;
}

/// A thread for each channel: the statistics that are subtracted and multiplied, and the running values.
template <class C>
__global__ void finish_statistics(BatchNormArgs args, const Moments* partial, int pieces) {
  const int64_t c = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (c >= args.channels) return;
  C* running_mean = static_cast<C*>(args.running_mean);
  C* running_var = static_cast<C*>(args.running_var);
  double mean, variance;
  if (args.training) {
    Moments m{0, 0, 0};
    for (int i = 0; i < pieces; ++i) m = Merge()(m, partial[c * pieces + i]);
    mean = m.mean;
    variance = m.squares / m.count;
    const double keep = 1 - args.momentum;
    if (running_mean)
      running_mean[c] = static_cast<C>(keep * static_cast<double>(running_mean[c]) + args.momentum * mean);
    if (running_var)
      running_var[c] = static_cast<C>(keep * static_cast<double>(running_var[c]) +
                                      args.momentum * variance * (m.count / (m.count - 1)));
  } else {
    mean = static_cast<double>(running_mean[c]);
    variance = static_cast<double>(running_var[c]);
  }
  static_cast<C*>(args.mean)[c] = static_cast<C>(mean);
  static_cast<C*>(args.invstd)[c] = static_cast<C>(1 / ::sqrt(variance + args.eps));
}

template <class C>
__device__ __forceinline__ C parameter(const void* params, int64_t c, C otherwise) {
  return params ? static_cast<const C*>(params)[c] : otherwise;
}

template <class T>
__global__ void normalise(BatchNormArgs args, int64_t begin, uint32_t count, Channels channels) {
  using C = Compute<T>;
  const T* in = static_cast<const T*>(args.input) + begin;
  T* out = static_cast<T*>(args.output) + begin;
  struct Element {
    C x, mean, invstd, weight, bias;
  };
  const auto read = [&](uint32_t i) {
    const uint32_t c = channels.at(i);
    return Element{widen(in[i]), static_cast<const C*>(args.mean)[c], static_cast<const C*>(args.invstd)[c],
                   parameter(args.weight, c, C(1)), parameter(args.bias, c, C(0))};
  };
  each_of_thread<kPerThread>(count, read, [&](uint32_t i, const Element& e) {
    const C scale = e.invstd * e.weight;
    out[i] = narrow<T>((e.x - e.mean) * scale + e.bias);
  });
}

/// Sums of g and of g * (x - mean), a piece of a channel for each block.
template <class T>
__global__ void channel_gradients(BatchNormBackwardArgs args, InChannel place, int64_t piece,
                                  GradSums* partial) {
  using C = Compute<T>;
  const int64_t c = blockIdx.x, count = args.batch * args.inner;
  const int64_t begin = blockIdx.y * piece, end = min(begin + piece, count);
  const T* x = static_cast<const T*>(args.input);
  const T* g = static_cast<const T*>(args.grad_output);
  const C mean = static_cast<const C*>(args.mean)[c];
  GradSums sums{0, 0};
  C grad = C(0), grad_x = C(0);
  int taken = 0;
  struct Element {
    C grad, x;
  };
  const auto read = [&](int64_t i) {
    const int64_t at = place.at(c, i);
    return Element{widen(g[at]), widen(x[at])};
  };
  read_ahead<4>(begin + threadIdx.x, end, blockDim.x, read, [&](int64_t, const Element& e) {
    grad += e.grad;
    grad_x += e.grad * (e.x - mean);
    if (++taken < 64) return;
    sums = PlusGradSums()(sums, {static_cast<double>(grad), static_cast<double>(grad_x)});
    grad = grad_x = C(0);
    taken = 0;
  });
  sums = PlusGradSums()(sums, {static_cast<double>(grad), static_cast<double>(grad_x)});
  sums = block_reduce(sums, PlusGradSums());
  if (threadIdx.x == 0) partial[c * gridDim.y + blockIdx.y] = sums;
}

/// grad_x = scale * g - shift - (x - mean) * along.
template <class C>
struct Slopes {
  C mean, scale, shift, along;
};

template <class C>
__global__ void finish_gradients(BatchNormBackwardArgs args, const GradSums* partial, int pieces,
                                 Slopes<C>* slopes) {
  const int64_t c = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (c >= args.channels) return;
  GradSums sums{0, 0};
  for (int i = 0; i < pieces; ++i) sums = PlusGradSums()(sums, partial[c * pieces + i]);
  const C invstd_c = static_cast<const C*>(args.invstd)[c];
  const double invstd = static_cast<double>(invstd_c);
  if (args.grad_weight) static_cast<C*>(args.grad_weight)[c] = static_cast<C>(sums.grad_x * invstd);
  if (args.grad_bias) static_cast<C*>(args.grad_bias)[c] = static_cast<C>(sums.grad);
  const double count = static_cast<double>(args.batch * args.inner);
  const C scale = invstd_c * parameter(args.weight, c, C(1));
  Slopes<C> s{static_cast<const C*>(args.mean)[c], scale, C(0), C(0)};
  if (args.training) {
    s.shift = static_cast<C>(static_cast<double>(scale) * sums.grad / count);
    s.along = static_cast<C>(static_cast<double>(scale) * invstd * invstd * sums.grad_x / count);
  }
  slopes[c] = s;
}

template <class T>
__global__ void input_gradient_of_batch(BatchNormBackwardArgs args, const Slopes<Compute<T>>* slopes,
                                        int64_t begin, uint32_t count, Channels channels) {
  using C = Compute<T>;
  const T* in = static_cast<const T*>(args.input) + begin;
  const T* grad = static_cast<const T*>(args.grad_output) + begin;
  T* out = static_cast<T*>(args.grad_input) + begin;
  struct Element {
    C grad, x;
    Slopes<C> slopes;
  };
  const auto read = [&](uint32_t i) { return Element{widen(grad[i]), widen(in[i]), slopes[channels.at(i)]}; };
  each_of_thread<kPerThread>(count, read, [&](uint32_t i, const Element& e) {
    const Slopes<C>& s = e.slopes;
    out[i] = narrow<T>(e.grad * s.scale - s.shift - (e.x - s.mean) * s.along);
  });
}

/// How a channel's elements are cut: by the sizes alone.
struct Cut {
  int64_t piece, pieces;
  Cut(int64_t channels, int64_t count) {
    constexpr int64_t kWantedBlocks = 1024, kLeastPiece = 8192;
    const int64_t wanted =
        std::clamp<int64_t>(kWantedBlocks / std::max<int64_t>(channels, 1), 1, count / kLeastPiece + 1);
    piece = std::max<int64_t>(1, ceil_div(count, wanted));
    pieces = std::max<int64_t>(1, ceil_div(count, piece));
  }
  dim3 grid(int64_t channels) const { return dim3(blocks(channels), blocks(pieces)); }
};

}  // namespace

void batch_norm(const LaunchContext& context, const BatchNormArgs& args) {
  check_planes(args.channels, args.inner);
  visit_floating(args.dtype, [&]<class T>() {
    using C = Compute<T>;
    const Cut cut(args.channels, args.batch * args.inner);
    Storage scratch;
    Moments* partial = nullptr;
    if (args.training) {
      scratch = workspace(
          context, static_cast<size_t>(std::max<int64_t>(args.channels, 1) * cut.pieces) * sizeof(Moments));
      partial = static_cast<Moments*>(scratch->data());
      start(context, cut.grid(args.channels), kBlock, 0, channel_moments<T>, args,
            InChannel(args.batch, args.channels, args.inner), cut.piece, partial);
    }
    start(context, blocks(ceil_div(args.channels, kBlock)), kBlock, 0, finish_statistics<C>, args,
          static_cast<const Moments*>(partial), static_cast<int>(cut.pieces));
    for_planes(args.batch, args.channels, args.inner,
               [&](int64_t begin, uint32_t count, const Channels& channels) {
                 start(context, blocks(ceil_div(count, kBlock * kPerThread)), kBlock, 0, normalise<T>, args,
                       begin, count, channels);
               });
  });
}

void batch_norm_backward(const LaunchContext& context, const BatchNormBackwardArgs& args) {
  const bool sums_wanted = args.training || args.grad_weight || args.grad_bias;
  visit_floating(args.dtype, [&]<class T>() {
    using C = Compute<T>;
    const Cut cut(args.channels, args.batch * args.inner);
    const auto most = static_cast<size_t>(std::max<int64_t>(args.channels, 1));
    const Storage sums = workspace(context, most * static_cast<size_t>(cut.pieces) * sizeof(GradSums));
    const Storage finished = workspace(context, most * sizeof(Slopes<C>));
    auto* partial = static_cast<GradSums*>(sums->data());
    auto* slopes = static_cast<Slopes<C>*>(finished->data());
    if (sums_wanted)
      start(context, cut.grid(args.channels), kBlock, 0, channel_gradients<T>, args,
            InChannel(args.batch, args.channels, args.inner), cut.piece, partial);
    start(context, blocks(ceil_div(args.channels, kBlock)), kBlock, 0, finish_gradients<C>, args,
          static_cast<const GradSums*>(partial), sums_wanted ? static_cast<int>(cut.pieces) : 0, slopes);
    if (args.grad_input)
      for_planes(args.batch, args.channels, args.inner,
                 [&](int64_t begin, uint32_t count, const Channels& channels) {
                   start(context, blocks(ceil_div(count, kBlock * kPerThread)), kBlock, 0,
                         input_gradient_of_batch<T>, args, static_cast<const Slopes<C>*>(slopes), begin,
                         count, channels);
                 });
  });
}

}  // namespace tern::cuda_backend
