// Unfolding is one copy from a strided view, folding a sum for each place in the block; each is the other's
// gradient.
#include "tern/ops/fold.h"

#include "tern/autograd/arithmetic.h"
#include "tern/base/parallel.h"
#include "tern/ops/common.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// Blocks in an image and their places; `blocks` are how many there are.
struct BlockPlan {
  Size2 size, kernel, dilation, padding, stride;
  Size2 blocks{0};

  bool is_padded() const { return padding.h != 0 || padding.w != 0; }
};

BlockPlan block_plan(const char* op, Size2 size, Size2 kernel, const FoldOptions& o) {
  TERN_CHECK(kernel.h > 0 && kernel.w > 0, ValueError,
             "{}: kernel size should be greater than zero, but got kernel_height: {} kernel_width: {}", op,
             kernel.h, kernel.w);
  TERN_CHECK(o.dilation.h > 0 && o.dilation.w > 0, ValueError,
             "{}: dilation should be greater than zero, but got dilation_height: {} dilation_width: {}", op,
             o.dilation.h, o.dilation.w);
  TERN_CHECK(o.padding.h >= 0 && o.padding.w >= 0, ValueError,
             "{}: padding should be non-negative, but got pad_height: {} pad_width: {}", op, o.padding.h,
             o.padding.w);
  TERN_CHECK(o.stride.h > 0 && o.stride.w > 0, ValueError,
             "{}: stride should be greater than zero, but got stride_height: {} stride_width: {}", op,
             o.stride.h, o.stride.w);
  constexpr int64_t kLimit = int64_t{1} << 31;
  for (const Size2& s : {kernel, o.dilation, o.padding, o.stride, size})
    TERN_CHECK(s.h < kLimit && s.w < kLimit, ValueError,
               "{}: sizes, kernel size, stride, padding and dilation must be below 2^31", op);
  BlockPlan plan{size, kernel, o.dilation, o.padding, o.stride};
  const auto count = [](int64_t length, int64_t reach, int64_t step) {
    return length < reach ? 0 : (length - reach) / step + 1;
  };
  plan.blocks = {count(size.h + 2 * o.padding.h, o.dilation.h * (kernel.h - 1) + 1, o.stride.h),
                 count(size.w + 2 * o.padding.w, o.dilation.w * (kernel.w - 1) + 1, o.stride.w)};
  TERN_CHECK(plan.blocks.h > 0 && plan.blocks.w > 0, ShapeError,
             "{}: images of spatial size ({}, {}) have no sliding blocks of kernel_size=({}, {}), "
             "dilation=({}, {}), padding=({}, {}): use a smaller kernel or more padding",
             op, size.h, size.w, kernel.h, kernel.w, o.dilation.h, o.dilation.w, o.padding.h, o.padding.w);
  return plan;
}

/// The elements of image planes [planes, H + 2 * padding, W + 2 * padding] at one place of every block:
/// [planes, blocks.h, blocks.w].
Tensor at_place(const BlockPlan& p, const Tensor& images, int64_t i, int64_t j) {
  const int64_t top = i * p.dilation.h, left = j * p.dilation.w;
  return slice(slice(images, 1, top, top + (p.blocks.h - 1) * p.stride.h + 1, p.stride.h), 2, left,
               left + (p.blocks.w - 1) * p.stride.w + 1, p.stride.w);
}

/// What lies inside the padding.
Tensor inside(const BlockPlan& p, const Tensor& images) {
  return narrow(narrow(images, 1, p.padding.h, p.size.h), 2, p.padding.w, p.size.w);
}

/// Planes of images with zeros around them where the plan has padding.
Tensor padded_planes(const BlockPlan& p, int64_t planes, const Tensor& like) {
  Tensor y = empty_of({planes, p.size.h + 2 * p.padding.h, p.size.w + 2 * p.padding.w}, like);
  if (p.is_padded()) y.fill_(0);
  return y;
}

Tensor folded_blocks(const BlockPlan& p, const Tensor& x, Shape shape);

Tensor unfolded(const BlockPlan& p, const Tensor& x, Shape shape) {
  Tensor y = with_context("unfold", [&] { return empty_of(std::move(shape), x); });
  if (y.numel() != 0) {
    const NoGradGuard no_grad;
    const int64_t planes = x.numel() / (p.size.h * p.size.w);
    Tensor images = reshape(x, {planes, p.size.h, p.size.w});
    if (p.is_padded()) {
      const Tensor wide = padded_planes(p, planes, x);
      copy_elements(inside(p, wide), images);
      images = wide;
    }
    const int64_t row = images.stride(-2), column = images.stride(-1);
    copy_elements(view(y, {planes, p.kernel.h, p.kernel.w, p.blocks.h, p.blocks.w}),
                  as_strided(images, {planes, p.kernel.h, p.kernel.w, p.blocks.h, p.blocks.w},
                             {images.stride(0), p.dilation.h * row, p.dilation.w * column, p.stride.h * row,
                              p.stride.w * column},
                             images.storage_offset()));
  }
  if (tracks_grad(x))
    record("unfold", y, {x},
           [p, from = x.shape()](GradContext&, const Tensor& g) { return folded_blocks(p, g, from); });
  return y;
}

Tensor folded_blocks(const BlockPlan& p, const Tensor& x, Shape shape) {
  Tensor y = with_context("fold", [&] { return empty_of(std::move(shape), x); });
  if (y.numel() != 0) {
    const NoGradGuard no_grad;
    const int64_t planes = y.numel() / (p.size.h * p.size.w);
    const Tensor blocks = reshape(x, {planes, p.kernel.h * p.kernel.w, p.blocks.h, p.blocks.w});
    // On the CPU some planes after the others, so that a cache holds the sums.
    constexpr int64_t kCachedPlanes = int64_t{128} << 10;
    const int64_t plane = (p.size.h + 2 * p.padding.h) * (p.size.w + 2 * p.padding.w);
    const int64_t at_once =
        x.device().is_cpu() ? std::max<int64_t>(1, kCachedPlanes * num_threads() / plane) : planes;
    for (int64_t first = 0; first < planes; first += at_once) {
      const int64_t count = std::min(at_once, planes - first);
      const Tensor part = narrow(blocks, 0, first, count);
      const Tensor to = narrow(view(y, {planes, p.size.h, p.size.w}), 0, first, count);
      const Tensor sums = p.is_padded() ? padded_planes(p, count, x) : to;
      if (!p.is_padded()) fill_elements(sums, 0);
      for (int64_t k = 0; k < p.kernel.h * p.kernel.w; ++k)
        accumulate_into(at_place(p, sums, k / p.kernel.w, k % p.kernel.w), select(part, 1, k));
      if (p.is_padded()) copy_elements(to, inside(p, sums));
    }
  }
  if (tracks_grad(x))
    record("fold", y, {x},
           [p, from = x.shape()](GradContext&, const Tensor& g) { return unfolded(p, g, from); });
  return y;
}

}  // namespace

Tensor unfold(const Tensor& x, Size2 kernel_size, const FoldOptions& options) {
  TERN_CHECK((x.dim() == 3 || x.dim() == 4) && x.size(-3) != 0 && x.size(-2) != 0 && x.size(-1) != 0,
             ShapeError,
             "unfold: Expected 3D or 4D (batch mode) tensor for input with possibly 0 batch size and other "
             "non-zero dimensions for input, but got: {}",
             to_string(x.shape()));
  const BlockPlan p = block_plan("unfold", {x.size(-2), x.size(-1)}, kernel_size, options);
  Shape shape(x.shape().begin(), x.shape().end() - 2);
  shape.push_back(p.blocks.h * p.blocks.w);
  TERN_CHECK(!__builtin_mul_overflow(shape[shape.size() - 2], kernel_size.h * kernel_size.w,
                                     &shape[shape.size() - 2]),
             ShapeError, "unfold: blocks of {} channels and ({}, {}) pixels are more than a size can be",
             x.size(-3), kernel_size.h, kernel_size.w);
  return unfolded(p, x, std::move(shape));
}

Tensor fold(const Tensor& x, Size2 output_size, Size2 kernel_size, const FoldOptions& options) {
  TERN_CHECK((x.dim() == 2 || x.dim() == 3) && x.size(-2) != 0 && x.size(-1) != 0, ShapeError,
             "fold: Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
             "dimensions for input, but got: {}",
             to_string(x.shape()));
  TERN_CHECK(output_size.h > 0 && output_size.w > 0, ValueError,
             "fold: output_size should be greater than zero, but got ({}, {})", output_size.h, output_size.w);
  const BlockPlan p = block_plan("fold", output_size, kernel_size, options);
  const int64_t area = kernel_size.h * kernel_size.w;
  TERN_CHECK(x.size(-2) % area == 0, ShapeError,
             "fold: Expected size of input's dimension 1 to be divisible by the product of kernel_size, but "
             "got {} and kernel_size=({}, {})",
             x.size(-2), kernel_size.h, kernel_size.w);
  TERN_CHECK(x.size(-1) == p.blocks.h * p.blocks.w, ShapeError,
             "fold: output_size=({}, {}), kernel_size=({}, {}), dilation=({}, {}), padding=({}, {}), "
             "stride=({}, {}) have {} * {} sliding blocks, but input {} has {} in its last dimension",
             output_size.h, output_size.w, kernel_size.h, kernel_size.w, p.dilation.h, p.dilation.w,
             p.padding.h, p.padding.w, p.stride.h, p.stride.w, p.blocks.h, p.blocks.w, to_string(x.shape()),
             x.size(-1));
  Shape shape(x.shape().begin(), x.shape().end() - 2);
  shape.push_back(x.size(-2) / area);
  shape.push_back(output_size.h);
  shape.push_back(output_size.w);
  return folded_blocks(p, x, std::move(shape));
}

}  // namespace tern
