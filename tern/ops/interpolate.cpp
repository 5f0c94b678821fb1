// Resizing with its gradient. Both are products with the same band matrices, which one kernel gives: the
// gradient's own gradient is the forward pass again.
#include "tern/ops/interpolate.h"

#include <cmath>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// Sizes of a tensor that is seen as [outer, h, w, inner].
struct ResizePlan {
  int64_t outer = 1, inner = 1;
  ResizeAxis h, w;
};

void resize_elements(const ResizePlan& plan, bool transposed, const Tensor& x, const Tensor& y) {
  ResizeArgs args;
  args.dtype = x.dtype();
  args.transposed = transposed;
  args.outer = plan.outer;
  args.inner = plan.inner;
  args.h = plan.h;
  args.w = plan.w;
  args.input = x.data_ptr();
  args.output = y.data_ptr();
  launch(current_stream(x.device()), kernels::resize, args);
}

/// Whether pixels of x [N, C, H, W] lie behind one another, each with all its channels.
bool has_channels_last(const Tensor& x) {
  return x.dim() == 4 && x.size(1) > 1 && !x.is_contiguous() &&
         permute(x.detach(), {0, 2, 3, 1}).is_contiguous();
}

Tensor resized(const char* op, const ResizePlan& plan, bool transposed, const Tensor& x_given, Shape shape) {
  const int64_t numel = with_context(op, [&] { return checked_numel(shape); });
  Tensor y = empty_contiguous(std::move(shape), numel, x_given.dtype(), x_given.device());
  Tensor x = x_given;
  if (numel != 0) {
    if (numel < x.numel() && has_channels_last(x)) {
      // The smaller of the two is put into the other order.
      const NoGradGuard no_grad;
      ResizePlan pixels = plan;
      pixels.outer = x.size(0);
      pixels.inner = x.size(1);
      const Tensor z = empty_of({y.size(0), y.size(2), y.size(3), y.size(1)}, x);
      resize_elements(pixels, transposed, permute(x, {0, 2, 3, 1}), z);
      copy_elements(y, permute(z, {0, 3, 1, 2}));
    } else {
      x = contiguous(x_given);
      resize_elements(plan, transposed, x, y);
    }
  }
  if (tracks_grad(x_given))
    record(op, y, {x_given}, [plan, transposed, from = x_given.shape()](GradContext&, const Tensor& g) {
      return resized(transposed ? "interpolate" : "interpolate_backward", plan, !transposed, g, from);
    });
  return y;
}

// ---- options

struct ModeName {
  std::string_view name;
  ResizeMode mode;
  int64_t rank;  ///< 0: all
};
constexpr ModeName kModeNames[] = {
    {"nearest", ResizeMode::Nearest, 0}, {"nearest-exact", ResizeMode::NearestExact, 0},
    {"area", ResizeMode::Area, 0},       {"linear", ResizeMode::Linear, 3},
    {"bilinear", ResizeMode::Linear, 4}, {"bicubic", ResizeMode::Cubic, 4},
    {"trilinear", ResizeMode::Linear, 5}};

ResizeMode resize_mode(const Tensor& x, const InterpolateOptions& o) {
  const auto* found = std::find_if(std::begin(kModeNames), std::end(kModeNames),
                                   [&](const ModeName& m) { return m.name == o.mode; });
  TERN_CHECK(
      found != std::end(kModeNames), ValueError,
      "interpolate: unknown mode '{}': give nearest, nearest-exact, area, linear, bilinear, bicubic or "
      "trilinear",
      o.mode);
  TERN_CHECK(found->rank != 0 || !o.align_corners, ValueError,
             "interpolate: align_corners option can only be set with the interpolating modes: linear | "
             "bilinear | bicubic | trilinear, not with {}",
             o.mode);
  TERN_CHECK(
      x.dim() >= 3 && x.dim() <= 5, ShapeError,
      "interpolate: Only 3D, 4D and 5D input Tensors supported (got {}D): give [N, C, L], [N, C, H, W] "
      "or [N, C, D, H, W]",
      x.dim());
  TERN_CHECK(found->rank == 0 || found->rank == x.dim(), ShapeError,
             "interpolate: Got {}D input, but {} mode needs {}D input", x.dim(), o.mode, found->rank);
  if (!o.antialias) return found->mode;
  TERN_CHECK(found->rank == 4, ValueError,
             "interpolate: Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
             "tensor as input, but mode is {}",
             o.mode);
  return found->mode == ResizeMode::Linear ? ResizeMode::LinearAntialias : ResizeMode::CubicAntialias;
}

template <class T>
void check_count(const Tensor& x, const char* what, const std::vector<T>& values) {
  TERN_CHECK(values.size() == 1 || static_cast<int64_t>(values.size()) == x.dim() - 2, ShapeError,
             "interpolate: Input and output must have the same number of spatial dimensions, but got input "
             "{} and {} values in {}: give one for each dimension after the channels, or one for all",
             to_string(x.shape()), values.size(), what);
}

/// The axes behind the channels.
std::vector<ResizeAxis> resize_axes(const Tensor& x, const InterpolateOptions& o) {
  TERN_CHECK(o.size.empty() || o.scale_factor.empty(), ValueError,
             "interpolate: only one of size or scale_factor should be defined");
  TERN_CHECK(!o.size.empty() || !o.scale_factor.empty(), ValueError,
             "interpolate: either size or scale_factor should be defined");
  TERN_CHECK(o.size.empty() || !o.recompute_scale_factor, ValueError,
             "interpolate: recompute_scale_factor is not meaningful with size explicitly specified");
  ResizeAxis axis;
  axis.mode = resize_mode(x, o);
  axis.align_corners = o.align_corners.value_or(false);
  const size_t count = static_cast<size_t>(x.dim()) - 2;
  std::vector<ResizeAxis> axes(count, axis);
  if (!o.size.empty())
    check_count(x, "size", o.size);
  else
    check_count(x, "scale_factor", o.scale_factor);
  for (size_t d = 0; d < count; ++d) {
    axes[d].in = x.size(static_cast<int64_t>(d) + 2);
    if (!o.size.empty()) {
      axes[d].out = o.size[o.size.size() == 1 ? 0 : d];
    } else {
      const double factor = o.scale_factor[o.scale_factor.size() == 1 ? 0 : d];
      const double out = std::floor(static_cast<double>(axes[d].in) * factor);
      TERN_CHECK(std::abs(out) < 0x1p62, ShapeError,
                 "interpolate: scale_factor {} of size {} is more than a size can be", factor, axes[d].in);
      axes[d].out = static_cast<int64_t>(out);
      if (!o.recompute_scale_factor && axis.mode != ResizeMode::Area) axes[d].scale = factor;
    }
    TERN_CHECK(axes[d].in > 0 && axes[d].out > 0, ShapeError,
               "interpolate: Input and output sizes should be greater than 0, but got input {} and output "
               "size {} in dimension {}",
               to_string(x.shape()), axes[d].out, d + 2);
  }
  TERN_CHECK(x.size(1) > 0, ShapeError,
             "interpolate: Non-empty data tensor expected, but dimension 1 of input {} is empty",
             to_string(x.shape()));
  return axes;
}

void check_resize_dtype(const Tensor& x, const InterpolateOptions& o) {
  const DType dtype = x.dtype();
  if (is_computable(dtype) && is_floating_point(dtype)) return;
  const bool picks = o.mode == "nearest" || o.mode == "nearest-exact";
  TERN_CHECK(picks && dtype == DType::UInt8, DTypeError,
             "interpolate: mode {} is not implemented for {}: convert with to(float32)", o.mode, name(dtype));
}

Shape with_size(const Tensor& x, size_t dim, std::initializer_list<int64_t> sizes) {
  Shape shape = x.shape();
  for (const int64_t size : sizes) shape[dim++] = size;
  return shape;
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& options) {
  if (x.dim() == 5 && options.mode == "area" && autocasts_on_cpu(x)) [[unlikely]]
    return autocast_float32(interpolate, x, options);
  const std::vector<ResizeAxis> axes = resize_axes(x, options);
  check_resize_dtype(x, options);
  const char* op = "interpolate";
  const int64_t planes = x.size(0) * x.size(1);
  if (axes.size() == 1)
    return resized(op, {planes, 1, {}, axes[0]}, false, x, with_size(x, 2, {axes[0].out}));
  if (axes.size() == 2)
    return resized(op, {planes, 1, axes[0], axes[1]}, false, x, with_size(x, 2, {axes[0].out, axes[1].out}));
  // The depth by itself, as rows of whole images.
  const auto depth = [&](const Tensor& v) {
    return resized(op, {planes, v.size(3) * v.size(4), axes[0], {}}, false, v,
                   with_size(v, 2, {axes[0].out}));
  };
  const auto images = [&](const Tensor& v) {
    return resized(op, {planes * v.size(2), 1, axes[1], axes[2]}, false, v,
                   with_size(v, 3, {axes[1].out, axes[2].out}));
  };
  return axes[0].out < axes[0].in ? images(depth(x)) : depth(images(x));
}

}  // namespace tern
