// Pooling in one, two and three dimensions. Sizes are described at Pool2dShape in
// kernels/pool.h.
#pragma once

#include <optional>
#include <utility>

#include "tern/core/tensor.h"
#include "tern/ops/size3.h"

namespace tern {

// Images are [N, C, H, W] or [C, H, W], sequences [N, C, L] or [C, L], volumes [N, C, D, H, W] or
// [C, D, H, W]. Throw ShapeError in PyTorch's words when no window fits, ValueError for an
// impossible option.

template <int N>
struct MaxPoolOptions {
  SizeOf<N> kernel_size = 0;             ///< required
  std::optional<SizeOf<N>> stride = {};  ///< kernel_size when left out
  SizeOf<N> padding = 0;                 ///< at most half the kernel
  SizeOf<N> dilation = 1;
  bool ceil_mode = false;  ///< windows may reach over the end
};
using MaxPool1dOptions = MaxPoolOptions<1>;
using MaxPool2dOptions = MaxPoolOptions<2>;
using MaxPool3dOptions = MaxPoolOptions<3>;

/// The maximum of each window; NaN wins. Every dtype but bool.
Tensor max_pool1d(const Tensor& x, const MaxPool1dOptions& options);
Tensor max_pool2d(const Tensor& x, const MaxPool2dOptions& options);
Tensor max_pool3d(const Tensor& x, const MaxPool3dOptions& options);
inline Tensor max_pool1d(const Tensor& x, int64_t kernel_size, std::optional<int64_t> stride = {}) {
  return max_pool1d(x, {.kernel_size = kernel_size, .stride = stride});
}
inline Tensor max_pool2d(const Tensor& x, int64_t kernel_size, std::optional<Size2> stride = {}) {
  return max_pool2d(x, {.kernel_size = kernel_size, .stride = stride});
}
inline Tensor max_pool3d(const Tensor& x, int64_t kernel_size, std::optional<Size3> stride = {}) {
  return max_pool3d(x, {.kernel_size = kernel_size, .stride = stride});
}
/// The same with the int64 positions of the maxima in their sequences (l), images (h * W + w) or volumes
/// ((d * H + h) * W + w).
std::pair<Tensor, Tensor> max_pool1d_with_indices(const Tensor& x, const MaxPool1dOptions& options);
std::pair<Tensor, Tensor> max_pool2d_with_indices(const Tensor& x, const MaxPool2dOptions& options);
std::pair<Tensor, Tensor> max_pool3d_with_indices(const Tensor& x, const MaxPool3dOptions& options);

/// Those of the pooling whose result is spread.
template <int N>
struct MaxUnpoolOptions {
  SizeOf<N> kernel_size = 0;             ///< required
  std::optional<SizeOf<N>> stride = {};  ///< kernel_size when left out
  SizeOf<N> padding = 0;
  /// Of sequences, images or volumes, which the two first sizes of a batch may precede: the shape of what was
  /// pooled. When left out, the smallest that the pooling may have had, (size - 1) * stride + kernel_size - 2
  /// * padding.
  Shape output_size = {};
};
using MaxUnpool1dOptions = MaxUnpoolOptions<1>;
using MaxUnpool2dOptions = MaxUnpoolOptions<2>;
using MaxUnpool3dOptions = MaxUnpoolOptions<3>;

/// The elements of x in the places of their sequences, images or volumes that `indices` names as
/// max_pool*_with_indices gives them, zeros elsewhere; of several for one place the last stands there.
/// Floats. Throws ShapeError unless `indices` has x's shape, DTypeError unless it is int64, IndexError for an
/// index out of range, ValueError for an output size that the pooling can not have had.
Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const MaxUnpool1dOptions& options);
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const MaxUnpool2dOptions& options);
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const MaxUnpool3dOptions& options);

template <int N>
struct AvgPoolOptions {
  SizeOf<N> kernel_size = 0;             ///< required
  std::optional<SizeOf<N>> stride = {};  ///< kernel_size when left out
  SizeOf<N> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = {};
};
template <>
struct AvgPoolOptions<1> {
  int64_t kernel_size = 0;
  std::optional<int64_t> stride = {};
  int64_t padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
using AvgPool1dOptions = AvgPoolOptions<1>;
using AvgPool2dOptions = AvgPoolOptions<2>;
using AvgPool3dOptions = AvgPoolOptions<3>;

/// The mean of each window. Floats and int64; volumes of floats.
Tensor avg_pool1d(const Tensor& x, const AvgPool1dOptions& options);
Tensor avg_pool2d(const Tensor& x, const AvgPool2dOptions& options);
Tensor avg_pool3d(const Tensor& x, const AvgPool3dOptions& options);
inline Tensor avg_pool1d(const Tensor& x, int64_t kernel_size, std::optional<int64_t> stride = {}) {
  return avg_pool1d(x, {.kernel_size = kernel_size, .stride = stride});
}
inline Tensor avg_pool2d(const Tensor& x, int64_t kernel_size, std::optional<Size2> stride = {}) {
  return avg_pool2d(x, {.kernel_size = kernel_size, .stride = stride});
}
inline Tensor avg_pool3d(const Tensor& x, int64_t kernel_size, std::optional<Size3> stride = {}) {
  return avg_pool3d(x, {.kernel_size = kernel_size, .stride = stride});
}

/// The root of order norm_type of the sum of x^norm_type over each window. Throws ValueError for an order of
/// 0.
Tensor lp_pool1d(const Tensor& x, double norm_type, int64_t kernel_size, std::optional<int64_t> stride = {},
                 bool ceil_mode = false);
Tensor lp_pool2d(const Tensor& x, double norm_type, Size2 kernel_size, std::optional<Size2> stride = {},
                 bool ceil_mode = false);
Tensor lp_pool3d(const Tensor& x, double norm_type, Size3 kernel_size, std::optional<Size3> stride = {},
                 bool ceil_mode = false);

/// The mean over windows that divide the image into output_size parts; a size
/// of -1 keeps the image's.
Tensor adaptive_avg_pool1d(const Tensor& x, int64_t output_size);
Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output_size);
Tensor adaptive_avg_pool3d(const Tensor& x, Size3 output_size);
/// The maximum over such windows.
Tensor adaptive_max_pool1d(const Tensor& x, int64_t output_size);
Tensor adaptive_max_pool2d(const Tensor& x, Size2 output_size);
Tensor adaptive_max_pool3d(const Tensor& x, Size3 output_size);
/// The same with positions as max_pool*_with_indices gives them.
std::pair<Tensor, Tensor> adaptive_max_pool1d_with_indices(const Tensor& x, int64_t output_size);
std::pair<Tensor, Tensor> adaptive_max_pool2d_with_indices(const Tensor& x, Size2 output_size);
std::pair<Tensor, Tensor> adaptive_max_pool3d_with_indices(const Tensor& x, Size3 output_size);

}  // namespace tern
