// Pixel shuffle and unshuffle: one copy between two strided views, and each is the other's gradient. Shuffled
// channels are a transposed view.
#include "tern/ops/pixel.h"

#include "tern/autograd/arithmetic.h"
#include "tern/ops/common.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// A dimension of a view that is being put together.
struct Part {
  int64_t size, stride;
};

/// x with other last dimensions; no history.
Tensor with_last(const Tensor& x, std::initializer_list<Part> parts) {
  Shape shape(x.shape().begin(), x.shape().end() - 3);
  Strides strides(x.strides().begin(), x.strides().end() - 3);
  for (const Part& part : parts) {
    shape.push_back(part.size);
    strides.push_back(part.stride);
  }
  return Tensor::view_of(x.storage(), x.dtype(), std::move(shape), std::move(strides), x.storage_offset());
}

/// [..., C * r * r, H, W] as [..., C, H, r, W, r].
Tensor of_channels(const Tensor& x, int64_t r) {
  const int64_t c = x.stride(-3), h = x.stride(-2), w = x.stride(-1);
  return with_last(x,
                   {{x.size(-3) / (r * r), c * r * r}, {x.size(-2), h}, {r, c * r}, {x.size(-1), w}, {r, c}});
}

/// [..., C, H * r, W * r] as [..., C, H, r, W, r].
Tensor of_pixels(const Tensor& x, int64_t r) {
  const int64_t c = x.stride(-3), h = x.stride(-2), w = x.stride(-1);
  return with_last(x, {{x.size(-3), c}, {x.size(-2) / r, h * r}, {r, h}, {x.size(-1) / r, w * r}, {r, w}});
}

Tensor shuffled(const char* op, const Tensor& x, int64_t r, bool to_pixels) {
  const int64_t area = r * r;
  Shape shape = x.shape();
  int64_t *c = shape.end() - 3, *h = shape.end() - 2, *w = shape.end() - 1;
  *c = to_pixels ? *c / area : *c * area;
  *h = to_pixels ? *h * r : *h / r;
  *w = to_pixels ? *w * r : *w / r;
  Tensor y = empty_contiguous(std::move(shape), x.numel(), x.dtype(), x.device());
  if (x.numel() != 0) {
    if (to_pixels)
      copy_elements(of_pixels(y, r), of_channels(x, r));
    else
      copy_elements(of_channels(y, r), of_pixels(x, r));
  }
  if (tracks_grad(x))
    record(op, y, {x}, [r, to_pixels](GradContext&, const Tensor& g) {
      return shuffled(to_pixels ? "pixel_unshuffle" : "pixel_shuffle", g, r, !to_pixels);
    });
  return y;
}

void check(const char* op, const Tensor& x, const char* factor_name, int64_t factor) {
  TERN_CHECK(x.dim() >= 3, ShapeError,
             "{}: expects input to have at least 3 dimensions, but got input with {} dimension(s)", op,
             x.dim());
  TERN_CHECK(factor > 0, ValueError, "{}: expects a positive {}, but got {}", op, factor_name, factor);
  TERN_CHECK(factor < int64_t{1} << 31, ValueError, "{}: {} must be below 2^31, got {}", op, factor_name,
             factor);
}

}  // namespace

Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor) {
  const char* op = "pixel_shuffle";
  check(op, x, "upscale_factor", upscale_factor);
  const int64_t area = upscale_factor * upscale_factor;
  TERN_CHECK(
      x.size(-3) % area == 0, ShapeError,
      "{}: expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
      "input.size(-3)={} is not divisible by {}",
      op, x.size(-3), area);
  return shuffled(op, x, upscale_factor, /*to_pixels=*/true);
}

Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor) {
  const char* op = "pixel_unshuffle";
  check(op, x, "downscale_factor", downscale_factor);
  for (const auto& [dim, what] : {std::pair(-2, "height"), std::pair(-1, "width")})
    TERN_CHECK(
        x.size(dim) % downscale_factor == 0, ShapeError,
        "{}: expects {} to be divisible by downscale_factor, but input.size({})={} is not divisible by {}",
        op, what, dim, x.size(dim), downscale_factor);
  return shuffled(op, x, downscale_factor, /*to_pixels=*/false);
}

Tensor channel_shuffle(const Tensor& x, int64_t groups) {
  TERN_CHECK(x.dim() > 2, ShapeError,
             "channel_shuffle: expects input with > 2 dims, but got input with sizes {}",
             to_string(x.shape()));
  TERN_CHECK(groups > 0, ValueError,
             "channel_shuffle: Number of groups to divide channels in must be positive. Value of groups: {}",
             groups);
  TERN_CHECK(
      x.size(1) % groups == 0, ShapeError,
      "channel_shuffle: Number of channels must be divisible by groups. Got {} channels and {} groups.",
      x.size(1), groups);
  return flatten(transpose(unflatten(x, 1, {groups, x.size(1) / groups}), 1, 2).contiguous(), 1, 2);
}

}  // namespace tern
