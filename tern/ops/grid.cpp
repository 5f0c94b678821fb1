// Grids of places and the reading at them, made of other operators, whose gradients are theirs. Formulas as
// in ATen/native/GridSampler.h.
#include "tern/ops/grid.h"

#include <vector>

#include "tern/ops/activation.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

constexpr const char* kSampleOp = "grid_sample";

/// Coordinates of `size` pixels.
Tensor pixel_places(int64_t size, bool align_corners, const TensorOptions& like) {
  if (size == 1) return zeros({1}, like);
  const Tensor corners = linspace(-1, 1, size, like);
  return align_corners ? corners : mul(corners, static_cast<double>(size - 1) / static_cast<double>(size));
}

/// Places mirrored at the outermost pixels' centres, or at their edges.
Tensor reflected(const Tensor& place, int64_t size, bool align_corners) {
  const double low = align_corners ? 0 : -0.5, span = static_cast<double>(align_corners ? size - 1 : size);
  if (span == 0) return mul(place, 0);
  const Tensor distance = abs(sub(place, low));
  const Tensor flips = floor(div(distance.detach(), span));
  const Tensor rest = sub(distance, mul(flips, span));
  return add(where(eq(remainder(flips, 2), 0), rest, rsub(rest, span)), low);
}

/// Places that lie inside, but for "zeros". Those at the border and beyond have no gradient.
Tensor inside_of_image(const Tensor& place, int64_t size, const GridSampleOptions& o) {
  if (o.padding_mode == "zeros") return place;
  const Tensor near = o.padding_mode == "border" ? place : reflected(place, size, o.align_corners);
  return hardtanh(near, 0, static_cast<double>(size - 1));
}

/// A pixel along one dimension for each place, and its weight; undefined stands for 1.
struct Tap {
  Tensor pixel;
  Tensor weight;
};

/// Of the cubic convolution with a = -0.75 (Keys, "Cubic convolution interpolation", 1981), at a distance of
/// up to 1, and from 1 to 2.
Tensor cubic_near(const Tensor& t) { return add(mul(mul(sub(mul(t, 1.25), 2.25), t), t), 1); }
Tensor cubic_far(const Tensor& t) { return mul(sub(mul(add(mul(sub(t, 5), t), 8), t), 4), -0.75); }

std::vector<Tap> taps_of(const Tensor& coordinate, int64_t size, const GridSampleOptions& o) {
  const double whole = static_cast<double>(size);
  const Tensor place = o.align_corners ? mul(add(coordinate, 1), (whole - 1) / 2)
                                       : mul(sub(mul(add(coordinate, 1), whole), 1), 0.5);
  if (o.mode == "nearest") return {{round(inside_of_image(place, size, o).detach()), Tensor()}};
  if (o.mode == "bilinear") {
    const Tensor inside = inside_of_image(place, size, o), first = floor(inside.detach()),
                 t = sub(inside, first);
    return {{first, rsub(t, 1)}, {add(first, 1), t}};
  }
  const Tensor first = floor(place.detach()), t = sub(place, first), u = rsub(t, 1);
  const Tensor weights[] = {cubic_far(add(t, 1)), cubic_near(t), cubic_near(u), cubic_far(add(u, 1))};
  std::vector<Tap> taps;
  for (int i = 0; i < 4; ++i) taps.push_back({inside_of_image(add(first, i - 1), size, o), weights[i]});
  return taps;
}

void check_grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& o) {
  check_same_device(kSampleOp, {{"input", x}, {"grid", grid}});
  TERN_CHECK(
      is_floating_point(x.dtype()) && x.dtype() == grid.dtype(), DTypeError,
      "{}: expected input and grid to have the same floating-point dtype, but input has {} and grid has "
      "{}: convert one with to(dtype)",
      kSampleOp, name(x.dtype()), name(grid.dtype()));
  TERN_CHECK(o.mode == "bilinear" || o.mode == "nearest" || o.mode == "bicubic", ValueError,
             "{}: expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{}'", kSampleOp, o.mode);
  TERN_CHECK(o.padding_mode == "zeros" || o.padding_mode == "border" || o.padding_mode == "reflection",
             ValueError, "{}: expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{}'",
             kSampleOp, o.padding_mode);
  TERN_CHECK(
      (x.dim() == 4 || x.dim() == 5) && grid.dim() == x.dim(), ShapeError,
      "{}: expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {} "
      "and grid with sizes {}",
      kSampleOp, to_string(x.shape()), to_string(grid.shape()));
  TERN_CHECK(x.size(0) == grid.size(0), ShapeError,
             "{}: expected grid and input to have same batch size, but got input with sizes {} and grid with "
             "sizes {}",
             kSampleOp, to_string(x.shape()), to_string(grid.shape()));
  TERN_CHECK(grid.size(-1) == x.dim() - 2, ShapeError,
             "{}: expected grid to have size {} in last dimension, but got grid with sizes {}", kSampleOp,
             x.dim() - 2, to_string(grid.shape()));
  for (int64_t d = 2; d < x.dim(); ++d)
    TERN_CHECK(
        x.size(d) > 0, ShapeError,
        "{}: expected input to have non-empty spatial dimensions, but input has sizes {} with dimension "
        "{} being empty",
        kSampleOp, to_string(x.shape()), d);
}

}  // namespace

Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners) {
  const char* op = "affine_grid";
  TERN_CHECK(is_floating_point(theta.dtype()), DTypeError,
             "{}: Expected theta to have floating point type, but got {}", op, name(theta.dtype()));
  TERN_CHECK(size.size() == 4 || size.size() == 5, ValueError,
             "{}: only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {}",
             op, to_string(size.to_shape()));
  for (const int64_t each : size)
    TERN_CHECK(each > 0, ValueError, "{}: Expected non-zero, positive output size. Got {}", op,
               to_string(size.to_shape()));
  const int64_t rank = static_cast<int64_t>(size.size()) - 2;
  TERN_CHECK(theta.shape() == Shape({size[0], rank, rank + 1}), ShapeError,
             "{}: Expected a batch of {}D affine matrices of shape {} for size {}. Got {}", op, rank,
             to_string(Shape{size[0], rank, rank + 1}), to_string(size.to_shape()), to_string(theta.shape()));
  const TensorOptions like{.dtype = theta.dtype(), .device = theta.device(), .requires_grad = false};
  Shape grid_shape(size.begin() + 2, size.end());
  std::vector<Tensor> columns;  // x, y, (z,) 1 of each pixel
  for (int64_t d = rank; d-- > 0;) {
    Shape along(static_cast<size_t>(rank), 1);
    along[static_cast<size_t>(d)] = size[static_cast<size_t>(d + 2)];
    columns.push_back(
        expand(reshape(pixel_places(along[static_cast<size_t>(d)], align_corners, like), along), grid_shape));
  }
  columns.push_back(ones(grid_shape, like));
  const Tensor base = flatten(stack(columns, -1), 0, -2);  // [pixels, rank + 1]
  const Tensor grid =
      bmm(expand(unsqueeze(base, 0), {size[0], base.size(0), rank + 1}), transpose(theta, 1, 2));
  Shape shape{size[0]};
  for (const int64_t each : grid_shape) shape.push_back(each);
  shape.push_back(rank);
  return reshape(grid, shape);
}

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& o) {
  const auto again = [&](const Tensor& a, const Tensor& b) { return grid_sample(a, b, o); };
  if (autocasts_on_cpu(x)) [[unlikely]]
    return autocast_float32(again, x, grid);
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_widest(again, x, grid);
  check_grid_sample(x, grid, o);
  const DType wide = x.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  const int64_t rank = x.dim() - 2, batch = x.size(0), channels = x.size(1);
  const Tensor places = flatten(to(grid, wide), 1, -2);  // [N, points, rank]
  const int64_t points = places.size(1);
  const Tensor pixels = flatten(x, 2, -1);

  struct Corner {
    Tensor inside, position, weight;  // [N, points]; positions in floats
  };
  std::vector<Corner> corners{{}};
  for (int64_t d = 0; d < rank; ++d) {  // from the slowest dimension, whose coordinate is the last
    const int64_t size = x.size(2 + d);
    std::vector<Corner> more;
    const std::vector<Tap> taps = taps_of(select(places, -1, rank - 1 - d), size, o);
    for (const Corner& corner : corners)
      for (const Tap& tap : taps) {
        const Tensor pixel = tap.pixel.detach();
        const Tensor inside = logical_and(ge(pixel, 0), le(pixel, size - 1));
        const Tensor position = to(where(inside, pixel, 0), DType::Int64);
        if (d == 0) {
          more.push_back({inside, position, tap.weight});
          continue;
        }
        more.push_back({logical_and(corner.inside, inside), add(mul(corner.position, size), position),
                        tap.weight.defined() ? mul(corner.weight, tap.weight) : Tensor()});
      }
    corners = std::move(more);
  }
  Tensor y;
  for (const Corner& corner : corners) {
    const Tensor at = expand(unsqueeze(corner.position, 1), {batch, channels, points});
    // Both are masked: what lies at the place that stands for those outside may be infinite.
    Tensor value = where(unsqueeze(corner.inside, 1), to(gather(pixels, 2, at), wide), 0);
    if (corner.weight.defined()) value = mul(value, unsqueeze(where(corner.inside, corner.weight, 0), 1));
    y = y.defined() ? add(y, value) : value;
  }
  Shape shape{batch, channels};
  for (int64_t d = 1; d <= rank; ++d) shape.push_back(grid.size(d));
  return reshape(to(y, x.dtype()), shape);
}

}  // namespace tern
