// How the elements of a batch of pictures lie in memory, by PyTorch's names.
#pragma once

#include <cstdint>

#include "tern/core/tensor.h"

namespace tern {

/// Contiguous: row-major. ChannelsLast: as [N, H, W, C], where the shape is [N, C, H, W]; ChannelsLast3d: as
/// [N, D, H, W, C], where it is [N, C, D, H, W]. Preserve: as it is.
enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

/// True where the elements lie so, without gaps. Tensors of one channel, or of one pixel, are of several
/// formats.
bool is_contiguous(const Tensor& x, MemoryFormat format);

/// x with its elements in that order: itself where they are, else a copy. Differentiable. Operators take all
/// formats and choose that of their result themselves, which mostly is row-major. Throws ShapeError where the
/// format is of another rank, ValueError for Preserve.
Tensor contiguous(const Tensor& x, MemoryFormat format);

}  // namespace tern
