// Convolutions of volumes, as those of images (conv.cpp): the slices of x that one slice of the result is
// made of become its channels. Laying slices side by side and its adjoint are each other's gradients.
#include "tern/autograd/arithmetic.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/conv.h"
#include "tern/ops/conv_checks.h"
#include "tern/ops/copy.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

using namespace detail;

using Sizes3 = std::array<int64_t, 3>;

/// Which slices of `in` meet which of `out`: o * stride - padding + k * dilation, where there is one.
struct DepthWindows {
  int64_t batch, in, out, kernel, stride, padding, dilation;

  bool is_plain() const { return kernel == 1 && stride == 1 && padding == 0 && in == out; }
  /// The first slice of `in` with tap k for the slice `o`, maybe outside.
  int64_t at(int64_t o, int64_t k) const { return o * stride - padding + k * dilation; }
};

/// The slices of the result that have a slice of x at tap k.
struct TapRange {
  int64_t first, count;

  TapRange(const DepthWindows& s, int64_t k) {
    const int64_t before = -s.at(0, k);  // slices of padding before the first one of x
    first = std::min(s.out, before > 0 ? (before + s.stride - 1) / s.stride : 0);
    const int64_t room = s.in - 1 + before;
    const int64_t end = room < 0 ? first : std::min(s.out, room / s.stride + 1);
    count = std::max<int64_t>(0, end - first);
  }
};

/// The slices of `x` [N, in, ...] that tap k of the range meets.
Tensor slices_at(const DepthWindows& s, const Tensor& x, const TapRange& range, int64_t k) {
  const int64_t start = s.at(range.first, k);
  return slice(x, 1, start, start + (range.count - 1) * s.stride + 1, s.stride);
}

Tensor scatter_depth(const DepthWindows& s, const Tensor& patches);

/// [N, C, in, H, W] to [N * out, C * kernel, H, W], with zeros beyond the ends.
Tensor gather_depth(const DepthWindows& s, const Tensor& x) {
  const int64_t channels = x.size(1), h = x.size(3), w = x.size(4);
  const Shape shape{s.batch * s.out, channels * s.kernel, h, w};
  if (s.is_plain()) return reshape(transpose(x, 1, 2), shape);
  const Tensor y = empty_of(shape, x);
  {
    const NoGradGuard no_grad;
    const Tensor taps = view(y, {s.batch, s.out, channels, s.kernel, h, w}), source = transpose(x, 1, 2);
    for (int64_t k = 0; k < s.kernel && y.numel() != 0; ++k) {
      const Tensor tap = select(taps, 3, k);
      const TapRange range(s, k);
      const int64_t end = range.first + range.count;
      if (range.first > 0) fill_elements(narrow(tap, 1, 0, range.first), 0);
      if (end < s.out) fill_elements(narrow(tap, 1, end, s.out - end), 0);
      if (range.count > 0)
        copy_elements(narrow(tap, 1, range.first, range.count), slices_at(s, source, range, k));
    }
  }
  if (tracks_grad(x))
    record("conv3d_gather", y, {x}, [s](GradContext&, const Tensor& g) { return scatter_depth(s, g); });
  return y;
}

/// The adjoint: [N * out, C * kernel, H, W] to the sums of what lies on one slice, [N, C, in, H, W].
Tensor scatter_depth(const DepthWindows& s, const Tensor& patches) {
  const int64_t channels = patches.size(1) / s.kernel, h = patches.size(2), w = patches.size(3);
  if (s.is_plain()) return transpose(reshape(patches, {s.batch, s.out, channels, h, w}), 1, 2);
  const Tensor y = filled({s.batch, channels, s.in, h, w}, patches.dtype(), patches.device(), 0);
  {
    const NoGradGuard no_grad;
    const Tensor taps = view(contiguous(patches), {s.batch, s.out, channels, s.kernel, h, w}),
                 target = transpose(y, 1, 2);
    for (int64_t k = 0; k < s.kernel && y.numel() != 0; ++k) {
      const TapRange range(s, k);
      if (range.count > 0)
        accumulate_into(slices_at(s, target, range, k),
                        narrow(select(taps, 3, k), 1, range.first, range.count));
    }
  }
  if (tracks_grad(patches))
    record("conv3d_scatter", y, {patches}, [s](GradContext&, const Tensor& g) { return gather_depth(s, g); });
  return y;
}

/// Tap and channel as one: the weight of an image.
Tensor image_weight(const Tensor& weight) {
  return reshape(weight, {weight.size(0), weight.size(1) * weight.size(2), weight.size(3), weight.size(4)});
}

Sizes3 volume_of(const Tensor& x) { return {x.size(2), x.size(3), x.size(4)}; }

}  // namespace

Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv3dOptions& o) {
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(conv3d, x, weight, bias, o);
  const char* op = "conv3d";
  check_conv_tensors(op, 3, x, weight, bias);
  check_conv_options(op, sizes_of(o.stride), sizes_of(o.padding.size), sizes_of(o.dilation), o.groups);
  if (x.dim() == 4) return squeeze(conv3d(unsqueeze(x, 0), weight, bias, o), 0);
  check_conv_channels(op, x, weight, bias, o.groups);
  const bool same = o.padding.mode == ConvPadding3d::kSame;
  if (same) check_same_padding(op, sizes_of(o.stride));
  const Sizes3 in = volume_of(x), kernel = volume_of(weight), stride = sizes_of(o.stride),
               dilation = sizes_of(o.dilation), padding = sizes_of(o.padding.size);
  check_conv_kernel(op, weight);
  Sizes3 padded, reach, out;
  for (size_t d = 0; d < 3; ++d) {
    reach[d] = dilation[d] * (kernel[d] - 1) + 1;
    padded[d] = same ? in[d] + reach[d] - 1 : in[d] + 2 * padding[d];
    out[d] = padded[d] < reach[d] ? 0 : (padded[d] - reach[d]) / stride[d] + 1;
  }
  check_conv_sizes(op, padded, reach, in, out);
  const DepthWindows s{.batch = x.size(0),
                       .in = in[0],
                       .out = out[0],
                       .kernel = kernel[0],
                       .stride = stride[0],
                       .padding = same ? (reach[0] - 1) / 2 : padding[0],
                       .dilation = dilation[0]};
  const Conv2dOptions of_slices{.stride = {stride[1], stride[2]},
                                .padding = same ? ConvPadding("same") : ConvPadding(padding[1], padding[2]),
                                .dilation = {dilation[1], dilation[2]},
                                .groups = o.groups};
  const Tensor y = conv2d(gather_depth(s, x), image_weight(weight), bias, of_slices);
  return contiguous(transpose(reshape(y, {s.batch, out[0], y.size(1), out[1], out[2]}), 1, 2));
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose3dOptions& o) {
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(conv_transpose3d, x, weight, bias, o);
  const char* op = "conv_transpose3d";
  check_conv_tensors(op, 3, x, weight, bias);
  check_conv_options(op, sizes_of(o.stride), sizes_of(o.padding), sizes_of(o.dilation), o.groups);
  if (x.dim() == 4) return squeeze(conv_transpose3d(unsqueeze(x, 0), weight, bias, o), 0);
  check_conv_transpose_channels(op, x, weight, bias, o.groups);
  check_output_padding(op, sizes_of(o.output_padding), sizes_of(o.stride), sizes_of(o.dilation));
  const Sizes3 in = volume_of(x), kernel = volume_of(weight), stride = sizes_of(o.stride),
               dilation = sizes_of(o.dilation), padding = sizes_of(o.padding),
               more = sizes_of(o.output_padding);
  Sizes3 out;
  for (size_t d = 0; d < 3; ++d)
    out[d] = (in[d] - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel[d] - 1) + more[d] + 1;
  check_conv_transpose_sizes(op, in, kernel, out);
  const DepthWindows s{.batch = x.size(0),
                       .in = out[0],
                       .out = in[0],
                       .kernel = kernel[0],
                       .stride = stride[0],
                       .padding = padding[0],
                       .dilation = dilation[0]};
  const Tensor slices = reshape(transpose(x, 1, 2), {s.batch * s.out, x.size(1), in[1], in[2]});
  const Tensor parts = conv_transpose2d(slices, image_weight(weight), {},
                                        {.stride = {stride[1], stride[2]},
                                         .padding = {padding[1], padding[2]},
                                         .output_padding = {more[1], more[2]},
                                         .groups = o.groups,
                                         .dilation = {dilation[1], dilation[2]}});
  const Tensor y = contiguous(scatter_depth(s, parts));
  return bias.defined() ? add(y, reshape(bias, {-1, 1, 1, 1})) : y;
}

}  // namespace tern
