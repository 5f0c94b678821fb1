// The element functions of the unary and binary operators, written once and compiled for every backend. C is
// the compute type: the element's own, float for the 16-bit floats. Lists and names are in
// kernels/pointwise.h, special functions in functors_special.h, activations of two operands in
// functors_activation.h.
#pragma once

#include <type_traits>

#include "tern/kernels/hyperbolic.h"
#include "tern/kernels/math.h"
#include "tern/kernels/pointwise.h"
#include "tern/kernels/trigonometry.h"

namespace tern::functors {

template <class C>
TERN_FN C from_param(const Param& p) {
  if constexpr (std::is_floating_point_v<C>)
    return static_cast<C>(p.floating);
  else
    return static_cast<C>(p.integer);
}

template <class C>
TERN_FN bool is_nan(C x) {
  if constexpr (std::is_floating_point_v<C>)
    return x != x;
  else
    return false;
}

/// x within 0 and `high`; NaN stays.
template <class C>
TERN_FN C cut(C x, C high) {
  const C y = x < C(0) ? C(0) : x;
  return y > high ? high : y;
}

/// Integers wrap as two's complement.
template <class C>
TERN_FN C wrap_add(C a, C b) {
  if constexpr (std::is_integral_v<C> && !std::is_same_v<C, bool>)
    return static_cast<C>(static_cast<std::make_unsigned_t<C>>(a) + static_cast<std::make_unsigned_t<C>>(b));
  else
    return static_cast<C>(a + b);
}
template <class C>
TERN_FN C wrap_sub(C a, C b) {
  if constexpr (std::is_integral_v<C> && !std::is_same_v<C, bool>)
    return static_cast<C>(static_cast<std::make_unsigned_t<C>>(a) - static_cast<std::make_unsigned_t<C>>(b));
  else
    return static_cast<C>(a - b);
}
template <class C>
TERN_FN C wrap_mul(C a, C b) {
  if constexpr (std::is_integral_v<C> && !std::is_same_v<C, bool>)
    return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return static_cast<C>(a * b);
}
template <class C>
TERN_FN C wrap_neg(C a) {
  if constexpr (std::is_integral_v<C> && !std::is_same_v<C, bool>)
    return wrap_sub(C(0), a);
  else
    return static_cast<C>(-a);
}

// ---- unary: constructed from the two parameters of UnaryArgs
// ------------------------------------------------------

/// Of functors with which loops over 16-bit floats do better to widen and round many elements at a time,
/// since few chains of so many steps fit a processor's window.
struct ManySteps {
  static constexpr bool kManySteps = true;
};

#define TERN_UNARY_OF(Base, Name, expression)                              \
  template <class C>                                                       \
  struct Name Base {                                                       \
    explicit Name(const Param*) {}                                         \
    TERN_FN C operator()(C x) const { return static_cast<C>(expression); } \
  }
#define TERN_UNARY(Name, expression) TERN_UNARY_OF(, Name, expression)
#define TERN_FUNCTION(Name, expression) TERN_UNARY_OF( : ManySteps, Name, expression)

TERN_UNARY(Neg, wrap_neg(x));
TERN_UNARY(Abs, x < C(0) ? wrap_neg(x) : (x == C(0) ? C(0) : x));
TERN_UNARY(Sign, is_nan(x) ? C(0) : C((x > C(0)) - (x < C(0))));
TERN_UNARY(Square, wrap_mul(x, x));
TERN_UNARY(Relu, x < C(0) ? C(0) : x);
TERN_UNARY(BitwiseNot, ~x);
TERN_FUNCTION(Exp, math::exp(x));
TERN_FUNCTION(Expm1, math::expm1(x));
TERN_FUNCTION(Log, math::log(x));
TERN_FUNCTION(Log1p, math::log1p(x));
TERN_FUNCTION(Log2, math::log2(x));
TERN_FUNCTION(Log10, math::log10(x));
TERN_UNARY(Sqrt, std::sqrt(x));
TERN_UNARY(Rsqrt, C(1) / std::sqrt(x));
TERN_UNARY(Reciprocal, C(1) / x);
TERN_FUNCTION(Tanh, math::tanh(x));
TERN_FUNCTION(Erf, math::erf(x));
TERN_FUNCTION(Erfc, math::erfc(x));
TERN_FUNCTION(Exp2, math::exp2(x));
TERN_FUNCTION(Asin, math::asin(x));
TERN_FUNCTION(Acos, math::acos(x));
TERN_FUNCTION(Atan, math::atan(x));
TERN_FUNCTION(Sinh, math::sinh(x));
TERN_FUNCTION(Cosh, math::cosh(x));
TERN_FUNCTION(Asinh, math::asinh(x));
TERN_FUNCTION(Acosh, math::acosh(x));
TERN_FUNCTION(Atanh, math::atanh(x));
TERN_UNARY(Frac, x - std::trunc(x));
TERN_FUNCTION(Sigmoid, math::sigmoid(x));
TERN_FUNCTION(Silu, x / (C(1) + math::exp(-x)));
TERN_FUNCTION(Gelu, x* math::normal(x).cdf);
TERN_FUNCTION(GeluTanh,
              C(0.5) * x * (C(1) + math::tanh(C(0.79788456080286535588) * (x + C(0.044715) * x * x * x))));
TERN_UNARY(Softsign, x / (C(1) + std::abs(x)));
TERN_UNARY(Hardsigmoid, cut(x + C(3), C(6)) * C(1.0 / 6));
TERN_UNARY(Hardswish, x*(cut(x + C(3), C(6)) * C(1.0 / 6)));
TERN_FUNCTION(LogSigmoid, (x < C(0) ? x : C(0)) - math::log1p(math::exp(x < C(0) ? x : -x)));

#define TERN_ROUNDING(Name, function)            \
  template <class C>                             \
  struct Name {                                  \
    explicit Name(const Param*) {}               \
    TERN_FN C operator()(C x) const {            \
      if constexpr (std::is_floating_point_v<C>) \
        return function(x);                      \
      else                                       \
        return x;                                \
    }                                            \
  }
TERN_ROUNDING(Floor, std::floor);
TERN_ROUNDING(Ceil, std::ceil);
TERN_ROUNDING(Round, std::nearbyint);
TERN_ROUNDING(Trunc, std::trunc);
#undef TERN_ROUNDING

/// `fast` is for loops that have seen that all their elements are `inside`.
#define TERN_TRIGONOMETRIC(Name, function)                                         \
  template <class C>                                                               \
  struct Name {                                                                    \
    explicit Name(const Param*) {}                                                 \
    TERN_FN C operator()(C x) const { return std::function(x); }                   \
    TERN_FN static bool inside(C x) {                                              \
      return (x <= math::kTrigonometricLimit) & (x >= -math::kTrigonometricLimit); \
    }                                                                              \
    TERN_FN C fast(C x) const { return math::function##_near(x); }                 \
  }
TERN_TRIGONOMETRIC(Sin, sin);
TERN_TRIGONOMETRIC(Cos, cos);
TERN_TRIGONOMETRIC(Tan, tan);
#undef TERN_TRIGONOMETRIC
/// sin(pi x) / (pi x).
template <class C>
struct Sinc {
  explicit Sinc(const Param*) {}
  TERN_FN C operator()(C x) const { return quotient(x, std::sin(kPi * x)); }
  TERN_FN static bool inside(C x) { return Sin<C>::inside(kPi * x); }
  TERN_FN C fast(C x) const { return quotient(x, math::sin_near(kPi * x)); }

 private:
  static constexpr C kPi = C(3.14159265358979323846);
  TERN_FN static C quotient(C x, C sine) { return x == C(0) ? C(1) : sine / (kPi * x); }
};

/// log(x / (1 - x)); params: bounds of x, NaN where there are none.
template <class C>
struct Logit : ManySteps {
  C low, high;
  explicit Logit(const Param* p) : low(from_param<C>(p[0])), high(from_param<C>(p[1])) {}
  TERN_FN C operator()(C x) const {
    const C y = x < low ? low : x > high ? high : x;
    return math::log(y / (C(1) - y));
  }
};

/// params: beta, threshold.
template <class C>
struct Softplus : ManySteps {
  C beta, threshold;
  explicit Softplus(const Param* p) : beta(from_param<C>(p[0])), threshold(from_param<C>(p[1])) {}
  TERN_FN C operator()(C x) const {
    return x * beta > threshold ? x : math::log1p(math::exp(x * beta)) / beta;
  }
};
/// params: alpha, and the scale of the input, which is 1 but for CELU.
template <class C>
struct Elu : ManySteps {
  C alpha, scale;
  explicit Elu(const Param* p) : alpha(from_param<C>(p[0])), scale(from_param<C>(p[1])) {}
  TERN_FN C operator()(C x) const { return x > C(0) ? x : alpha * math::expm1(scale * x); }
};
/// The constants of Klambauer et al., "Self-normalizing neural networks", 2017.
template <class C>
struct Selu : ManySteps {
  static constexpr C kScale = C(1.0507009873554804934193349852946);
  static constexpr C kAlpha = C(1.6732632423543772848170429916717);
  explicit Selu(const Param*) {}
  TERN_FN C operator()(C x) const { return x > C(0) ? kScale * x : kScale * kAlpha * math::expm1(x); }
};
/// tanh(softplus(x)) = n / (n + 2) with n = e^2x + 2e^x. Beyond 20 it is 1 in every dtype, and e^2x too large
/// for some.
template <class C>
struct Mish : ManySteps {
  explicit Mish(const Param*) {}
  TERN_FN C operator()(C x) const {
    const C e = math::exp(x), n = e * (e + C(2));
    return x > C(20) ? x : x * (n / (n + C(2)));
  }
};
/// params: negative slope.
template <class C>
struct LeakyRelu {
  C slope;
  explicit LeakyRelu(const Param* p) : slope(from_param<C>(p[0])) {}
  TERN_FN C operator()(C x) const { return x > C(0) ? x : slope * x; }
};
/// params: low, high. NaN stays, in bounds too.
template <class C>
struct Clamp {
  C low, high;
  explicit Clamp(const Param* p) : low(from_param<C>(p[0])), high(from_param<C>(p[1])) {
    if (is_nan(low)) high = low;
  }
  TERN_FN C operator()(C x) const {
    C y = !(x >= low) ? low : x;
    y = !(y <= high) ? high : y;
    return is_nan(x) ? x : y;
  }
};

#undef TERN_UNARY
#undef TERN_FUNCTION
#undef TERN_UNARY_OF
#define TERN_PREDICATE(Name, expression)                      \
  template <class C>                                          \
  struct Name {                                               \
    explicit Name(const Param*) {}                            \
    TERN_FN bool operator()(C x) const { return expression; } \
  }
TERN_PREDICATE(IsNan, is_nan(x));
TERN_PREDICATE(LogicalNot, x == C(0));
#undef TERN_PREDICATE
template <class C>
struct IsInf {
  explicit IsInf(const Param*) {}
  TERN_FN bool operator()([[maybe_unused]] C x) const {
    if constexpr (std::is_floating_point_v<C>)
      return x == std::numeric_limits<C>::infinity() || x == -std::numeric_limits<C>::infinity();
    else
      return false;
  }
};
template <class C>
struct IsFinite {
  explicit IsFinite(const Param*) {}
  TERN_FN bool operator()([[maybe_unused]] C x) const {
    if constexpr (std::is_floating_point_v<C>)
      return x - x == C(0);
    else
      return true;
  }
};

/// The sign bit, of zeros and NaN too.
template <class C>
struct Signbit {
  explicit Signbit(const Param*) {}
  TERN_FN bool operator()(C x) const {
    if constexpr (std::is_same_v<C, float>)
      return math::is_negative(x);
    else if constexpr (std::is_same_v<C, double>)
      return std::bit_cast<int64_t>(x) < 0;
    else
      return std::is_signed_v<C> && x < C(0);
  }
};

// ---- binary: constructed from the two parameters of BinaryArgs
// -------------------------------------------------------------------

#define TERN_BINARY(Name, Result, expression)                                             \
  template <class C>                                                                      \
  struct Name {                                                                           \
    explicit Name(const Param*) {}                                                        \
    TERN_FN Result operator()(C a, C b) const { return static_cast<Result>(expression); } \
  }

/// param: alpha.
template <class C>
struct Add {
  C alpha;
  explicit Add(const Param* p) : alpha(from_param<C>(p[0])) {}
  TERN_FN C operator()(C a, C b) const { return wrap_add(a, wrap_mul(alpha, b)); }
};
template <class C>
struct Sub {
  C alpha;
  explicit Sub(const Param* p) : alpha(from_param<C>(p[0])) {}
  TERN_FN C operator()(C a, C b) const { return wrap_sub(a, wrap_mul(alpha, b)); }
};
TERN_BINARY(Mul, C, wrap_mul(a, b));
TERN_BINARY(Div, C, a / b);
TERN_BINARY(Atan2, C, math::atan2(a, b));
TERN_BINARY(Maximum, C, (is_nan(a) | (a > b)) ? a : b);
TERN_BINARY(Minimum, C, (is_nan(a) | (a < b)) ? a : b);
TERN_BINARY(Eq, bool, a == b);
TERN_BINARY(Ne, bool, a != b);
TERN_BINARY(Lt, bool, a < b);
TERN_BINARY(Le, bool, a <= b);
TERN_BINARY(Gt, bool, a > b);
TERN_BINARY(Ge, bool, a >= b);
TERN_BINARY(LogicalAnd, bool, (a != C(0)) & (b != C(0)));
TERN_BINARY(LogicalOr, bool, (a != C(0)) | (b != C(0)));
TERN_BINARY(LogicalXor, bool, (a != C(0)) != (b != C(0)));
TERN_BINARY(BitwiseAnd, C, a& b);
TERN_BINARY(BitwiseOr, C, a | b);
TERN_BINARY(BitwiseXor, C, a ^ b);

/// By a negative number of bits, or as many as there are, all of them leave.
TERN_BINARY(BitwiseLeftShift, C, ((b >= C(0)) & (b < C(8 * sizeof(C)))) ? static_cast<uint64_t>(a) << b : 0);
template <class C>
struct BitwiseRightShift {
  explicit BitwiseRightShift(const Param*) {}
  TERN_FN C operator()(C a, C b) const {
    constexpr C kMost = std::numeric_limits<C>::digits;
    return static_cast<C>(a >> (((b >= C(0)) & (b < kMost)) ? b : kMost));
  }
};
/// Euclid's algorithm.
template <class C>
TERN_FN C greatest_common_divisor(C a, C b) {
  uint64_t x = static_cast<uint64_t>(a < C(0) ? wrap_neg(a) : a),
           y = static_cast<uint64_t>(b < C(0) ? wrap_neg(b) : b);
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return static_cast<C>(x);
}
TERN_BINARY(Gcd, C, greatest_common_divisor(a, b));
/// The least common multiple, 0 of 0.
template <class C>
struct Lcm {
  explicit Lcm(const Param*) {}
  TERN_FN C operator()(C a, C b) const {
    const C divisor = greatest_common_divisor(a, b);
    const C multiple = divisor == C(0) ? C(0) : wrap_mul(static_cast<C>(a / divisor), b);
    return multiple < C(0) ? wrap_neg(multiple) : multiple;
  }
};

/// The `fast` forms of remainders are for loops that have seen that all their elements are `inside`.
template <class C>
struct Remainders {
  explicit Remainders(const Param*) {}
  TERN_FN static bool inside(C a, C b) requires std::is_floating_point_v<C> {
    return math::remainder_is_near(a, b);
  }
};

/// Quotient rounded down. Integers: the kernel has refused zero divisors before; the lowest integer over -1
/// wraps.
template <class C>
struct DivFloor : Remainders<C> {
  using Remainders<C>::Remainders;
  TERN_FN C operator()(C a, C b) const {
    if constexpr (std::is_floating_point_v<C>) {
      return b == C(0) ? a / b : floored(a, b, std::fmod(a, b));
    } else {
      if (std::is_signed_v<C> && b == C(-1)) return wrap_sub(C(0), a);
      C quotient = static_cast<C>(a / b);
      return static_cast<C>(quotient - ((a % b != 0) && ((a < C(0)) != (b < C(0)))));
    }
  }
  TERN_FN C fast(C a, C b) const requires std::is_floating_point_v<C> {
    return floored(a, b, math::remainder_near(a, b));
  }

 private:
  /// Python's floor division: exact where floor(a / b) would round up (CPython's float_floor_div).
  TERN_FN static C floored(C a, C b, C mod) {
    C quotient = (a - mod) / b;
    quotient = ((mod != C(0)) & ((b < C(0)) != (mod < C(0)))) ? quotient - C(1) : quotient;
    C floor = std::floor(quotient);
    floor = quotient - floor > C(0.5) ? floor + C(1) : floor;
    return quotient == C(0) ? std::copysign(C(0), a / b) : floor;
  }
};
template <class C>
struct DivTrunc {
  explicit DivTrunc(const Param*) {}
  TERN_FN C operator()(C a, C b) const {
    if constexpr (std::is_floating_point_v<C>)
      return std::trunc(a / b);
    else
      return std::is_signed_v<C> && b == C(-1) ? wrap_sub(C(0), a) : static_cast<C>(a / b);
  }
};
/// Python's %: the sign of the divisor.
template <class C>
struct Remainder : Remainders<C> {
  using Remainders<C>::Remainders;
  TERN_FN C operator()(C a, C b) const {
    if constexpr (std::is_floating_point_v<C>) {
      return signed_as(b, std::fmod(a, b));
    } else {
      if (std::is_signed_v<C> && b == C(-1)) return C(0);
      return signed_as(b, static_cast<C>(a % b));
    }
  }
  TERN_FN C fast(C a, C b) const requires std::is_floating_point_v<C> {
    return signed_as(b, math::remainder_near(a, b));
  }

 private:
  TERN_FN static C signed_as(C b, C mod) {
    return ((mod != C(0)) & ((b < C(0)) != (mod < C(0)))) ? static_cast<C>(mod + b) : mod;
  }
};
/// C's fmod: the sign of the dividend.
template <class C>
struct Fmod : Remainders<C> {
  using Remainders<C>::Remainders;
  TERN_FN C operator()(C a, C b) const {
    if constexpr (std::is_floating_point_v<C>)
      return std::fmod(a, b);
    else
      return std::is_signed_v<C> && b == C(-1) ? C(0) : static_cast<C>(a % b);
  }
  TERN_FN C fast(C a, C b) const requires std::is_floating_point_v<C> { return math::remainder_near(a, b); }
};
/// Integers: by squaring, wrapping; a negative exponent gives 0 except for bases 1 and -1.
template <class C>
struct Pow {
  explicit Pow(const Param*) {}
  TERN_FN C operator()(C a, C b) const {
    if constexpr (std::is_floating_point_v<C>) {
      return math::pow(a, b);
    } else {
      if (b < C(0)) return a == C(1) ? C(1) : a == C(-1) ? ((b & 1) ? C(-1) : C(1)) : C(0);
      C result = C(1);
      for (C e = b; e != C(0); e = static_cast<C>(e >> 1)) {
        if (e & 1) result = wrap_mul(result, a);
        a = wrap_mul(a, a);
      }
      return result;
    }
  }
};

/// Pow where the exponent is 3.
template <class C>
struct Cube {
  explicit Cube(const Param*) {}
  TERN_FN C operator()(C a, C) const { return wrap_mul(wrap_mul(a, a), a); }
};

/// params: 1, or log 2 for sums of powers of 2.
template <class C>
struct Logaddexp : ManySteps {
  C scale;
  explicit Logaddexp(const Param* p) : scale(from_param<C>(p[0])) {}
  TERN_FN C operator()(C a, C b) const { return math::logaddexp(a, b, scale); }
};
template <class C>
struct Xlogy : ManySteps {
  explicit Xlogy(const Param*) {}
  TERN_FN C operator()(C a, C b) const { return ((a == C(0)) & (b == b)) ? C(0) : a * math::log(b); }
};
TERN_BINARY(Hypot, C, math::hypot(a, b));
TERN_BINARY(Copysign, C, std::copysign(a, b));
TERN_BINARY(Fmax, C, (is_nan(b) | (a > b)) ? a : b);
TERN_BINARY(Fmin, C, (is_nan(b) | (a < b)) ? a : b);
TERN_BINARY(Heaviside, C, a == C(0) ? b : C(a > C(0)));
/// b in place of NaN; params: the numbers in place of inf and -inf.
template <class C>
struct NanToNum {
  C above, below;
  explicit NanToNum(const Param* p) : above(from_param<C>(p[0])), below(from_param<C>(p[1])) {}
  TERN_FN C operator()(C a, C b) const {
    constexpr C kInf = std::numeric_limits<C>::infinity();
    const C y = a == kInf ? above : a == -kInf ? below : a;
    return a != a ? b : y;
  }
};
/// From a to b by the share w, counted from the nearer end, so that both ends are met.
template <class C>
TERN_FN C interpolated(C a, C b, C w) {
  return std::abs(w) < C(0.5) ? a + w * (b - a) : b - (b - a) * (C(1) - w);
}
/// params: the share of b.
template <class C>
struct Lerp {
  C weight;
  explicit Lerp(const Param* p) : weight(from_param<C>(p[0])) {}
  TERN_FN C operator()(C a, C b) const { return interpolated(a, b, weight); }
};

#undef TERN_BINARY

// ---- ternary: constructed from the value of TernaryArgs

template <class C>
struct Addcmul {
  C value;
  explicit Addcmul(const Param& p) : value(from_param<C>(p)) {}
  TERN_FN C operator()(C a, C b, C c) const { return wrap_add(a, wrap_mul(wrap_mul(value, b), c)); }
};
template <class C>
struct Addcdiv {
  C value;
  explicit Addcdiv(const Param& p) : value(from_param<C>(p)) {}
  TERN_FN C operator()(C a, C b, C c) const { return a + value * b / c; }
};
template <class C>
struct LerpEach {
  explicit LerpEach(const Param&) {}
  TERN_FN C operator()(C a, C b, C c) const { return interpolated(a, b, c); }
};

}  // namespace tern::functors
