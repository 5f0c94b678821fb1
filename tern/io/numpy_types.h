// NumPy's codes for element types ("f4") and arrays whose elements are no numbers here, shared by the readers
// of arrays in pickles and of .npy files.
#pragma once

#include <optional>
#include <string_view>

#include "tern/core/dtype.h"
#include "tern/io/value.h"

namespace tern::io {

/// The DType of a code without byte order, such as "f4", "i8", "b1", "c16"; none for text, dates, structures,
/// objects and widths that no DType has.
std::optional<DType> dtype_of_numpy_code(std::string_view code);

/// The code of a DType; empty for those that NumPy lacks (bfloat16, float8, quantized ones).
std::string_view numpy_code(DType dtype) noexcept;

/// The code without the sign of its byte order: "f4" of "<f4".
std::string_view without_byte_order(std::string_view code) noexcept;

/// True for a code without byte order of elements that no DType has: text ("U3", "S3"), dates ("M8",
/// "m8[ns]"), structures ("V12"), objects ("O"), and numbers wider than any DType ("f16", "c32").
bool is_opaque_numpy_code(std::string_view code) noexcept;

/// What a pickle has for an array of such elements: numpy.core.multiarray._reconstruct with the state (1,
/// shape, dtype, column_major, data). `dtype` is an object of numpy.dtype, or what it is made of: a code,
/// which may begin with the byte order, or the dict of a structure's fields. `data` are its bytes.
Value opaque_array(Value dtype, const Shape& shape, bool column_major, Value data);

}  // namespace tern::io
