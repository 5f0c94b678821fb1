// Arguments of the 2-D convolution kernels, shared by every backend.
// Shape rules and gradients are in tern/ops/conv.cpp; the CPU kernels in backends/cpu/kernels/conv*.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

/// Sizes of a 2-D convolution (cross-correlation, as in PyTorch). All tensors are contiguous: images [N, C,
/// H, W], weight [C_out, C_in / groups, KH, KW]. `out_h` and `out_w` must equal (size + 2 * padding -
/// dilation * (kernel - 1) - 1) / stride + 1, see `output_size`.
struct Conv2dShape {
  std::int64_t batch = 0;
  std::int64_t in_channels = 0;
  std::int64_t in_h = 0;
  std::int64_t in_w = 0;
  std::int64_t out_channels = 0;
  std::int64_t out_h = 0;
  std::int64_t out_w = 0;
  std::int64_t kernel_h = 0;
  std::int64_t kernel_w = 0;
  std::int64_t stride_h = 1;
  std::int64_t stride_w = 1;
  std::int64_t padding_h = 0;
  std::int64_t padding_w = 0;
  std::int64_t dilation_h = 1;
  std::int64_t dilation_w = 1;
  std::int64_t groups = 1;

  /// Output size along one dimension; 0 or less if the kernel does not fit.
  static constexpr std::int64_t output_size(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                                            std::int64_t padding, std::int64_t dilation) {
    const std::int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1;
    return span < 0 ? 0 : span / stride + 1;
  }

  /// Floating-point operations of the forward pass; each of the two backward passes has as many.
  double flops() const {
    const std::int64_t in_per_group = groups > 0 ? in_channels / groups : 0;
    return 2.0 * static_cast<double>(batch) * static_cast<double>(out_channels) * static_cast<double>(out_h) *
           static_cast<double>(out_w) * static_cast<double>(in_per_group) * static_cast<double>(kernel_h) *
           static_cast<double>(kernel_w);
  }
};

/// output = convolution(input, weight) + bias, and relu of that if asked for. Floating dtypes only.
struct Conv2dArgs {
  DType dtype{};
  bool relu = false;
  Conv2dShape shape;
  const void* input = nullptr;   ///< [N, C_in, H, W]
  const void* weight = nullptr;  ///< [C_out, C_in / groups, KH, KW]
  const void* bias = nullptr;    ///< [C_out], or null
  void* output = nullptr;        ///< [N, C_out, OH, OW]

  double flops() const { return shape.flops(); }
};

/// The gradients that are wanted (not null) with respect to input, weight and bias; that of the input is also
/// the forward pass of a transposed convolution. Sums over images run in an order that depends on the shape
/// only, so the result does not depend on threads.
struct Conv2dBackwardArgs {
  DType dtype{};
  Conv2dShape shape;
  const void* grad_output = nullptr;  ///< [N, C_out, OH, OW]
  /// [N, C_out, OH, OW], what relu gave: where it is 0 or less, grad_output counts as 0; or null
  const void* relu_output = nullptr;
  const void* input = nullptr;   ///< [N, C_in, H, W], read for grad_weight
  const void* weight = nullptr;  ///< [C_out, C_in / groups, KH, KW], read for grad_input
  void* grad_input = nullptr;    ///< [N, C_in, H, W], overwritten; or null
  void* grad_weight = nullptr;   ///< [C_out, C_in / groups, KH, KW], overwritten; or null
  void* grad_bias = nullptr;     ///< [C_out], overwritten; or null

  double flops() const {
    return shape.flops() * ((grad_input != nullptr ? 1 : 0) + (grad_weight != nullptr ? 1 : 0));
  }
};

}  // namespace tern

/// X(kernel, argument struct) for kernels/list.h.
#define TERN_CONV_KERNELS(X) \
  X(conv2d, Conv2dArgs)      \
  X(conv2d_backward, Conv2dBackwardArgs)
