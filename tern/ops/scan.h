// Running sums and products along a dimension.
#pragma once

#include <optional>

#include "tern/core/tensor.h"

namespace tern {

/// y[i] = x[0] + ... + x[i] along `dim`. Integers and bool give int64; `dtype` converts the elements first.
/// float32 is accumulated in float64, as in PyTorch. Throws IndexError for a dimension that is not there.
Tensor cumsum(const Tensor& x, int64_t dim, std::optional<DType> dtype = {});
/// y[i] = x[0] * ... * x[i] along `dim`; the same rules. The gradient is right where elements are zero.
Tensor cumprod(const Tensor& x, int64_t dim, std::optional<DType> dtype = {});

}  // namespace tern
