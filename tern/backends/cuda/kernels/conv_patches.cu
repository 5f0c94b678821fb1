// What the places of a convolution's kernel see of an image, as a matrix (im2col).
#include "tern/backends/cuda/kernels/conv.h"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/offsets.cuh"

namespace tern::cuda_backend {
namespace {

/// Blocks along y have a tap of the kernel each, those along z an image.
template <class T>
__global__ void copy_patches(Conv2dShape s, Divider out_w, const T* images, T* patches) {
  const uint32_t places = static_cast<uint32_t>(s.out_h) * out_w.divisor;
  const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= places) return;
  const auto kernel_w = static_cast<uint32_t>(s.kernel_w),
             plane = static_cast<uint32_t>(s.kernel_h) * kernel_w;
  const uint32_t channel = blockIdx.y / plane, tap = blockIdx.y - channel * plane;
  const int ky = static_cast<int>(tap / kernel_w), kx = static_cast<int>(tap - ky * kernel_w);
  const auto oy = static_cast<int>(out_w.divide(i)), ox = static_cast<int>(i - oy * out_w.divisor);
  const int64_t y = oy * s.stride_h - s.padding_h + ky * s.dilation_h;
  const int64_t x = ox * s.stride_w - s.padding_w + kx * s.dilation_w;
  const bool inside = y >= 0 && y < s.in_h && x >= 0 && x < s.in_w;
  const int64_t image = blockIdx.z * s.in_channels + channel;
  patches[(int64_t{blockIdx.z} * gridDim.y + blockIdx.y) * places + i] =
      inside ? images[(image * s.in_h + y) * s.in_w + x] : T();
}

}  // namespace

void conv_patches(const LaunchContext& context, DType dtype, const Conv2dShape& shape, const void* images,
                  void* patches) {
  const int64_t places = shape.out_h * shape.out_w,
                taps = shape.in_channels * shape.kernel_h * shape.kernel_w;
  const dim3 grid(blocks(ceil_div(places, kBlock)), static_cast<unsigned>(taps),
                  static_cast<unsigned>(shape.batch));
  visit_floating(dtype, [&]<class T>() {
    start(context, grid, kBlock, 0, copy_patches<T>, shape, Divider(shape.out_w),
          static_cast<const T*>(images), static_cast<T*>(patches));
  });
}

}  // namespace tern::cuda_backend
