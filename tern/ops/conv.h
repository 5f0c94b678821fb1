// Convolutions (cross-correlations, as in PyTorch) in one and two dimensions,
// and transposed ones. Sizes are described at Conv2dShape in kernels/conv.h.
// The layers are nn::Conv2d and its kin.
#pragma once

#include <string_view>

#include "tern/core/tensor.h"
#include "tern/ops/size2.h"

namespace tern {

/// Zeros around an image: a number for all sides, {h, w}, "valid" (none) or
/// "same" (as many as keep the size; stride 1 only).
struct ConvPadding {
  enum Mode { kExplicit, kValid, kSame };
  constexpr ConvPadding(int both) : size(both) {}
  constexpr ConvPadding(int64_t both) : size(both) {}
  constexpr ConvPadding(int64_t h, int64_t w) : size(h, w) {}
  constexpr ConvPadding(Size2 size_) : size(size_) {}
  /// Throws ValueError for another word.
  ConvPadding(const char* word) : ConvPadding(std::string_view(word)) {}
  ConvPadding(std::string_view word);
  /// "valid", "same", or empty where it is a number.
  std::string_view word() const noexcept;

  Size2 size;
  Mode mode = kExplicit;
};

struct Conv2dOptions {
  Size2 stride = 1;
  ConvPadding padding = 0;
  Size2 dilation = 1;
  int64_t groups = 1;
};

/// x [N, C_in, H, W] or [C_in, H, W], weight [C_out, C_in / groups, KH, KW],
/// bias [C_out] or undefined; floats of one dtype. The result is [N, C_out, OH,
/// OW]. Throws ShapeError in PyTorch's words, ValueError for an impossible
/// option.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv2dOptions& options = {});
/// relu(conv2d(...)), and its gradient, with one kernel less each way.
Tensor conv2d_relu(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                   const Conv2dOptions& options = {});

struct Conv1dOptions {
  int64_t stride = 1;
  ConvPadding padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
};

/// x [N, C_in, L] or [C_in, L], weight [C_out, C_in / groups, K].
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv1dOptions& options = {});

struct ConvTranspose2dOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 output_padding = 0;
  int64_t groups = 1;
  Size2 dilation = 1;
};

/// The gradient of conv2d as an operator: x [N, C_in, H, W] or [C_in, H, W],
/// weight [C_in, C_out / groups, KH, KW]; the result is [N, C_out, (H - 1) *
/// stride - 2 * padding + dilation * (KH - 1) + output_padding + 1, ...].
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose2dOptions& options = {});

struct ConvTranspose1dOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t output_padding = 0;
  int64_t groups = 1;
  int64_t dilation = 1;
};

/// The same for sequences: x [N, C_in, L] or [C_in, L], weight [C_in, C_out / groups, K].
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose1dOptions& options = {});

}  // namespace tern
