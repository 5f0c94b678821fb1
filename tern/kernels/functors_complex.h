// The element functions of complex numbers, written once and compiled for every backend. Z is std::complex or
// what the tool chain has like it on a GPU, whose elementary functions are found by the argument. Lists and
// names are in kernels/complex.h.
#pragma once

#include <cmath>
#include <type_traits>

#include "tern/kernels/target.h"
#include "tern/kernels/trigonometry.h"

namespace tern::complex_functors {

template <class Z>
using Part = typename Z::value_type;

/// a / b, by the larger part of b, so that squares of it neither overflow nor vanish.
template <class Z>
TERN_FN Z quotient(const Z& a, const Z& b) {
  using T = Part<Z>;
  const T re = b.real() < 0 ? -b.real() : b.real(), im = b.imag() < 0 ? -b.imag() : b.imag();
  const T scale = T(1) / (re > im ? re : im);
  const T c = b.real() * scale, d = b.imag() * scale, size = c * c + d * d;
  return Z((a.real() * scale * c + a.imag() * scale * d) / size,
           (a.imag() * scale * c - a.real() * scale * d) / size);
}

/// |x|: of floats by squares in double, which do not overflow and which compilers vectorise.
template <class Z>
TERN_FN Part<Z> magnitude(const Z& x) {
  if constexpr (sizeof(Part<Z>) == 4) {
    const double re = static_cast<double>(x.real()), im = static_cast<double>(x.imag());
    const auto size = static_cast<float>(std::sqrt(re * re + im * im));
    const float infinite = INFINITY;
    const bool is_infinite =
        (x.real() == infinite) | (x.real() == -infinite) | (x.imag() == infinite) | (x.imag() == -infinite);
    return is_infinite ? infinite : size;
  } else {
    return std::hypot(x.real(), x.imag());
  }
}

template <class Z>
struct Abs {
  TERN_FN Part<Z> operator()(const Z& x) const { return magnitude(x); }
};
template <class Z>
struct Angle {
  TERN_FN Part<Z> operator()(const Z& x) const { return math::atan2(x.imag(), x.real()); }
};
template <class Z>
struct Conj {
  TERN_FN Z operator()(const Z& x) const { return Z(x.real(), -x.imag()); }
};
template <class Z>
struct Sgn {
  TERN_FN Z operator()(const Z& x) const {
    const Part<Z> size = magnitude(x);
    return size == 0 ? Z(0, 0) : Z(x.real() / size, x.imag() / size);
  }
};
template <class Z>
struct Reciprocal {
  TERN_FN Z operator()(const Z& x) const { return quotient(Z(1, 0), x); }
};
/// e^x - 1, without loss for small x: e^a cos b - 1 = (e^a - 1) cos b - 2 sin^2(b / 2).
template <class Z>
struct Expm1 {
  TERN_FN Z operator()(const Z& x) const {
    const Part<Z> a = std::expm1(x.real()), half = std::sin(x.imag() / 2);
    return Z(a * std::cos(x.imag()) - 2 * half * half, (a + 1) * std::sin(x.imag()));
  }
};
/// log(1 + x), without loss for small x: |1 + x|^2 - 1 = a (2 + a) + b^2.
template <class Z>
struct Log1p {
  TERN_FN Z operator()(const Z& x) const {
    using T = Part<Z>;
    const T a = x.real(), b = x.imag(), angle = std::atan2(b, a + 1);
    const bool small = a < T(0.5) && a > T(-0.5) && b < T(0.5) && b > T(-0.5);
    return Z(small ? std::log1p(a * (2 + a) + b * b) / 2 : std::log(std::hypot(a + 1, b)), angle);
  }
};
template <class Z>
struct Sigmoid {
  TERN_FN Z operator()(const Z& x) const {
    const Z e = exp(Z(-x.real(), -x.imag()));
    return quotient(Z(1, 0), Z(1 + e.real(), e.imag()));
  }
};

#define TERN_COMPLEX_FUNCTION(Name, function)                      \
  template <class Z>                                               \
  struct Name {                                                    \
    TERN_FN Z operator()(const Z& x) const { return function(x); } \
  }
TERN_COMPLEX_FUNCTION(Sqrt, sqrt);
TERN_COMPLEX_FUNCTION(Exp, exp);
TERN_COMPLEX_FUNCTION(Log, log);
TERN_COMPLEX_FUNCTION(Sin, sin);
TERN_COMPLEX_FUNCTION(Cos, cos);
TERN_COMPLEX_FUNCTION(Tan, tan);
TERN_COMPLEX_FUNCTION(Asin, asin);
TERN_COMPLEX_FUNCTION(Acos, acos);
TERN_COMPLEX_FUNCTION(Atan, atan);
TERN_COMPLEX_FUNCTION(Sinh, sinh);
TERN_COMPLEX_FUNCTION(Cosh, cosh);
TERN_COMPLEX_FUNCTION(Tanh, tanh);
TERN_COMPLEX_FUNCTION(Asinh, asinh);
TERN_COMPLEX_FUNCTION(Acosh, acosh);
TERN_COMPLEX_FUNCTION(Atanh, atanh);
#undef TERN_COMPLEX_FUNCTION

template <class Z>
struct Mul {
  TERN_FN Z operator()(const Z& a, const Z& b) const {
    return Z(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  }
};
template <class Z>
struct MulConj {
  TERN_FN Z operator()(const Z& a, const Z& b) const {
    return Z(a.real() * b.real() + a.imag() * b.imag(), a.imag() * b.real() - a.real() * b.imag());
  }
};
template <class Z>
struct Div {
  TERN_FN Z operator()(const Z& a, const Z& b) const { return quotient(a, b); }
};
/// exp(b log a); 0^0 is 1, and 0 to a power with a positive real part is 0.
template <class Z>
struct Pow {
  TERN_FN Z operator()(const Z& a, const Z& b) const {
    if (b.real() == 0 && b.imag() == 0) return Z(1, 0);
    if (a.real() == 0 && a.imag() == 0 && b.real() > 0) return Z(0, 0);
    return exp(Mul<Z>()(b, log(a)));
  }
};

}  // namespace tern::complex_functors
