// Reductions: sums, products, extremes, truth, moments, norms. Softmax and logsumexp are in ops/softmax.h,
// running sums in ops/scan.h, sorting, median and topk in ops/sort.h. Names, results and dtypes are
// PyTorch's.
//
// Common rules. `dims` may be negative (counted from the end) and in any order; an empty list means all
// dimensions, unless said. A 0-d tensor takes dimension 0 or -1. The reduced dimensions vanish, or stay with
// size 1 with `keepdim`. Throws IndexError for a dimension that is not there, ValueError for one named twice.
// Nothing here blocks the host. Sums are pairwise: their error grows with the logarithm of the number of
// terms. They do not depend on the number of threads.
#pragma once

#include <concepts>
#include <optional>
#include <utility>

#include "tern/core/tensor.h"

namespace tern {

/// A dtype, or none, given by itself: an empty list `{}` is a list of dimensions.
template <class T>
concept GivenDType = std::same_as<T, DType> || std::same_as<T, std::optional<DType>>;

/// Sum of all elements. Integers and bool give int64; `dtype` converts the elements first. No elements give
/// 0.
Tensor sum(const Tensor& x);
Tensor sum(const Tensor& x, IntArrayRef dims, bool keepdim = false, std::optional<DType> dtype = {});
Tensor sum(const Tensor& x, GivenDType auto dtype) { return sum(x, IntArrayRef(), /*keepdim=*/false, dtype); }
Tensor sum(const Tensor& x, Dimension auto dim, bool keepdim = false, std::optional<DType> dtype = {}) {
  return sum(x, IntArrayRef{static_cast<int64_t>(dim)}, keepdim, dtype);
}

/// Mean; NaN for no elements. Throws DTypeError unless the elements, or `dtype`, are floating point.
Tensor mean(const Tensor& x);
Tensor mean(const Tensor& x, IntArrayRef dims, bool keepdim = false, std::optional<DType> dtype = {});
Tensor mean(const Tensor& x, GivenDType auto dtype) {
  return mean(x, IntArrayRef(), /*keepdim=*/false, dtype);
}
Tensor mean(const Tensor& x, Dimension auto dim, bool keepdim = false, std::optional<DType> dtype = {}) {
  return mean(x, IntArrayRef{static_cast<int64_t>(dim)}, keepdim, dtype);
}

/// Sum and mean of the elements that are not NaN.
Tensor nansum(const Tensor& x, IntArrayRef dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor nansum(const Tensor& x, Dimension auto dim, bool keepdim = false, std::optional<DType> dtype = {}) {
  return nansum(x, IntArrayRef{static_cast<int64_t>(dim)}, keepdim, dtype);
}
Tensor nanmean(const Tensor& x, IntArrayRef dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor nanmean(const Tensor& x, Dimension auto dim, bool keepdim = false, std::optional<DType> dtype = {}) {
  return nanmean(x, IntArrayRef{static_cast<int64_t>(dim)}, keepdim, dtype);
}

/// Product; the dtype rules of sum. No elements give 1. The gradient is right where elements are zero.
Tensor prod(const Tensor& x, std::optional<DType> dtype = {});
Tensor prod(const Tensor& x, int64_t dim, bool keepdim = false, std::optional<DType> dtype = {});

/// The largest and the smallest of all elements, NaN if there is one. The gradient is shared evenly by all
/// equal ones. Throws ValueError when there are no elements.
Tensor max(const Tensor& x);
Tensor min(const Tensor& x);
/// {values, int64 indices} along one dimension: of equal ones the first, NaN before all. The gradient goes to
/// that index. Throws IndexError when the dimension has size 0.
std::pair<Tensor, Tensor> max(const Tensor& x, int64_t dim, bool keepdim = false);
std::pair<Tensor, Tensor> min(const Tensor& x, int64_t dim, bool keepdim = false);

/// Extremes over several dimensions; the gradient is shared evenly by all equal ones.
/// Throws IndexError for a dimension of size 0, ValueError when all dimensions are meant and there are no
/// elements.
Tensor amax(const Tensor& x, IntArrayRef dims = {}, bool keepdim = false);
Tensor amin(const Tensor& x, IntArrayRef dims = {}, bool keepdim = false);
Tensor amax(const Tensor& x, Dimension auto dim, bool keepdim = false) {
  return amax(x, IntArrayRef{static_cast<int64_t>(dim)}, keepdim);
}
Tensor amin(const Tensor& x, Dimension auto dim, bool keepdim = false) {
  return amin(x, IntArrayRef{static_cast<int64_t>(dim)}, keepdim);
}
/// {amin, amax} over all elements, or along one dimension.
std::pair<Tensor, Tensor> aminmax(const Tensor& x);
std::pair<Tensor, Tensor> aminmax(const Tensor& x, int64_t dim, bool keepdim = false);

/// int64 position of the extreme, in the flattened tensor or along a dimension: of equal ones the first, NaN
/// before all. Throws DTypeError for bool, IndexError when there is nothing to choose from.
Tensor argmax(const Tensor& x);
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim = false);
Tensor argmin(const Tensor& x);
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim = false);

/// True where any (all) elements are not zero; NaN is not zero. Bool, but uint8 for uint8. In these two an
/// empty list of dimensions reduces nothing, as in PyTorch.
Tensor any(const Tensor& x);
Tensor any(const Tensor& x, IntArrayRef dims, bool keepdim = false);
Tensor any(const Tensor& x, Dimension auto dim, bool keepdim = false) {
  return any(x, IntArrayRef{static_cast<int64_t>(dim)}, keepdim);
}
Tensor all(const Tensor& x);
Tensor all(const Tensor& x, IntArrayRef dims, bool keepdim = false);
Tensor all(const Tensor& x, Dimension auto dim, bool keepdim = false) {
  return all(x, IntArrayRef{static_cast<int64_t>(dim)}, keepdim);
}

/// int64 number of elements that are not zero.
Tensor count_nonzero(const Tensor& x, IntArrayRef dims = {});
Tensor count_nonzero(const Tensor& x, Dimension auto dim) {
  return count_nonzero(x, IntArrayRef{static_cast<int64_t>(dim)});
}

/// sum((x - mean)^2) / max(0, n - correction). A bool in the place of `correction` works as PyTorch's
/// `unbiased`. Throws DTypeError unless floating point.
Tensor var(const Tensor& x, IntArrayRef dims, double correction = 1, bool keepdim = false);
Tensor var(const Tensor& x, Dimension auto dim, double correction = 1, bool keepdim = false) {
  return var(x, IntArrayRef{static_cast<int64_t>(dim)}, correction, keepdim);
}
inline Tensor var(const Tensor& x) { return var(x, IntArrayRef()); }
inline Tensor var(const Tensor& x, std::same_as<bool> auto unbiased) {
  return var(x, IntArrayRef(), unbiased ? 1 : 0);
}

/// The square root of var. Its gradient is 0 where it is 0.
Tensor std(const Tensor& x, IntArrayRef dims, double correction = 1, bool keepdim = false);
Tensor std(const Tensor& x, Dimension auto dim, double correction = 1, bool keepdim = false) {
  return std(x, IntArrayRef{static_cast<int64_t>(dim)}, correction, keepdim);
}
inline Tensor std(const Tensor& x) { return std(x, IntArrayRef()); }
inline Tensor std(const Tensor& x, std::same_as<bool> auto unbiased) {
  return std(x, IntArrayRef(), unbiased ? 1 : 0);
}

/// {var, mean} and {std, mean} in one pass.
std::pair<Tensor, Tensor> var_mean(const Tensor& x, IntArrayRef dims = {}, double correction = 1,
                                   bool keepdim = false);
std::pair<Tensor, Tensor> std_mean(const Tensor& x, IntArrayRef dims = {}, double correction = 1,
                                   bool keepdim = false);

/// Covariances of variables, one for each row of x, over observations, one for each column; [n, n], or 0-d
/// for one variable, which a vector is too. `fweights` (integers) say how often each observation was made,
/// `aweights` (floats) how much it weighs; weights make the host wait, to check them. Integers give the
/// default dtype. Throws DTypeError for bool and weights of the wrong kind, ShapeError for more than two
/// dimensions and weights of another size, ValueError for negative ones and those that add up to 0.
Tensor cov(const Tensor& x, int64_t correction = 1, const Tensor& fweights = {}, const Tensor& aweights = {});
/// Pearson's correlations: covariances divided by both standard deviations, in [-1, 1].
Tensor corrcoef(const Tensor& x);

/// The vector norm (sum |x|^p)^(1/p): p = inf the largest |x|, -inf the smallest, 0 the number of elements
/// that are not 0. The gradient of norm 0 is 0. Throws DTypeError unless floating point, or when `dtype` is
/// narrower than the input; ValueError for no elements and p < 0 or p = inf.
Tensor norm(const Tensor& x, double p = 2);
Tensor norm(const Tensor& x, double p, IntArrayRef dims, bool keepdim = false,
            std::optional<DType> dtype = {});
Tensor norm(const Tensor& x, double p, Dimension auto dim, bool keepdim = false,
            std::optional<DType> dtype = {}) {
  return norm(x, p, IntArrayRef{static_cast<int64_t>(dim)}, keepdim, dtype);
}

}  // namespace tern
