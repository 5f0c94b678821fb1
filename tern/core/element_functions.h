// The functions of one number that Tensor has as methods in both forms: `x.sin()`, and `x.sin_()` in place.
#pragma once

#define TERN_ELEMENT_FUNCTIONS(X) \
  X(neg)                          \
  X(abs)                          \
  X(sign)                         \
  X(square)                       \
  X(floor)                        \
  X(ceil)                         \
  X(round)                        \
  X(trunc)                        \
  X(frac)                         \
  X(exp)                          \
  X(expm1)                        \
  X(exp2)                         \
  X(log)                          \
  X(log1p)                        \
  X(log2)                         \
  X(log10)                        \
  X(sqrt)                         \
  X(rsqrt)                        \
  X(reciprocal)                   \
  X(sin)                          \
  X(cos)                          \
  X(tan)                          \
  X(asin)                         \
  X(acos)                         \
  X(atan)                         \
  X(sinh)                         \
  X(cosh)                         \
  X(tanh)                         \
  X(asinh)                        \
  X(acosh)                        \
  X(atanh)                        \
  X(erf)                          \
  X(erfc)                         \
  X(erfinv)                       \
  X(lgamma)                       \
  X(digamma)                      \
  X(sinc)                         \
  X(deg2rad)                      \
  X(rad2deg)                      \
  X(sigmoid)                      \
  X(relu)                         \
  X(bitwise_not)
