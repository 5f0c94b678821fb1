// Sliding blocks of images as columns, and their sum back to images (im2col and col2im).
#pragma once

#include "tern/core/tensor.h"
#include "tern/ops/size2.h"

namespace tern {

/// Where the blocks lie.
struct FoldOptions {
  Size2 dilation = 1;
  Size2 padding = 0;  ///< zeros on all sides
  Size2 stride = 1;
};

/// The blocks of x [N, C, H, W] or [C, H, W] as columns [N, C * kH * kW, blocks] or [C * kH * kW, blocks], as
/// torch.nn.functional.unfold. Throws ShapeError where no block fits.
Tensor unfold(const Tensor& x, Size2 kernel_size, const FoldOptions& options = {});
/// The sum of blocks [N, C * kH * kW, blocks] or [C * kH * kW, blocks], each at its place, as images
/// [N, C, H, W] or [C, H, W] of output_size; the gradient of unfold. Throws ShapeError for another number of
/// blocks than those images have.
Tensor fold(const Tensor& x, Size2 output_size, Size2 kernel_size, const FoldOptions& options = {});

}  // namespace tern
