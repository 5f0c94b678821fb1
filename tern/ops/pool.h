// Pooling in one and two dimensions. Sizes are described at Pool2dShape in
// kernels/pool.h.
#pragma once

#include <optional>
#include <utility>

#include "tern/core/tensor.h"
#include "tern/ops/size2.h"

namespace tern {

// Images are [N, C, H, W] or [C, H, W], sequences [N, C, L] or [C, L]. Throw
// ShapeError in PyTorch's words when no window fits, ValueError for an
// impossible option.

struct MaxPool2dOptions {
  Size2 kernel_size = 0;             ///< required
  std::optional<Size2> stride = {};  ///< kernel_size when left out
  Size2 padding = 0;                 ///< at most half the kernel
  Size2 dilation = 1;
  bool ceil_mode = false;  ///< windows may reach over the end
};

/// The maximum of each window; NaN wins. Every dtype but bool.
Tensor max_pool2d(const Tensor& x, const MaxPool2dOptions& options);
inline Tensor max_pool2d(const Tensor& x, int64_t kernel_size, std::optional<Size2> stride = {}) {
  return max_pool2d(x, {.kernel_size = kernel_size, .stride = stride});
}
/// The same with the int64 positions h * W + w of the maxima in their images.
std::pair<Tensor, Tensor> max_pool2d_with_indices(const Tensor& x, const MaxPool2dOptions& options);

struct AvgPool2dOptions {
  Size2 kernel_size = 0;             ///< required
  std::optional<Size2> stride = {};  ///< kernel_size when left out
  Size2 padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = {};
};

/// The mean of each window. Floats and int64.
Tensor avg_pool2d(const Tensor& x, const AvgPool2dOptions& options);
inline Tensor avg_pool2d(const Tensor& x, int64_t kernel_size, std::optional<Size2> stride = {}) {
  return avg_pool2d(x, {.kernel_size = kernel_size, .stride = stride});
}

/// The mean over windows that divide the image into output_size parts; a size
/// of -1 keeps the image's.
Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output_size);
/// The maximum over such windows.
Tensor adaptive_max_pool2d(const Tensor& x, Size2 output_size);
std::pair<Tensor, Tensor> adaptive_max_pool2d_with_indices(const Tensor& x, Size2 output_size);

struct MaxPool1dOptions {
  int64_t kernel_size = 0;
  std::optional<int64_t> stride = {};
  int64_t padding = 0;
  int64_t dilation = 1;
  bool ceil_mode = false;
};
Tensor max_pool1d(const Tensor& x, const MaxPool1dOptions& options);
inline Tensor max_pool1d(const Tensor& x, int64_t kernel_size, std::optional<int64_t> stride = {}) {
  return max_pool1d(x, {.kernel_size = kernel_size, .stride = stride});
}

struct AvgPool1dOptions {
  int64_t kernel_size = 0;
  std::optional<int64_t> stride = {};
  int64_t padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
Tensor avg_pool1d(const Tensor& x, const AvgPool1dOptions& options);
inline Tensor avg_pool1d(const Tensor& x, int64_t kernel_size, std::optional<int64_t> stride = {}) {
  return avg_pool1d(x, {.kernel_size = kernel_size, .stride = stride});
}
Tensor adaptive_avg_pool1d(const Tensor& x, int64_t output_size);
Tensor adaptive_max_pool1d(const Tensor& x, int64_t output_size);

}  // namespace tern
