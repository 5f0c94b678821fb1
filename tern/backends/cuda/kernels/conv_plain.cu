// The 2-D convolution without a library: a thread for each element of images, a block for each element of the
// weight's gradient; and bias and relu for what cuDNN has computed.
#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/conv.h"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"

namespace tern::cuda_backend {
namespace {

template <class C>
__device__ __forceinline__ C relu(C x) {
  return x < C(0) ? C(0) : x;
}

template <class T>
__global__ void forward(Conv2dArgs args) {
  using C = Compute<T>;
  const Conv2dShape& s = args.shape;
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= s.batch * s.out_channels * s.out_h * s.out_w) return;
  const int64_t ox = i % s.out_w, oy = i / s.out_w % s.out_h, oc = i / (s.out_w * s.out_h) % s.out_channels;
  const int64_t n = i / (s.out_w * s.out_h * s.out_channels);
  const int64_t in_group = s.in_channels / s.groups, first = oc / (s.out_channels / s.groups) * in_group;
  const T* input = static_cast<const T*>(args.input) + (n * s.in_channels + first) * s.in_h * s.in_w;
  const T* weight = static_cast<const T*>(args.weight) + oc * in_group * s.kernel_h * s.kernel_w;
  C sum = C(0);
  for (int64_t c = 0; c < in_group; ++c)
    for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
      const int64_t y = oy * s.stride_h - s.padding_h + ky * s.dilation_h;
      if (y < 0 || y >= s.in_h) continue;
      for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
        const int64_t x = ox * s.stride_w - s.padding_w + kx * s.dilation_w;
        if (x < 0 || x >= s.in_w) continue;
        sum += widen(input[(c * s.in_h + y) * s.in_w + x]) *
               widen(weight[(c * s.kernel_h + ky) * s.kernel_w + kx]);
      }
    }
  if (args.bias) sum += widen(static_cast<const T*>(args.bias)[oc]);
  static_cast<T*>(args.output)[i] = narrow<T>(args.relu ? relu(sum) : sum);
}

template <class T>
__global__ void input_gradient(Conv2dBackwardArgs args) {
  using C = Compute<T>;
  const Conv2dShape& s = args.shape;
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= s.batch * s.in_channels * s.in_h * s.in_w) return;
  const int64_t x = i % s.in_w, y = i / s.in_w % s.in_h, ic = i / (s.in_w * s.in_h) % s.in_channels;
  const int64_t n = i / (s.in_w * s.in_h * s.in_channels);
  const int64_t in_group = s.in_channels / s.groups, out_group = s.out_channels / s.groups;
  const int64_t group = ic / in_group, c = ic % in_group;
  const T* grad = static_cast<const T*>(args.grad_output);
  const T* weight = static_cast<const T*>(args.weight);
  C sum = C(0);
  for (int64_t oc = group * out_group; oc < (group + 1) * out_group; ++oc)
    for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
      const int64_t top = y + s.padding_h - ky * s.dilation_h;
      if (top < 0 || top % s.stride_h != 0 || top / s.stride_h >= s.out_h) continue;
      for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
        const int64_t left = x + s.padding_w - kx * s.dilation_w;
        if (left < 0 || left % s.stride_w != 0 || left / s.stride_w >= s.out_w) continue;
        sum += widen(grad[((n * s.out_channels + oc) * s.out_h + top / s.stride_h) * s.out_w +
                          left / s.stride_w]) *
               widen(weight[((oc * in_group + c) * s.kernel_h + ky) * s.kernel_w + kx]);
      }
    }
  static_cast<T*>(args.grad_input)[i] = narrow<T>(sum);
}

template <class T>
__global__ void weight_gradient(Conv2dBackwardArgs args) {
  using C = Compute<T>;
  const Conv2dShape& s = args.shape;
  const int64_t i = blockIdx.x, in_group = s.in_channels / s.groups;
  const int64_t kx = i % s.kernel_w, ky = i / s.kernel_w % s.kernel_h,
                c = i / (s.kernel_w * s.kernel_h) % in_group;
  const int64_t oc = i / (s.kernel_w * s.kernel_h * in_group),
                ic = oc / (s.out_channels / s.groups) * in_group + c;
  const T* grad = static_cast<const T*>(args.grad_output);
  const T* input = static_cast<const T*>(args.input);
  C sum = C(0);
  for (int64_t j = threadIdx.x; j < s.batch * s.out_h * s.out_w; j += kBlock) {
    const int64_t ox = j % s.out_w, oy = j / s.out_w % s.out_h, n = j / (s.out_w * s.out_h);
    const int64_t y = oy * s.stride_h - s.padding_h + ky * s.dilation_h;
    const int64_t x = ox * s.stride_w - s.padding_w + kx * s.dilation_w;
    if (y < 0 || y >= s.in_h || x < 0 || x >= s.in_w) continue;
    sum += widen(grad[((n * s.out_channels + oc) * s.out_h + oy) * s.out_w + ox]) *
           widen(input[((n * s.in_channels + ic) * s.in_h + y) * s.in_w + x]);
  }
  sum = block_reduce(sum, Plus());
  if (threadIdx.x == 0) static_cast<T*>(args.grad_weight)[i] = narrow<T>(sum);
}

template <class T>
__global__ void bias_and_relu(T* out, const T* bias, bool with_relu, uint32_t count, Channels channels) {
  const uint32_t first = blockIdx.x * (kBlock * 4) + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const uint32_t i = first + k * kBlock;
    if (i >= count) return;
    Compute<T> x = widen(out[i]);
    if (bias) x += widen(bias[channels.at(i)]);
    out[i] = narrow<T>(with_relu ? relu(x) : x);
  }
}

}  // namespace

void conv_plain(const LaunchContext& context, const Conv2dArgs& args) {
  const Conv2dShape& s = args.shape;
  const int64_t numel = s.batch * s.out_channels * s.out_h * s.out_w;
  visit_floating(args.dtype, [&]<class T>() {
    start(context, blocks(ceil_div(numel, kBlock)), kBlock, 0, forward<T>, args);
  });
}

void conv_input_plain(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  const Conv2dShape& s = args.shape;
  const int64_t numel = s.batch * s.in_channels * s.in_h * s.in_w;
  visit_floating(args.dtype, [&]<class T>() {
    start(context, blocks(ceil_div(numel, kBlock)), kBlock, 0, input_gradient<T>, args);
  });
}

void conv_weight_plain(const LaunchContext& context, const Conv2dBackwardArgs& args) {
  const Conv2dShape& s = args.shape;
  visit_floating(args.dtype, [&]<class T>() {
    start(context, blocks(s.out_channels * (s.in_channels / s.groups) * s.kernel_h * s.kernel_w), kBlock, 0,
          weight_gradient<T>, args);
  });
}

void add_bias(const LaunchContext& context, const Conv2dArgs& args) {
  const Conv2dShape& s = args.shape;
  visit_floating(args.dtype, [&]<class T>() {
    for_planes(s.batch, s.out_channels, s.out_h * s.out_w,
               [&](int64_t begin, uint32_t count, const Channels& channels) {
                 start(context, blocks(ceil_div(count, kBlock * 4)), kBlock, 0, bias_and_relu<T>,
                       static_cast<T*>(args.output) + begin, static_cast<const T*>(args.bias), args.relu,
                       count, channels);
               });
  });
}

}  // namespace tern::cuda_backend
