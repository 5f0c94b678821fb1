// Quantiles. Medians are in ops/sort.h.
#pragma once

#include <optional>
#include <string_view>

#include "tern/core/tensor.h"

namespace tern {

/// The elements in place q * (n - 1) of the sorted n along `dim`, or of all of them: q is a number or a 0-d
/// or 1-D tensor of x's dtype with numbers in [0, 1]; the results of a 1-D one come first in the shape.
/// Between two places `interpolation` says what is taken: "linear", "lower", "higher", "midpoint" or
/// "nearest" (halves to the even place). NaN if there is one. A tensor q on the CPU is checked, which waits
/// for it. Throws DTypeError unless float32 or float64, ValueError for no elements, for a number out of
/// range, and for another word.
Tensor quantile(const Tensor& x, double q, std::optional<int64_t> dim = {}, bool keepdim = false,
                std::string_view interpolation = "linear");
Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                std::string_view interpolation = "linear");
/// The same of the elements that are not NaN; NaN where there are no others.
Tensor nanquantile(const Tensor& x, double q, std::optional<int64_t> dim = {}, bool keepdim = false,
                   std::string_view interpolation = "linear");
Tensor nanquantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                   std::string_view interpolation = "linear");

}  // namespace tern
