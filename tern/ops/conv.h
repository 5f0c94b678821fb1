// Convolutions (cross-correlations, as in PyTorch) in one, two and three dimensions,
// and transposed ones. Sizes are described at Conv2dShape in kernels/conv.h.
// The layers are nn::Conv2d and its kin.
#pragma once

#include <concepts>
#include <string_view>

#include "tern/core/tensor.h"
#include "tern/ops/size3.h"

namespace tern {

/// Zeros around an image: a number for all sides, one for each dimension ({h, w}), "valid" (none) or "same"
/// (as many as keep the size; stride 1 only).
template <class Size>
struct BasicConvPadding {
  enum Mode { kExplicit, kValid, kSame };
  constexpr BasicConvPadding(int all) : size(all) {}
  constexpr BasicConvPadding(int64_t all) : size(all) {}
  template <std::convertible_to<int64_t>... Sizes>
  requires(sizeof...(Sizes) > 1) constexpr BasicConvPadding(Sizes... sizes)
      : size(static_cast<int64_t>(sizes)...) {}
  constexpr BasicConvPadding(Size size_) : size(size_) {}
  /// Throws ValueError for another word.
  BasicConvPadding(const char* word) : BasicConvPadding(std::string_view(word)) {}
  BasicConvPadding(std::string_view word);
  /// "valid", "same", or empty where it is a number.
  std::string_view word() const noexcept;

  Size size;
  Mode mode = kExplicit;
};
using ConvPadding = BasicConvPadding<Size2>;  ///< of sequences too, which use the width
using ConvPadding3d = BasicConvPadding<Size3>;

/// The padding of a convolution in N dimensions.
template <int N>
using ConvPaddingOf = std::conditional_t<N == 3, ConvPadding3d, ConvPadding>;

template <int N>
struct ConvOptions {
  SizeOf<N> stride = 1;
  ConvPaddingOf<N> padding = 0;
  SizeOf<N> dilation = 1;
  int64_t groups = 1;
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

/// x [N, C_in, L] or [C_in, L], weight [C_out, C_in / groups, K].
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv1dOptions& options = {});
/// x [N, C_in, H, W] or [C_in, H, W], weight [C_out, C_in / groups, KH, KW],
/// bias [C_out] or undefined; floats of one dtype. The result is [N, C_out, OH,
/// OW]. Throws ShapeError in PyTorch's words, ValueError for an impossible
/// option.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv2dOptions& options = {});
/// relu(conv2d(...)), and its gradient, with one kernel less each way.
Tensor conv2d_relu(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                   const Conv2dOptions& options = {});
/// x [N, C_in, D, H, W] or [C_in, D, H, W], weight [C_out, C_in / groups, KD, KH, KW]. Computed as conv2d of
/// slices whose channels are those of KD slices of x: that much memory is needed beside the result's.
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv3dOptions& options = {});

template <int N>
struct ConvTransposeOptions {
  SizeOf<N> stride = 1;
  SizeOf<N> padding = 0;
  SizeOf<N> output_padding = 0;
  int64_t groups = 1;
  SizeOf<N> dilation = 1;
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

/// The gradient of conv2d as an operator: x [N, C_in, H, W] or [C_in, H, W],
/// weight [C_in, C_out / groups, KH, KW]; the result is [N, C_out, (H - 1) *
/// stride - 2 * padding + dilation * (KH - 1) + output_padding + 1, ...].
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose2dOptions& options = {});
/// The same for sequences: x [N, C_in, L] or [C_in, L], weight [C_in, C_out / groups, K].
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose1dOptions& options = {});
/// The same for volumes: x [N, C_in, D, H, W] or [C_in, D, H, W], weight [C_in, C_out / groups, KD, KH, KW].
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose3dOptions& options = {});

}  // namespace tern
