// Running sums, products and extremes along a dimension, differences and integrals.
#pragma once

#include <optional>
#include <utility>

#include "tern/core/tensor.h"

namespace tern {

/// y[i] = x[0] + ... + x[i] along `dim`. Integers and bool give int64; `dtype` converts the elements first.
/// float32 is accumulated in float64, as in PyTorch. Throws IndexError for a dimension that is not there.
Tensor cumsum(const Tensor& x, int64_t dim, std::optional<DType> dtype = {});
/// y[i] = x[0] * ... * x[i] along `dim`; the same rules. The gradient is right where elements are zero.
Tensor cumprod(const Tensor& x, int64_t dim, std::optional<DType> dtype = {});
/// {the largest (smallest) of x[0], ..., x[i] along `dim`, its int64 position}: the last of equal ones; NaN
/// wins. The gradient goes to the elements that were chosen.
std::pair<Tensor, Tensor> cummax(const Tensor& x, int64_t dim);
std::pair<Tensor, Tensor> cummin(const Tensor& x, int64_t dim);
/// y[i] = log(exp(x[0]) + ... + exp(x[i])) along `dim`, without overflow. Throws DTypeError unless floating
/// point.
Tensor logcumsumexp(const Tensor& x, int64_t dim);

/// x[i + 1] - x[i] along `dim`, `n` times over; of bool, where neighbours differ. `prepend` and `append`, if
/// any, are joined to x before. Throws ShapeError for a 0-d tensor, ValueError for n < 0.
Tensor diff(const Tensor& x, int64_t n = 1, int64_t dim = -1, const Tensor& prepend = {},
            const Tensor& append = {});

/// The integral of the samples y along `dim` by the trapezoidal rule: over places x, which has one for each
/// sample, or broadcasts with y; or over places at a distance of dx. Integers give the default dtype. No
/// samples give 0 in y's dtype. Throws DTypeError for bool, ShapeError for places that do not fit.
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
Tensor trapezoid(const Tensor& y, double dx = 1, int64_t dim = -1);
/// The integrals up to each sample but the first.
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
Tensor cumulative_trapezoid(const Tensor& y, double dx = 1, int64_t dim = -1);

}  // namespace tern
