// Padding: more elements around the last dimensions, or fewer. The layers are nn::ReflectionPad2d and its
// kin.
#pragma once

#include <string_view>

#include "tern/core/scalar.h"
#include "tern/core/tensor.h"

namespace tern {

/// x with elements before and after its last dimensions: `padding` is {before, after} of the last one, then
/// of the one before it, and so on. Negative numbers take elements away. What is added is, by `mode`,
/// - "constant": `value`; any number of dimensions;
/// - "reflect": x mirrored at its first and last element, which are not repeated; less than x's size;
/// - "replicate": the first and the last element;
/// - "circular": x from its other end; at most x's size.
/// All but "constant" take the last one, two or three dimensions of an x with one or two more ([C, L] and
/// [N, C, L] for sequences). Throws ShapeError in PyTorch's words, ValueError for another mode.
Tensor pad(const Tensor& x, IntArrayRef padding, std::string_view mode = "constant", const Scalar& value = 0);

}  // namespace tern
