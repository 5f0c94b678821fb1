// Sorting along a dimension, and what needs only part of it: topk, median.
// NaN counts as larger than every number and -0 as equal to 0. Equal elements keep their order.
#pragma once

#include <optional>
#include <utility>

#include "tern/core/tensor.h"

namespace tern {

/// {values, int64 indices} in ascending or descending order along `dim`. Always stable.
std::pair<Tensor, Tensor> sort(const Tensor& x, int64_t dim = -1, bool descending = false);
/// The indices of sort.
Tensor argsort(const Tensor& x, int64_t dim = -1, bool descending = false);

/// The k largest (smallest) elements along `dim`: {values, int64 indices}, in order when `sorted`, else in
/// any. Throws ValueError ("selected index k out of range") unless 0 <= k <= the size of the dimension,
/// DTypeError for bool.
std::pair<Tensor, Tensor> topk(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true,
                               bool sorted = true);

/// The lower median: of n elements the one in place (n - 1) / 2 when sorted; NaN if there is one. The
/// gradient of the whole one is shared by all elements equal to it. No elements give NaN, and for integers
/// PyTorch's stand-in for it: the lowest int64 and int32, else 0. Throws DTypeError for bool.
Tensor median(const Tensor& x);
/// {values, int64 indices} along `dim`. Throws IndexError when the dimension has size 0.
std::pair<Tensor, Tensor> median(const Tensor& x, int64_t dim, bool keepdim = false);

}  // namespace tern
