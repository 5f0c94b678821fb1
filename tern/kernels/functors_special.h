// The element functions of special functions, which are kernels/special.h's. All others are in
// kernels/functors.h.
#pragma once

#include "tern/kernels/functors.h"
#include "tern/kernels/special.h"

namespace tern::functors {

#define TERN_SPECIAL(Name, function)                              \
  template <class C>                                              \
  struct Name : ManySteps {                                       \
    explicit Name(const Param*) {}                                \
    TERN_FN C operator()(C x) const { return math::function(x); } \
  }
TERN_SPECIAL(Lgamma, lgamma);
TERN_SPECIAL(Digamma, digamma);
TERN_SPECIAL(Erfinv, erfinv);
#undef TERN_SPECIAL

/// params: n, and n! with the sign of the result.
template <class C>
struct Polygamma {
  double n, factorial;
  explicit Polygamma(const Param* p) : n(p[0].floating), factorial(p[1].floating) {}
  TERN_FN C operator()(C x) const { return static_cast<C>(math::polygamma(n, factorial, x)); }
  // The first derivative is branch-free.
  TERN_FN bool inside(C) const { return n == 1; }
  TERN_FN C fast(C x) const { return static_cast<C>(math::trigamma(x)); }
};

#define TERN_SPECIAL(Name, function)                                      \
  template <class C>                                                      \
  struct Name {                                                           \
    explicit Name(const Param*) {}                                        \
    TERN_FN C operator()(C a, C b) const { return math::function(a, b); } \
  }
TERN_SPECIAL(Gammainc, gammainc);
TERN_SPECIAL(Gammaincc, gammaincc);
TERN_SPECIAL(Zeta, zeta);
TERN_SPECIAL(StandardGammaGrad, standard_gamma_grad);
#undef TERN_SPECIAL

}  // namespace tern::functors
