// Special functions for element functors: the gamma function's logarithm and its derivatives, the incomplete
// gamma functions, Hurwitz' zeta function, the inverse error function, Bessel functions. Floats are computed
// in double, where the cancellations near zeros of these functions cost nothing that a float holds.
#pragma once

#include <cmath>
#include <limits>
#include <utility>

#include "tern/kernels/math.h"
#include "tern/kernels/trigonometry.h"

namespace tern::math {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kPiDouble = 3.14159265358979323846;

/// Value of a polynomial whose coefficients stand from the highest power to the lowest. A fold in place of a
/// loop, so that loops over elements are vectorised.
template <class... Rest>
TERN_FN double horner(double x, double first, Rest... rest) {
  double y = first;
  ((y = y * x + rest), ...);
  return y;
}

/// x less its nearest integer, in [-1/2, 1/2].
TERN_FN double from_nearest_integer(double x) {
  const double nearest =
      x + 6755399441055744.0 - 6755399441055744.0;  // adding 1.5 * 2^52 rounds to an integer
  return x < 4503599627370496.0 && x > -4503599627370496.0 ? x - nearest : 0.0;
}

// ---- the gamma function
// -------------------------------------------------------------------------------------------------

/// From here on Stirling's series holds to double's precision; smaller numbers are moved by the recurrence.
inline constexpr double kStirling = 8;

/// log(Gamma(x)) - ((x - 1/2) log x - x + log(2 pi) / 2) for x of at least 8: Stirling's series
/// (DLMF 5.11.1).
TERN_FN double stirling_rest(double x) {
  const double inverse = 1 / x;
  return horner(inverse * inverse, 6.4102564102564102564e-3, -1.9175269175269175269e-3,
                8.4175084175084175084e-4, -5.9523809523809523810e-4, 7.9365079365079365079e-4,
                -2.7777777777777777778e-3, 8.3333333333333333333e-2) *
         inverse;
}

/// A number of at least 8 and what leads there: x + moved = large, and the product of the numbers on the way
/// with its derivative.
struct MovedUp {
  double large, product, slope;
};
template <int... kSteps>
TERN_FN MovedUp moved_up(double x, std::integer_sequence<int, kSteps...>) {
  double product = 1, slope = 0;
  ((slope = slope * (x + kSteps) + product, product *= x + kSteps), ...);
  const bool moves = x < kStirling;
  return {moves ? x + kStirling : x, moves ? product : 1.0, moves ? slope : 0.0};
}
using EightSteps = std::make_integer_sequence<int, 8>;

/// log |Gamma(x)| within 1e-14 (absolutely, where it is small), branch-free.
TERN_FN double lgamma_near(double x) {
  const bool reflected = x < 0.5;
  const MovedUp m = moved_up(reflected ? 1 - x : x, EightSteps{});
  const double positive = (m.large - 0.5) * log(m.large) - m.large + 0.91893853320467274178 +
                          stirling_rest(m.large) - log(m.product);
  const double sine = sin_near(kPiDouble * from_nearest_integer(x));
  const double mirrored = log(kPiDouble / std::fabs(sine)) - positive;
  const double y = reflected ? mirrored : positive;
  return x == kInfinity || x == -kInfinity ? kInfinity : y;
}
TERN_FN float lgamma(float x) {
#if defined(__CUDA_ARCH__)
  return ::lgammaf(x);
#else
  return static_cast<float>(lgamma_near(x));
#endif
}
TERN_FN double lgamma(double x) {
#if defined(__CUDA_ARCH__)
  return ::lgamma(x);
#else
  int sign;
  return ::lgamma_r(x, &sign);
#endif
}

/// d/dx log Gamma(x), branch-free: the asymptotic series (DLMF 5.11.2) after the recurrence, and the
/// reflection. -inf at 0, inf at -0, NaN at negative integers.
TERN_FN double digamma(double x) {
  const bool reflected = x < 0;
  const MovedUp m = moved_up(reflected ? 1 - x : x, EightSteps{});
  const double inverse = 1 / m.large, square = inverse * inverse;
  const double positive =
      log(m.large) - 0.5 * inverse -
      horner(square, 8.3333333333333333333e-2, -2.1092796092796092796e-2, 7.5757575757575757576e-3,
             -4.1666666666666666667e-3, 3.9682539682539682540e-3, -8.3333333333333333333e-3,
             8.3333333333333333333e-2) *
          square -
      m.slope / m.product;
  const double rest = from_nearest_integer(x);
  const double mirrored = rest == 0 ? kNan : positive - kPiDouble / tan_near(kPiDouble * rest);
  return x == 0 ? -1 / x : reflected ? mirrored : positive;
}
TERN_FN float digamma(float x) { return static_cast<float>(digamma(static_cast<double>(x))); }

/// The sum of 1 / (x + k)^2 over the steps k.
template <int... kSteps>
TERN_FN double inverse_squares(double x, std::integer_sequence<int, kSteps...>) {
  return ((1 / ((x + kSteps) * (x + kSteps))) + ...);
}

/// The derivative of the digamma function, branch-free: as that, from the derivative of its series
/// (DLMF 5.15.8). inf at 0 and at negative integers.
TERN_FN double trigamma(double x) {
  const bool reflected = x < 0.5;
  const double from = reflected ? 1 - x : x;
  const bool moves = from < kStirling;
  const double inverse = 1 / (moves ? from + kStirling : from), square = inverse * inverse;
  const double series = horner(square, 1.1666666666666666667, -2.5311355311355311355e-1,
                               7.5757575757575757576e-2, -3.3333333333333333333e-2, 2.3809523809523809524e-2,
                               -3.3333333333333333333e-2, 1.6666666666666666667e-1);
  const double positive = inverse + 0.5 * square + series * square * inverse +
                          (moves ? inverse_squares(from, EightSteps{}) : 0.0);
  const double sine = sin_near(kPiDouble * from_nearest_integer(x));
  return reflected ? kPiDouble * kPiDouble / (sine * sine) - positive : positive;
}

/// Hurwitz' zeta function, the sum of (q + k)^-s over k from 0: ten terms, then Euler and Maclaurin's formula
/// (DLMF 25.11.5). NaN for s < 1; at q of 0 and below inf at integers, elsewhere NaN unless s is an integer.
TERN_FN double zeta(double s, double q) {
  // (2k)! / B_2k
  const double divisors[] = {12.0,
                             -720.0,
                             30240.0,
                             -1209600.0,
                             47900160.0,
                             -1.8924375803183791606e9,
                             7.47242496e10,
                             -2.950130727918164224e12,
                             1.1646782814350067249e14,
                             -4.5979787224074726105e15,
                             1.8152105401943546773e17,
                             -7.1661652561756670113e18};
  constexpr double kEnough = 1.11022302462515654042e-16;
  if (s == 1) return kInfinity;
  if (!(s > 1)) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (s != std::floor(s)) return kNan;
  }
  double sum = std::pow(q, -s), at = q, term = 0;
  for (int i = 0; i < 9 || at <= 9; ++i) {
    at += 1;
    term = std::pow(at, -s);
    sum += term;
    if (std::abs(term) < kEnough * std::abs(sum)) return sum;
  }
  sum += term * at / (s - 1) - 0.5 * term;
  double factor = 1;
  for (int i = 0; i < 12; ++i) {
    factor *= s + 2 * i;
    term /= at;
    const double next = factor * term / divisors[i];
    sum += next;
    if (std::abs(next) < kEnough * std::abs(sum)) return sum;
    factor *= s + 2 * i + 1;
    term /= at;
  }
  return sum;
}
TERN_FN float zeta(float s, float q) {
  return static_cast<float>(zeta(static_cast<double>(s), static_cast<double>(q)));
}

/// The n-th derivative of the digamma function, n of at least 1 (DLMF 5.15.1); `factorial` is n! and its sign
/// that of the result.
TERN_FN double polygamma(double n, double factorial, double x) {
  return n == 1 ? trigamma(x) : factorial * zeta(n + 1, x);
}

// ---- the incomplete gamma functions
// -------------------------------------------------------------------------------------

/// Up to this shape the series and the fraction below are summed to their ends (which takes some 8 sqrt(a)
/// steps); beyond it the cube root of a gamma variable is normal to 1e-9 (Wilson and Hilferty, 1931).
inline constexpr double kLargestShape = 1e5;
inline constexpr int kMostSteps = 20000;

/// x^a e^-x / Gamma(a), without the cancellation of large terms.
TERN_FN double gamma_density_times_x(double a, double x) {
  if (a < kStirling) return std::exp(a * std::log(x) - x - lgamma(a));
  const double u = (x - a) / a;
  return std::sqrt(a / (2 * kPiDouble)) * std::exp(-a * (u - std::log1p(u)) - stirling_rest(a));
}

/// Where x lies among the values of a gamma variable of shape a: (x / a)^(1/3) as a standard normal number.
TERN_FN double gamma_as_normal(double a, double x) {
  return (std::cbrt(x / a) - 1 + 1 / (9 * a)) * 3 * std::sqrt(a);
}

/// A share of the gamma distribution's mass, divided by x times its density, and the derivative of that
/// quotient by a, for which nothing is computed unless it is wanted.
struct GammaTail {
  double value, slope;
};
/// The mass below x: the series DLMF 8.11.4. For x up to about a + 1.
template <bool kSlope>
TERN_FN GammaTail gamma_below(double a, double x) {
  double term = 1 / a, sum = term, harmonic = 1 / a, slope = -term * harmonic;
  for (int i = 1; i < kMostSteps; ++i) {
    const double inverse = 1 / (a + i);
    term *= x * inverse;
    sum += term;
    bool done = term < 1e-17 * sum;
    if constexpr (kSlope) {
      harmonic += inverse;
      slope -= term * harmonic;
      done = done && term * harmonic < 1e-17 * -slope;
    }
    if (done) break;
  }
  return {sum, slope};
}
/// The mass above x: the continued fraction DLMF 8.9.2, by Lentz' method, with its derivative. For x from
/// about a + 1 on.
template <bool kSlope>
TERN_FN GammaTail gamma_above(double a, double x) {
  double b = x + 1 - a, c = 1e300, dc = 0;
  double d = 1 / b, dd = d * d;  // the derivative of b by a is -1
  double h = d, dh = dd;
  for (int i = 1; i < kMostSteps; ++i) {
    const double n = i * (a - i), dn = i;
    b += 2;
    // d = 1 / (n d + b), c = b + n / c
    const double ratio = 1 / c;
    const double slope = dn * d + n * dd - 1;
    d = 1 / (n * d + b);
    c = b + n * ratio;
    const double factor = c * d;
    bool done = std::fabs(factor - 1) < 1e-16;
    if constexpr (kSlope) {
      dd = -slope * d * d;
      dc = -1 + dn * ratio - n * dc * ratio * ratio;
      const double dfactor = dc * d + c * dd;
      dh = dh * factor + h * dfactor;
      done = done && std::fabs(dfactor) * std::fabs(h) < 1e-16 * std::fabs(dh);
    }
    h *= factor;
    if (done) break;
  }
  return {h, dh};
}

/// Of a gamma variable of shape a the share below x, or above: the regularised incomplete gamma functions P
/// and Q (DLMF 8.2.4). NaN for negative operands, and where both are 0 or inf.
TERN_FN double gamma_share(double a, double x, bool above) {
  if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0) || (a == kInfinity && x == kInfinity)) return kNan;
  if (x == 0 || a == kInfinity) return above ? 1 : 0;
  if (a == 0 || x == kInfinity) return above ? 0 : 1;
  if (a > kLargestShape) {
    const double z = gamma_as_normal(a, x) * 0.70710678118654752440;
    return 0.5 * std::erfc(above ? z : -z);
  }
  const bool by_series = x < a + 1;
  const double weight = gamma_density_times_x(a, x);
  if (weight == 0) return by_series == above ? 1 : 0;
  const double share = weight * (by_series ? gamma_below<false>(a, x) : gamma_above<false>(a, x)).value;
  return by_series == above ? 1 - share : share;
}
TERN_FN double gammainc(double a, double x) { return gamma_share(a, x, /*above=*/false); }
TERN_FN double gammaincc(double a, double x) { return gamma_share(a, x, /*above=*/true); }
TERN_FN float gammainc(float a, float x) { return static_cast<float>(gamma_share(a, x, /*above=*/false)); }
TERN_FN float gammaincc(float a, float x) { return static_cast<float>(gamma_share(a, x, /*above=*/true)); }

/// How the value x of a gamma variable moves with its shape a while the share below it stays: -(dP/da) /
/// (dP/dx) (Figurnov et al., "Implicit reparameterization gradients", 2018).
TERN_FN double standard_gamma_grad(double a, double x) {
  if (!(a > 0) || !(x > 0)) return x == 0 ? 0 : kNan;
  if (a > kLargestShape) {
    // x = a (1 - 1 / (9 a) + z / (3 sqrt a))^3 at a fixed z
    const double root = std::cbrt(x / a), z = gamma_as_normal(a, x);
    return x / a + 3 * a * root * root * (1 / (9 * a * a) - z / (6 * a * std::sqrt(a)));
  }
  const bool by_series = x < a + 1;
  const GammaTail tail = by_series ? gamma_below<true>(a, x) : gamma_above<true>(a, x);
  const double slope = x * ((std::log(x) - digamma(a)) * tail.value + tail.slope);
  return by_series ? -slope : slope;
}
TERN_FN float standard_gamma_grad(float a, float x) {
  return static_cast<float>(standard_gamma_grad(static_cast<double>(a), static_cast<double>(x)));
}

// ---- the inverse error function
// -----------------------------------------------------------------------------------------

/// The inverse of erf: polynomials in log(1 - x^2) (Giles, "Approximating the erfinv function", 2012); within
/// 3e-7 of itself. Infinite at 1 and -1, NaN beyond.
TERN_FN float erfinv(float x) {
#if defined(__CUDA_ARCH__)
  return ::erfinvf(x);
#else
  const float w = -log((1 - x) * (1 + x));
  float c = w - 2.5f;
  float central = 2.81022636e-08f;
  central = central * c + 3.43273939e-07f;
  central = central * c - 3.5233877e-06f;
  central = central * c - 4.39150654e-06f;
  central = central * c + 0.00021858087f;
  central = central * c - 0.00125372503f;
  central = central * c - 0.00417768164f;
  central = central * c + 0.246640727f;
  central = central * c + 1.50140941f;
  c = std::sqrt(w < 0 ? 0.0f : w) - 3.0f;
  float tail = -0.000200214257f;
  tail = tail * c + 0.000100950558f;
  tail = tail * c + 0.00134934322f;
  tail = tail * c - 0.00367342844f;
  tail = tail * c + 0.00573950773f;
  tail = tail * c - 0.0076224613f;
  tail = tail * c + 0.00943887047f;
  tail = tail * c + 1.00167406f;
  tail = tail * c + 2.83297682f;
  const float y = (w < 5 ? central : tail) * x;
  return magnitude(x) == 1 ? x * std::numeric_limits<float>::infinity() : y;
#endif
}
TERN_FN double erfinv(double x) {
#if defined(__CUDA_ARCH__)
  return ::erfinv(x);
#else
  const double w = -log((1 - x) * (1 + x)), root = std::sqrt(w < 0 ? 0.0 : w);
  const double central =
      horner(w - 3.125, -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18,
             1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17,
             6.6376381343583238325e-15, -4.0545662729752068639e-14, -8.1519341976054721522e-14,
             2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
             1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08,
             4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05,
             0.0001867342080340571352, -0.00074070253416626697512, -0.0060336708714301490533,
             0.24015818242558961693, 1.6536545626831027356);
  const double middle = horner(
      root - 3.25, 2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
      1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
      2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
      6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
      0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
      -0.0037512085075692412107, 0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635);
  const double tail =
      horner(root - 5, -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
             -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
             2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
             -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
             7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
             1.0103004648645343977, 4.8499064014085844221);
  const double y = (w < 6.25 ? central : root < 4 ? middle : tail) * x;
  return x == 1 || x == -1 ? x * kInfinity : y;
#endif
}

}  // namespace tern::math
