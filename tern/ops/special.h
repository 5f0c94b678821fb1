// torch.special: special functions. Those that PyTorch has among the elementary ones too, such as lgamma and
// erf, are in ops/pointwise.h. All take floats and turn integers into the default dtype; operands broadcast.
#pragma once

#include "tern/core/tensor.h"

namespace tern::special {

/// lgamma, digamma, polygamma.
Tensor gammaln(const Tensor& x);
Tensor psi(const Tensor& x);
Tensor digamma(const Tensor& x);
Tensor polygamma(int64_t n, const Tensor& x);
/// The logarithm of the multivariate gamma function of dimension p, for x above (p - 1) / 2.
Tensor multigammaln(const Tensor& x, int64_t p);
/// The regularised lower incomplete gamma function: the share of a gamma variable of shape a that is below x.
/// NaN for negative operands. The gradient is that of both.
Tensor gammainc(const Tensor& a, const Tensor& x);
/// 1 - gammainc(a, x), without loss where that is little.
Tensor gammaincc(const Tensor& a, const Tensor& x);
/// Hurwitz' zeta function, the sum of (q + k)^-x over k from 0. Its gradient is that of q; that of x is not
/// implemented (NotImplementedError).
Tensor zeta(const Tensor& x, const Tensor& q);
Tensor zeta(const Tensor& x, const Scalar& q);
Tensor zeta(const Scalar& x, const Tensor& q);
/// erfinv.
Tensor erfinv(const Tensor& x);
/// The share of a standard normal variable that is below x.
Tensor ndtr(const Tensor& x);
/// -x log(x): 0 at 0, -inf below.
Tensor entr(const Tensor& x);

}  // namespace tern::special
