// NumPy's codes for element types ("f4"), shared by the readers of arrays in pickles and of .npy files.
#pragma once

#include <optional>
#include <string_view>

#include "tern/core/dtype.h"

namespace tern::io {

/// The DType of a code without byte order, such as "f4", "i8", "b1", "c16"; none for text, dates, structures,
/// objects and widths that no DType has.
std::optional<DType> dtype_of_numpy_code(std::string_view code);

/// The code of a DType; empty for those that NumPy lacks (bfloat16, float8, quantized ones).
std::string_view numpy_code(DType dtype) noexcept;

}  // namespace tern::io
