// Arguments of the 2-D pooling kernels, shared by every backend.
// Shape rules and gradients are in tern/ops/pool.cpp; the CPU kernels in backends/cpu/kernels/pool.cpp.
#pragma once

#include <cstdint>

#include "tern/core/dtype.h"

namespace tern {

/// Sizes of a 2-D pooling. All tensors are contiguous [planes, H, W], where planes = N * C.
struct Pool2dShape {
  std::int64_t planes = 0;
  std::int64_t in_h = 0;
  std::int64_t in_w = 0;
  std::int64_t out_h = 0;
  std::int64_t out_w = 0;
  std::int64_t kernel_h = 1;
  std::int64_t kernel_w = 1;
  std::int64_t stride_h = 1;
  std::int64_t stride_w = 1;
  std::int64_t padding_h = 0;
  std::int64_t padding_w = 0;
  std::int64_t dilation_h = 1;
  std::int64_t dilation_w = 1;

  /// Windows of 2 by 2 side by side that use every input, but for an odd last row or column.
  constexpr bool is_halving() const {
    return kernel_h == 2 && kernel_w == 2 && stride_h == 2 && stride_w == 2 && padding_h == 0 &&
           padding_w == 0 && dilation_h == 1 && dilation_w == 1 && out_h == in_h / 2 && out_w == in_w / 2;
  }
  /// Output size along one dimension by PyTorch's rule: with `ceil_mode` the last window may start inside the
  /// input or the padding before it, never in the padding after it. 0 if no window fits.
  static constexpr std::int64_t output_size(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                                            std::int64_t padding, std::int64_t dilation, bool ceil_mode) {
    const std::int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
    if (span < 0) return 0;
    std::int64_t out = span / stride + 1;
    if (ceil_mode && (out - 1) * stride >= size + padding) --out;
    return out;
  }
};

/// Maximum of each window; NaN wins. Every dtype except bool.
struct MaxPool2dArgs {
  DType dtype{};
  Pool2dShape shape;
  const void* input = nullptr;      ///< [planes, H, W]
  void* output = nullptr;           ///< [planes, OH, OW]
  std::int64_t* indices = nullptr;  ///< [planes, OH, OW], h * W + w of the maximum in its plane; or null
};

/// grad_input = sum of grad_output over the windows whose maximum the element was. Also for adaptive max
/// pooling.
struct MaxPool2dBackwardArgs {
  DType dtype{};
  Pool2dShape shape;                  ///< of the forward pass; kernel sizes are only a hint to a faster path
  const void* grad_output = nullptr;  ///< [planes, OH, OW]
  const std::int64_t* indices = nullptr;  ///< [planes, OH, OW]; each must lie in [0, H * W)
  void* grad_input = nullptr;             ///< [planes, H, W], overwritten
};

/// Mean of each window. Floating dtypes and int64. Dilation must be 1.
struct AvgPool2dArgs {
  DType dtype{};
  bool count_include_pad = true;
  std::int64_t divisor_override = 0;  ///< 0: the number of elements of the window
  Pool2dShape shape;
  const void* input = nullptr;  ///< [planes, H, W]
  void* output = nullptr;       ///< [planes, OH, OW]
};

struct AvgPool2dBackwardArgs {
  DType dtype{};
  bool count_include_pad = true;
  std::int64_t divisor_override = 0;
  Pool2dShape shape;
  const void* grad_output = nullptr;  ///< [planes, OH, OW]
  void* grad_input = nullptr;         ///< [planes, H, W], overwritten
};

/// Adaptive pooling: output i covers the inputs from floor(i * size / out) to ceil((i + 1) * size / out).
/// Only `planes` and the in and out sizes of the shape are used.
struct AdaptiveAvgPool2dArgs {
  DType dtype{};
  Pool2dShape shape;
  const void* input = nullptr;  ///< [planes, H, W]
  void* output = nullptr;       ///< [planes, OH, OW]
};

struct AdaptiveAvgPool2dBackwardArgs {
  DType dtype{};
  Pool2dShape shape;
  const void* grad_output = nullptr;  ///< [planes, OH, OW]
  void* grad_input = nullptr;         ///< [planes, H, W], overwritten
};

/// The gradient is MaxPool2dBackwardArgs.
struct AdaptiveMaxPool2dArgs {
  DType dtype{};
  Pool2dShape shape;
  const void* input = nullptr;      ///< [planes, H, W]
  void* output = nullptr;           ///< [planes, OH, OW]
  std::int64_t* indices = nullptr;  ///< [planes, OH, OW]; or null
};

}  // namespace tern

/// X(kernel, argument struct) for kernels/list.h.
#define TERN_POOL_KERNELS(X)                                     \
  X(max_pool2d, MaxPool2dArgs)                                   \
  X(max_pool2d_backward, MaxPool2dBackwardArgs)                  \
  X(avg_pool2d, AvgPool2dArgs)                                   \
  X(avg_pool2d_backward, AvgPool2dBackwardArgs)                  \
  X(adaptive_avg_pool2d, AdaptiveAvgPool2dArgs)                  \
  X(adaptive_avg_pool2d_backward, AdaptiveAvgPool2dBackwardArgs) \
  X(adaptive_max_pool2d, AdaptiveMaxPool2dArgs)
