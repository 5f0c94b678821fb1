// Convolutions whose channels have an image each to themselves (depthwise), by square kernels of 3, 5 or 7:
// a thread for each place, with the kernel in registers, so that they take little more time than moving the
// images does. Libraries' tiles of many channels have one that counts.
#include <algorithm>

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/conv.h"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/offsets.cuh"

namespace tern::cuda_backend {
namespace {

constexpr int kItems = 4;  // places of a thread

__device__ __forceinline__ int divisor(const Divider& by) { return static_cast<int>(by.divisor); }

/// Sizes for kernels; a plane is an image of one channel.
struct Depthwise {
  int in_h, out_h, padding_h, padding_w, dilation_h, dilation_w;
  int out_channels, multiplier;  ///< multiplier: channels of the output for each of the input
  Divider in_w, out_w, stride_h, stride_w;
  Divider blocks;  ///< of a plane

  Depthwise(const Conv2dShape& s, int64_t blocks_)
      : in_h(static_cast<int>(s.in_h)),
        out_h(static_cast<int>(s.out_h)),
        padding_h(static_cast<int>(s.padding_h)),
        padding_w(static_cast<int>(s.padding_w)),
        dilation_h(static_cast<int>(s.dilation_h)),
        dilation_w(static_cast<int>(s.dilation_w)),
        out_channels(static_cast<int>(s.out_channels)),
        multiplier(static_cast<int>(s.out_channels / s.in_channels)),
        in_w(s.in_w),
        out_w(s.out_w),
        stride_h(s.stride_h),
        stride_w(s.stride_w),
        blocks(blocks_) {}

  __device__ __forceinline__ int in_places() const { return in_h * divisor(in_w); }
  __device__ __forceinline__ int out_places() const { return out_h * divisor(out_w); }
};

/// The plane of a block, and the first place of a thread in it; its others come blockDim.x apart.
struct PlacesOfThread {
  int plane, first;

  __device__ __forceinline__ explicit PlacesOfThread(const Depthwise& d)
      : plane(static_cast<int>(d.blocks.divide(blockIdx.x))),
        first(static_cast<int>((blockIdx.x - plane * d.blocks.divisor) * kItems * blockDim.x + threadIdx.x)) {
  }
  __device__ __forceinline__ int at(int i) const { return first + i * static_cast<int>(blockDim.x); }
};

template <class T, int K>
__device__ __forceinline__ void read_kernel(Compute<T> (&to)[K * K], const T* weight, int channel) {
#pragma unroll
  for (int k = 0; k < K * K; ++k) to[k] = widen(weight[channel * (K * K) + k]);
}

/// Calls use(k, x) for what a place of the output sees of a plane, x at place k of the kernel.
template <int K, class T, class Use>
__device__ __forceinline__ void each_seen(const Depthwise& d, const T* plane, int place, const Use& use) {
  const int oy = static_cast<int>(d.out_w.divide(place)), ox = place - oy * divisor(d.out_w);
  const int top = oy * divisor(d.stride_h) - d.padding_h, left = ox * divisor(d.stride_w) - d.padding_w;
  const int in_w = divisor(d.in_w);
#pragma unroll
  for (int ky = 0; ky < K; ++ky) {
    const int y = top + ky * d.dilation_h;
    const bool row = y >= 0 && y < d.in_h;
#pragma unroll
    for (int kx = 0; kx < K; ++kx) {
      const int x = left + kx * d.dilation_w;
      use(ky * K + kx, row && x >= 0 && x < in_w ? widen(plane[y * in_w + x]) : Compute<T>(0));
    }
  }
}

/// With bias and relu.
template <class T, int K>
__global__ void __launch_bounds__(kBlock)
    forward(Depthwise d, const T* input, const T* weight, const T* bias, bool relu, T* output) {
  using C = Compute<T>;
  const PlacesOfThread places(d);
  const int plane = places.plane;
  const int image = plane / d.out_channels, channel = plane - image * d.out_channels;
  const int in_channels = d.out_channels / d.multiplier;
  const T* from = input + (int64_t{image} * in_channels + channel / d.multiplier) * d.in_places();
  T* to = output + int64_t{plane} * d.out_places();
  C kernel[K * K];
  read_kernel<T, K>(kernel, weight, channel);
  const C start = bias ? widen(bias[channel]) : C(0);
#pragma unroll 1
  for (int i = 0; i < kItems; ++i) {
    const int place = places.at(i);
    if (place >= d.out_places()) return;
    C sum = C(0);
    each_seen<K>(d, from, place, [&](int k, C x) { sum += x * kernel[k]; });
    sum += start;
    to[place] = narrow<T>(relu && sum < C(0) ? C(0) : sum);
  }
}

/// Rows or columns of the output that see `place` of the input by each place of the kernel, or -1.
template <int K>
__device__ __forceinline__ void seen_from(int place, int padding, int dilation, const Divider& step, int size,
                                          int (&from)[K]) {
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const int at = place + padding - k * dilation;
    const int quotient = at < 0 ? -1 : static_cast<int>(step.divide(static_cast<uint32_t>(at)));
    from[k] = at >= 0 && quotient * divisor(step) == at && quotient < size ? quotient : -1;
  }
}

template <class T, int K>
__global__ void __launch_bounds__(kBlock)
    input_gradient(Depthwise d, const T* grad_output, const T* weight, T* grad_input) {
  using C = Compute<T>;
  const PlacesOfThread places(d);
  const int plane = places.plane;
  const int in_channels = d.out_channels / d.multiplier, channel = plane % in_channels;
  const T* grad = grad_output + int64_t{plane} * d.multiplier * d.out_places();
  T* to = grad_input + int64_t{plane} * d.in_places();
  C sums[kItems] = {};
#pragma unroll 1
  for (int m = 0; m < d.multiplier; ++m, grad += d.out_places()) {
    C kernel[K * K];
    read_kernel<T, K>(kernel, weight, channel * d.multiplier + m);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int place = places.at(i);
      if (place >= d.in_places()) break;
      const int y = static_cast<int>(d.in_w.divide(place)), x = place - y * divisor(d.in_w);
      int rows[K], columns[K];
      seen_from(y, d.padding_h, d.dilation_h, d.stride_h, d.out_h, rows);
      seen_from(x, d.padding_w, d.dilation_w, d.stride_w, divisor(d.out_w), columns);
#pragma unroll
      for (int ky = 0; ky < K; ++ky) {
        if (rows[ky] < 0) continue;
#pragma unroll
        for (int kx = 0; kx < K; ++kx)
          if (columns[kx] >= 0)
            sums[i] += widen(grad[rows[ky] * divisor(d.out_w) + columns[kx]]) * kernel[ky * K + kx];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i)
    if (const int place = places.at(i); place < d.in_places()) to[place] = narrow<T>(sums[i]);
}

/// A block sums over `piece` of the places of all images, for one channel: partial[piece][channel][place of
/// the kernel].
template <class T, int K>
__global__ void __launch_bounds__(kBlock)
    weight_gradient(Depthwise d, Divider places, int total, int piece, const T* input, const T* grad_output,
                    Compute<T>* partial) {
  using C = Compute<T>;
  const auto channel = static_cast<int>(blockIdx.x), in_channels = d.out_channels / d.multiplier;
  const int begin = static_cast<int>(blockIdx.y) * piece, end = min(begin + piece, total);
  C sums[K * K] = {};
#pragma unroll 1
  for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += kBlock) {
    const auto image = static_cast<int>(places.divide(i));
    const int place = i - image * d.out_places();
    const C g = widen(grad_output[(int64_t{image} * d.out_channels + channel) * d.out_places() + place]);
    const T* from = input + (int64_t{image} * in_channels + channel / d.multiplier) * d.in_places();
    each_seen<K>(d, from, place, [&](int k, C x) { sums[k] += x * g; });
  }
  warp_reduce(sums, Plus());
  __shared__ C of_warps[kBlock / 32][K * K];
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (int k = 0; k < K * K; ++k) of_warps[threadIdx.x / 32][k] = sums[k];
  }
  __syncthreads();
  if (threadIdx.x >= K * K) return;
  C sum = C(0);
#pragma unroll
  for (int w = 0; w < kBlock / 32; ++w) sum += of_warps[w][threadIdx.x];
  partial[(int64_t{blockIdx.y} * d.out_channels + channel) * (K * K) + threadIdx.x] = sum;
}

template <class T>
__global__ void join_pieces(const Compute<T>* partial, int pieces, int numel, T* grad_weight) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= numel) return;
  grad_weight[i] =
      narrow<T>(sum_of<Compute<T>>(0, pieces, 1, [&](int64_t piece) { return partial[piece * numel + i]; }));
}

bool is_depthwise(const Conv2dShape& s, DType dtype) {
  const int64_t k = s.kernel_h;
  const auto few = [](int64_t batch, int64_t channels, int64_t h, int64_t w) {
    return batch * channels <= kMostElements / std::max<int64_t>(1, h * w / kBlock + 1) &&
           h * w <= kMostElements / 8;
  };
  return s.groups > 1 && s.groups == s.in_channels && k == s.kernel_w && (k == 3 || k == 5 || k == 7) &&
         itemsize(dtype) <= 4 && few(s.batch, s.out_channels, s.out_h, s.out_w) &&
         few(s.batch, s.in_channels, s.in_h, s.in_w) && s.out_channels <= kMostElements / 64 &&
         s.batch * s.out_h * s.out_w <= kMostElements / 2;
}

/// Calls f.template operator()<type, kernel size>().
template <class F>
void visit_kernels(DType dtype, int64_t kernel, const F& f) {
  visit_floating(dtype, [&]<class T>() {
    if constexpr (sizeof(T) <= 4) {
      if (kernel == 3) return f.template operator()<T, 3>();
      if (kernel == 5) return f.template operator()<T, 5>();
      f.template operator()<T, 7>();
    }
  });
}

/// Threads of a block for planes of so many places, and blocks for one.
unsigned threads_for(int64_t places) {
  return static_cast<unsigned>(std::min<int64_t>(kBlock, ceil_div(ceil_div(places, kItems), 32) * 32));
}
int64_t blocks_for(int64_t places) { return ceil_div(places, int64_t{threads_for(places)} * kItems); }

}  // namespace

bool conv_depthwise(const LaunchContext& context, const Conv2dArgs& args) {
  const Conv2dShape& s = args.shape;
  if (!is_depthwise(s, args.dtype)) return false;
  const int64_t places = s.out_h * s.out_w, parts = blocks_for(places);
  visit_kernels(args.dtype, s.kernel_h, [&]<class T, int K>() {
    start(context, blocks(s.batch * s.out_channels * parts), threads_for(places), 0, forward<T, K>,
          Depthwise(s, parts), static_cast<const T*>(args.input), static_cast<const T*>(args.weight),
          static_cast<const T*>(args.bias), args.relu, static_cast<T*>(args.output));
  });
  return true;
}

bool conv_input_depthwise(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  const Conv2dShape& s = args.shape;
  if (!is_depthwise(s, args.dtype)) return false;
  const int64_t places = s.in_h * s.in_w, parts = blocks_for(places);
  visit_kernels(args.dtype, s.kernel_h, [&]<class T, int K>() {
    start(context, blocks(s.batch * s.in_channels * parts), threads_for(places), 0, input_gradient<T, K>,
          Depthwise(s, parts), static_cast<const T*>(args.grad_output), static_cast<const T*>(args.weight),
          static_cast<T*>(args.grad_input));
  });
  return true;
}

bool conv_weight_depthwise(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  const Conv2dShape& s = args.shape;
  if (!is_depthwise(s, args.dtype)) return false;
  constexpr int64_t kLeastPiece = 16 * kBlock, kMostPieces = 64;
  const int64_t places = s.out_h * s.out_w, total = s.batch * places;
  const int64_t piece = std::max(kLeastPiece, ceil_div(total, kMostPieces)), pieces = ceil_div(total, piece);
  const int64_t numel = s.out_channels * s.kernel_h * s.kernel_w;
  const Storage partial = workspace(context, static_cast<size_t>(pieces * numel) * sizeof(float));
  visit_kernels(args.dtype, s.kernel_h, [&]<class T, int K>() {
    auto* sums = static_cast<Compute<T>*>(partial->data());
    start(context, dim3(blocks(s.out_channels), static_cast<unsigned>(pieces)), kBlock, 0,
          weight_gradient<T, K>, Depthwise(s, 1), Divider(places), static_cast<int>(total),
          static_cast<int>(piece), static_cast<const T*>(args.input), static_cast<const T*>(args.grad_output),
          sums);
    start(context, blocks(ceil_div(numel, kBlock)), kBlock, 0, join_pieces<T>, sums, static_cast<int>(pieces),
          static_cast<int>(numel), static_cast<T*>(args.grad_weight));
  });
  return true;
}

}  // namespace tern::cuda_backend
