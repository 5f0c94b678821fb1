// Counting: how often numbers occur, and how many fall into each of several intervals. None has a gradient.
#pragma once

#include "tern/core/tensor.h"

namespace tern {

/// How often each of 0, 1, ..., max(x) occurs in a 1-D tensor of integers, int64; with `weights`, of x's
/// shape, the sum of its weights, float32 for float32 and float64 for others. At least `minlength` results.
/// Makes the host wait for the largest number. Throws ShapeError, DTypeError, ValueError for negative
/// numbers.
Tensor bincount(const Tensor& x, const Tensor& weights = {}, int64_t minlength = 0);

/// How many elements lie in each of `bins` equal intervals from min to max, both included, in x's dtype;
/// others, and NaN, are not counted. When both are equal, those of the elements are taken, which makes the
/// host wait. Throws DTypeError unless floating point, ValueError unless bins > 0, min <= max and both
/// finite.
Tensor histc(const Tensor& x, int64_t bins = 100, double min = 0, double max = 0);

}  // namespace tern
