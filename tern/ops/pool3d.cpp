// Pooling of volumes, as that of their slices and then of what these gave along the depth: means of equal
// numbers of elements and maxima, ties and NaN too, are the same as of the whole window.
#include <algorithm>
#include <tuple>

#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/pool.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

void check_volume(const char* op, const Tensor& x) {
  TERN_CHECK(x.dim() == 4 || x.dim() == 5, ShapeError,
             "{}: Expected 4D or 5D (batch mode) tensor, but got {}", op, to_string(x.shape()));
  for (int64_t d = x.dim() == 5 ? 1 : 0; d < x.dim(); ++d)
    TERN_CHECK(x.size(d) != 0, ShapeError,
               "{}: Expected input to have non-zero size for non-batch dimensions, "
               "but input has sizes {} with dimension {} being empty",
               op, to_string(x.shape()), d);
}

template <class Options>
void check_volume_pool(const char* op, const Tensor& x, const Options& o, Size3 dilation) {
  check_volume(op, x);
  const auto kernel = sizes_of(o.kernel_size), stride = sizes_of(o.stride.value_or(o.kernel_size)),
             padding = sizes_of(o.padding), steps = sizes_of(dilation);
  constexpr int64_t kLimit = int64_t{1} << 31;
  for (size_t d = 0; d < 3; ++d) {
    TERN_CHECK(kernel[d] > 0, ValueError, "{}: kernel size should be greater than zero, but got {}", op,
               kernel[d]);
    TERN_CHECK(stride[d] > 0, ValueError, "{}: stride should be greater than zero, but got {}", op,
               stride[d]);
    TERN_CHECK(steps[d] > 0, ValueError, "{}: dilation should be greater than zero, but got {}", op,
               steps[d]);
    TERN_CHECK(kernel[d] < kLimit && stride[d] < kLimit && steps[d] < kLimit, ValueError,
               "{}: kernel size, stride and dilation must be below 2^31", op);
    const int64_t reach = steps[d] * (kernel[d] - 1) + 1;
    TERN_CHECK(padding[d] >= 0 && padding[d] <= reach / 2, ValueError,
               "{}: pad should be at least zero and at most half of effective kernel size, but got pad={}, "
               "kernel_size={} and dilation={}",
               op, padding[d], kernel[d], steps[d]);
    const int64_t size = x.size(-3 + static_cast<int64_t>(d));
    TERN_CHECK(
        Pool2dShape::output_size(size, kernel[d], stride[d], padding[d], steps[d], o.ceil_mode) > 0,
        ShapeError,
        "{}: Output size is too small: no window of {} fits in a dimension of {}: use a smaller kernel "
        "or more padding",
        op, reach, size);
  }
}

/// `pool_images` of the slices, then `pool_depth` of [planes, 1, D, H * W] as images whose width stays.
template <class PoolImages, class PoolDepth>
Tensor pool_volume(const Tensor& x, const PoolImages& pool_images, const PoolDepth& pool_depth) {
  const int64_t planes = x.dim() == 5 ? x.size(0) * x.size(1) : x.size(0);
  const Tensor slices = pool_images(reshape(x, {planes, x.size(-3), x.size(-2), x.size(-1)}));
  const Tensor y = pool_depth(unsqueeze(flatten(slices, -2, -1), 1));
  Shape shape = x.shape();
  shape[shape.size() - 3] = y.size(-2);
  shape[shape.size() - 2] = slices.size(-2);
  shape[shape.size() - 1] = slices.size(-1);
  return reshape(y, shape);
}

Size2 image_part(Size3 size) { return {size.h, size.w}; }
Size2 depth_part(Size3 size, int64_t width) { return {size.d, width}; }

MaxPool2dOptions image_part(const MaxPool3dOptions& o) {
  return {.kernel_size = image_part(o.kernel_size),
          .stride = image_part(o.stride.value_or(o.kernel_size)),
          .padding = image_part(o.padding),
          .dilation = image_part(o.dilation),
          .ceil_mode = o.ceil_mode};
}
MaxPool2dOptions depth_part(const MaxPool3dOptions& o) {
  return {.kernel_size = depth_part(o.kernel_size, 1),
          .stride = depth_part(o.stride.value_or(o.kernel_size), 1),
          .padding = depth_part(o.padding, 0),
          .dilation = depth_part(o.dilation, 1),
          .ceil_mode = o.ceil_mode};
}

/// As pool_volume for two functions that give places too; those of volumes are (d * H + h) * W + w.
template <class PoolImages, class PoolDepth>
std::pair<Tensor, Tensor> pool_volume_with_indices(const Tensor& x, const PoolImages& pool_images,
                                                   const PoolDepth& pool_depth) {
  Tensor in_slices, in_columns, values;
  const Tensor y = pool_volume(
      x,
      [&](const Tensor& slices) {
        std::tie(values, in_slices) = pool_images(slices);
        return values;
      },
      [&](const Tensor& columns) {
        std::tie(values, in_columns) = pool_depth(columns);
        return values;
      });
  const Tensor chosen = flatten(in_columns, 1, -1);  // in D x (oh * ow), as in_slices lies
  const Tensor slice = div(chosen, std::max<int64_t>(in_columns.size(-1), 1), "floor");
  const Tensor places =
      add(mul(slice, x.size(-2) * x.size(-1)), gather(flatten(in_slices, 1, -1), 1, chosen));
  return {y, reshape(places, y.shape())};
}

void check_adaptive_volume(const char* op, const Tensor& x, Size3 output_size) {
  check_volume(op, x);
  for (const int64_t size : sizes_of(output_size))
    TERN_CHECK(size >= -1, ValueError,
               "{}: elements of output_size must be greater than or equal to 0, but got ({}, {}, {})", op,
               output_size.d, output_size.h, output_size.w);
}

/// Sums over two steps of whole numbers would be rounded twice.
void check_volume_mean(const char* op, const Tensor& x) {
  TERN_CHECK(is_floating_point(x.dtype()), DTypeError, "{}: not implemented for {}: convert with to(float32)",
             op, name(x.dtype()));
}

}  // namespace

Tensor max_pool3d(const Tensor& x, const MaxPool3dOptions& o) {
  if (autocasts_on_cpu(x)) [[unlikely]]
    return autocast_float32([&](const Tensor& wide) { return max_pool3d(wide, o); }, x);
  check_volume_pool("max_pool3d", x, o, o.dilation);
  return pool_volume(
      x, [&](const Tensor& slices) { return max_pool2d(slices, image_part(o)); },
      [&](const Tensor& columns) { return max_pool2d(columns, depth_part(o)); });
}

std::pair<Tensor, Tensor> max_pool3d_with_indices(const Tensor& x, const MaxPool3dOptions& o) {
  check_volume_pool("max_pool3d", x, o, o.dilation);
  return pool_volume_with_indices(
      x, [&](const Tensor& slices) { return max_pool2d_with_indices(slices, image_part(o)); },
      [&](const Tensor& columns) { return max_pool2d_with_indices(columns, depth_part(o)); });
}

Tensor avg_pool3d(const Tensor& x, const AvgPool3dOptions& o) {
  if (autocasts_on_cpu(x)) [[unlikely]]
    return autocast_float32([&](const Tensor& wide) { return avg_pool3d(wide, o); }, x);
  check_volume_mean("avg_pool3d", x);
  check_volume_pool("avg_pool3d", x, o, 1);
  TERN_CHECK(!o.divisor_override || *o.divisor_override != 0, ValueError,
             "avg_pool3d: divisor must be not zero");
  const Size3 stride = o.stride.value_or(o.kernel_size);
  return pool_volume(
      x,
      [&](const Tensor& slices) {
        return avg_pool2d(slices, {.kernel_size = image_part(o.kernel_size),
                                   .stride = image_part(stride),
                                   .padding = image_part(o.padding),
                                   .ceil_mode = o.ceil_mode,
                                   .count_include_pad = o.count_include_pad,
                                   .divisor_override = o.divisor_override});
      },
      [&](const Tensor& columns) {
        return avg_pool2d(
            columns, {.kernel_size = depth_part(o.kernel_size, 1),
                      .stride = depth_part(stride, 1),
                      .padding = depth_part(o.padding, 0),
                      .ceil_mode = o.ceil_mode,
                      .count_include_pad = o.count_include_pad,
                      .divisor_override = o.divisor_override ? std::optional<int64_t>(1) : std::nullopt});
      });
}

Tensor adaptive_avg_pool3d(const Tensor& x, Size3 output_size) {
  if (autocasts_on_cpu(x)) [[unlikely]]
    return autocast_float32([&](const Tensor& wide) { return adaptive_avg_pool3d(wide, output_size); }, x);
  check_volume_mean("adaptive_avg_pool3d", x);
  check_adaptive_volume("adaptive_avg_pool3d", x, output_size);
  if (output_size == Size3(1)) return mean(x, {-3, -2, -1}, /*keepdim=*/true);
  return pool_volume(
      x, [&](const Tensor& slices) { return adaptive_avg_pool2d(slices, image_part(output_size)); },
      [&](const Tensor& columns) { return adaptive_avg_pool2d(columns, depth_part(output_size, -1)); });
}

Tensor adaptive_max_pool3d(const Tensor& x, Size3 output_size) {
  if (autocasts_on_cpu(x)) [[unlikely]]
    return autocast_float32([&](const Tensor& wide) { return adaptive_max_pool3d(wide, output_size); }, x);
  check_adaptive_volume("adaptive_max_pool3d", x, output_size);
  return pool_volume(
      x, [&](const Tensor& slices) { return adaptive_max_pool2d(slices, image_part(output_size)); },
      [&](const Tensor& columns) { return adaptive_max_pool2d(columns, depth_part(output_size, -1)); });
}

std::pair<Tensor, Tensor> adaptive_max_pool3d_with_indices(const Tensor& x, Size3 output_size) {
  if (autocasts_on_cpu(x)) [[unlikely]]
    return autocast_float32(
        [&](const Tensor& wide) { return adaptive_max_pool3d_with_indices(wide, output_size); }, x);
  check_adaptive_volume("adaptive_max_pool3d", x, output_size);
  return pool_volume_with_indices(
      x,
      [&](const Tensor& slices) { return adaptive_max_pool2d_with_indices(slices, image_part(output_size)); },
      [&](const Tensor& columns) {
        return adaptive_max_pool2d_with_indices(columns, depth_part(output_size, -1));
      });
}

}  // namespace tern
