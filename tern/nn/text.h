// Python's way to write values, for the text that modules print. Internal to nn.
#pragma once

#include <string>
#include <string_view>

#include "tern/core/shape.h"

namespace tern::nn {

/// "0.5", "1e-05", "1.0".
std::string python_text(double value);
/// "True", "False".
std::string python_text(bool value);
/// "(2, 3)", "(5,)".
std::string python_tuple(IntArrayRef values);
/// "torch.Size([2, 3])".
std::string size_text(IntArrayRef shape);
/// Indents all lines but the first by two blanks.
std::string indent_rest(std::string_view text);

}  // namespace tern::nn
