// Sorting along a dimension, and what needs only part of it: topk, kthvalue, median, mode. Quantiles are in
// ops/quantile.h, distinct elements in ops/unique.h.
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

/// The values of sort along dimension 0.
inline Tensor msort(const Tensor& x) { return sort(x, 0).first; }

/// The k largest (smallest) elements along `dim`: {values, int64 indices}, in order when `sorted`, else in
/// any. Throws ValueError ("selected index k out of range") unless 0 <= k <= the size of the dimension,
/// DTypeError for bool.
std::pair<Tensor, Tensor> topk(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true,
                               bool sorted = true);

/// The k-th smallest element (from 1) along `dim`: {values, int64 indices}. Throws ValueError unless
/// 1 <= k <= the size of the dimension, IndexError when that is 0, DTypeError for bool.
std::pair<Tensor, Tensor> kthvalue(const Tensor& x, int64_t k, int64_t dim = -1, bool keepdim = false);

/// The lower median: of n elements the one in place (n - 1) / 2 when sorted; NaN if there is one. The
/// gradient of the whole one is shared by all elements equal to it. No elements give NaN, and for integers
/// PyTorch's stand-in for it: the lowest int64 and int32, else 0. Throws DTypeError for bool.
Tensor median(const Tensor& x);
/// {values, int64 indices} along `dim`. Throws IndexError when the dimension has size 0.
std::pair<Tensor, Tensor> median(const Tensor& x, int64_t dim, bool keepdim = false);

/// The same of the elements that are not NaN; NaN where there are no others.
Tensor nanmedian(const Tensor& x);
std::pair<Tensor, Tensor> nanmedian(const Tensor& x, int64_t dim, bool keepdim = false);

/// The value that occurs most often along `dim`, the smallest of several: {values, int64 indices}, of which
/// each is the last where the value stands. Throws IndexError when the dimension has size 0.
std::pair<Tensor, Tensor> mode(const Tensor& x, int64_t dim = -1, bool keepdim = false);

}  // namespace tern
