// Pointwise arithmetic with its gradients.
#include "tern/ops/pointwise.h"

#include <cmath>
#include <limits>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/complex.h"
#include "tern/ops/complex_elementwise.h"
#include "tern/ops/copy.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"

namespace tern {
namespace {

Tensor zeros_of(const Tensor& g) { return filled(g.shape(), g.dtype(), g.device(), 0); }

/// A quotient or step function: its gradient is zero.
Tensor record_zero(const char* name, Tensor y, const Tensor& x) {
  if (tracks_grad(x) && is_floating_point(y.dtype()))
    record(name, y, {x}, [](GradContext&, const Tensor& g) { return zeros_of(g); });
  return y;
}

Param check_alpha(const char* op, DType dtype, const Scalar& alpha) {
  TERN_CHECK(is_bool(dtype) || !is_bool(alpha.kind()), DTypeError,
             "{}: Boolean alpha only supported for Boolean results, not for {}: give 1 or 0", op,
             name(dtype));
  TERN_CHECK(is_floating_point(dtype) || is_complex(dtype) || !alpha.is_floating_point(), DTypeError,
             "{}: For integral input tensors, argument alpha must not be a floating point number (alpha is "
             "{}, the tensors are {})",
             op, alpha.to_double(), name(dtype));
  return param_of(alpha);
}

Tensor scaled(const Tensor& g, const Scalar& by) { return by.to_double() == 1 ? g : mul(g, by); }

}  // namespace

Tensor add(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  Tensor y = binary(BinaryOp::Add, a, b, check_alpha("add", result_type(a, b), alpha));
  if (tracks_grad(a, b))
    record("add", y, {a, b}, [sa = Side(a), sb = Side(b), alpha](GradContext& c, const Tensor& g) {
      return std::array<Tensor, 2>{c.needs(0) ? sa.of(g) : Tensor(),
                                   c.needs(1) ? sb.of(scaled(g, alpha)) : Tensor()};
    });
  return y;
}

Tensor add(const Tensor& a, const Scalar& b, const Scalar& alpha) {
  Tensor y = binary(BinaryOp::Add, a, b, check_alpha("add", result_type(a, b), alpha));
  if (tracks_grad(a))
    record("add", y, {a}, [dtype = a.dtype()](GradContext&, const Tensor& g) { return to(g, dtype); });
  return y;
}

Tensor sub(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  check_subtraction("sub", a.dtype(), b.dtype());
  Tensor y = binary(BinaryOp::Sub, a, b, check_alpha("sub", result_type(a, b), alpha));
  if (tracks_grad(a, b))
    record("sub", y, {a, b}, [sa = Side(a), sb = Side(b), alpha](GradContext& c, const Tensor& g) {
      return std::array<Tensor, 2>{c.needs(0) ? sa.of(g) : Tensor(),
                                   c.needs(1) ? sb.of(neg(scaled(g, alpha))) : Tensor()};
    });
  return y;
}

Tensor sub(const Tensor& a, const Scalar& b, const Scalar& alpha) {
  check_subtraction("sub", a.dtype(), b.kind());
  Tensor y = binary(BinaryOp::Sub, a, b, check_alpha("sub", result_type(a, b), alpha));
  if (tracks_grad(a))
    record("sub", y, {a}, [dtype = a.dtype()](GradContext&, const Tensor& g) { return to(g, dtype); });
  return y;
}

Tensor rsub(const Tensor& a, const Scalar& b) {
  check_subtraction("rsub", b.kind(), a.dtype());
  Tensor y = binary(BinaryOp::Sub, b, a, param_of(1.0));
  if (tracks_grad(a))
    record("rsub", y, {a}, [dtype = a.dtype()](GradContext&, const Tensor& g) { return neg(to(g, dtype)); });
  return y;
}

Tensor mul(const Tensor& a, const Tensor& b) {
  Tensor y = binary(BinaryOp::Mul, a, b);
  if (tracks_grad(a, b))
    record("mul", y, {a, b},
           [sa = Side(a), sb = Side(b), a_ = save(b.requires_grad() ? a : Tensor()),
            b_ = save(a.requires_grad() ? b : Tensor())](GradContext& c, const Tensor& g) {
             return std::array<Tensor, 2>{c.needs(0) ? sa.of(times_conj(g, c[b_])) : Tensor(),
                                          c.needs(1) ? sb.of(times_conj(g, c[a_])) : Tensor()};
           });
  return y;
}

Tensor mul(const Tensor& a, const Scalar& b) {
  Tensor y = binary(BinaryOp::Mul, a, b);
  if (tracks_grad(a))
    record("mul", y, {a},
           [b, dtype = a.dtype()](GradContext&, const Tensor& g) { return to(mul(g, conj(b)), dtype); });
  return y;
}

Tensor div(const Tensor& a, const Tensor& b) {
  Tensor y = binary(BinaryOp::Div, a, b);
  if (tracks_grad(a, b))
    record("div", y, {a, b},
           [sa = Side(a), sb = Side(b), a_ = save(b.requires_grad() ? a : Tensor()), b_ = save(b)](
               GradContext& c, const Tensor& g) {
             Tensor divisor = c[b_];
             // g comes last: 1 / b may overflow where a is 0.
             return std::array<Tensor, 2>{
                 c.needs(0) ? sa.of(div(g, conj(divisor))) : Tensor(),
                 c.needs(1) ? sb.of(neg(times_conj(g, div(div(c[a_], divisor), divisor)))) : Tensor()};
           });
  return y;
}

Tensor div(const Tensor& a, const Scalar& b) {
  Tensor y = binary(BinaryOp::Div, a, b);
  if (tracks_grad(a))
    record("div", y, {a},
           [b, dtype = a.dtype()](GradContext&, const Tensor& g) { return to(div(g, conj(b)), dtype); });
  return y;
}

BinaryOp detail::rounded_division(std::string_view mode) {
  TERN_CHECK(mode == "floor" || mode == "trunc", ValueError,
             "div: expected rounding_mode to be 'trunc' or 'floor', got '{}'", mode);
  return mode == "floor" ? BinaryOp::DivFloor : BinaryOp::DivTrunc;
}

namespace {
template <class B>
Tensor step_binary(BinaryOp op, const Tensor& a, const B& b) {
  Tensor y = binary(op, a, b);
  if constexpr (std::is_same_v<B, Tensor>) {
    if (tracks_grad(a, b) && is_floating_point(y.dtype()))
      record(name(op), y, {a, b}, [sa = Side(a), sb = Side(b)](GradContext&, const Tensor& g) {
        return std::array<Tensor, 2>{sa.of(zeros_of(g)), sb.of(zeros_of(g))};
      });
    return y;
  } else {
    return record_zero(name(op), y, a);
  }
}
/// a mod b = a - b * rounded(a / b).
template <class B>
Tensor modulus(BinaryOp op, BinaryOp rounding, const Tensor& a, const B& b) {
  Tensor y = binary(op, a, b);
  if constexpr (std::is_same_v<B, Tensor>) {
    if (tracks_grad(a, b))
      record(
          name(op), y, {a, b},
          [sa = Side(a), sb = Side(b), a_ = save(a), b_ = save(b), rounding](GradContext& c,
                                                                             const Tensor& g) {
            return std::array<Tensor, 2>{
                c.needs(0) ? sa.of(g) : Tensor(),
                c.needs(1) ? sb.of(neg(mul(g, binary(rounding, c[a_].detach(), c[b_].detach())))) : Tensor()};
          });
  } else {
    if (tracks_grad(a)) record(name(op), y, {a}, [](GradContext&, const Tensor& g) { return g; });
  }
  return y;
}
}  // namespace

Tensor div(const Tensor& a, const Tensor& b, std::string_view rounding_mode) {
  return step_binary(detail::rounded_division(rounding_mode), a, b);
}
Tensor div(const Tensor& a, const Scalar& b, std::string_view rounding_mode) {
  return step_binary(detail::rounded_division(rounding_mode), a, b);
}
Tensor floor_divide(const Tensor& a, const Tensor& b) { return step_binary(BinaryOp::DivFloor, a, b); }
Tensor floor_divide(const Tensor& a, const Scalar& b) { return step_binary(BinaryOp::DivFloor, a, b); }
Tensor remainder(const Tensor& a, const Tensor& b) {
  return modulus(BinaryOp::Remainder, BinaryOp::DivFloor, a, b);
}
Tensor remainder(const Tensor& a, const Scalar& b) {
  return modulus(BinaryOp::Remainder, BinaryOp::DivFloor, a, b);
}
Tensor remainder(const Scalar& a, const Tensor& b) {
  Tensor y = binary(BinaryOp::Remainder, a, b);
  if (tracks_grad(b))
    record("remainder", y, {b}, [a, b_ = save(b)](GradContext& c, const Tensor& g) {
      return neg(mul(g, binary(BinaryOp::DivFloor, a, c[b_].detach())));
    });
  return y;
}
Tensor fmod(const Tensor& a, const Tensor& b) { return modulus(BinaryOp::Fmod, BinaryOp::DivTrunc, a, b); }
Tensor fmod(const Tensor& a, const Scalar& b) { return modulus(BinaryOp::Fmod, BinaryOp::DivTrunc, a, b); }

void detail::check_integer_exponent(DType dtype, const Scalar& exponent) {
  TERN_CHECK(
      is_floating_point(dtype) || exponent.is_floating_point() || exponent.to_int() >= 0, ValueError,
      "pow: Integers to negative integer powers are not allowed (exponent {}): convert the tensor to floats",
      exponent.to_int());
}

std::optional<UnaryOp> detail::unary_power(const Tensor& x, const Scalar& exponent) {
  const double e = exponent.to_double();
  if (e == 2 && result_type(x, exponent) == x.dtype() && !is_bool(x.dtype())) return UnaryOp::Square;
  if (!is_floating_point(x.dtype())) return {};
  return e == 0.5 ? std::optional(UnaryOp::Sqrt) : e == -0.5 ? std::optional(UnaryOp::Rsqrt) : std::nullopt;
}

Tensor pow(const Tensor& a, const Tensor& b) {
  if (autocasts_on_gpu(a)) [[unlikely]]
    return autocast_float32([](const Tensor& x, const Tensor& y) { return pow(x, y); }, a, b);
  if (is_complex(result_type(a, b))) [[unlikely]]
    return complex_power(a, b);
  Tensor y = binary(BinaryOp::Pow, a, b);
  if (tracks_grad(a, b))
    record("pow", y, {a, b},
           [sa = Side(a), sb = Side(b), a_ = save(a), b_ = save(b), y_ = save_output(y)](GradContext& c,
                                                                                         const Tensor& g) {
             Tensor base = c[a_], exponent = c[b_];
             Tensor ga, gb;
             if (c.needs(0))
               ga = sa.of(where(eq(exponent, 0), 0, mul(g, mul(exponent, pow(base, sub(exponent, 1))))));
             if (c.needs(1)) {
               // 0^b has slope 0 for b >= 0, where y * log(0) would be NaN.
               Tensor flat = logical_and(eq(base, 0), ge(exponent, 0));
               gb = sb.of(where(flat, 0, mul(g, mul(c[y_], log(to(base, g.dtype()))))));
             }
             return std::array<Tensor, 2>{ga, gb};
           });
  return y;
}

Tensor pow(const Tensor& a, const Scalar& b) {
  if (autocasts_on_gpu(a)) [[unlikely]]
    return autocast_float32([&](const Tensor& x) { return pow(x, b); }, a);
  if (const DType dtype = result_type(a, b); is_complex_computable(dtype)) [[unlikely]] {
    if (b.imag() == 0 && b.real() == 2) return mul(a, a);
    return complex_power(a, complex_number(b, dtype, a.device()));
  }
  detail::check_integer_exponent(a.dtype(), b);
  const std::optional<UnaryOp> power = detail::unary_power(a, b);
  Tensor y = power ? unary(*power, a) : binary(BinaryOp::Pow, a, b);
  if (tracks_grad(a))
    record("pow", y, {a}, [a_ = save(a), b](GradContext& c, const Tensor& g) {
      double exponent = b.to_double();
      if (exponent == 0) return zeros_of(g);
      const Tensor slope = exponent == 2 ? c[a_] : pow(c[a_], exponent - 1);
      return mul(g, mul(slope, exponent));
    });
  return y;
}

Tensor pow(const Scalar& a, const Tensor& b) {
  if (autocasts_on_gpu(b)) [[unlikely]]
    return autocast_float32([&](const Tensor& x) { return pow(a, x); }, b);
  if (const DType dtype = result_type(b, a); is_complex_computable(dtype)) [[unlikely]]
    return complex_power(complex_number(a, dtype, b.device()), b);
  Tensor y = binary(BinaryOp::Pow, a, b);
  if (tracks_grad(b))
    record("pow", y, {b}, [a, b_ = save(b), y_ = save_output(y)](GradContext& c, const Tensor& g) {
      if (a.to_double() == 0) return where(ge(c[b_], 0), 0, mul(mul(g, c[y_]), std::log(a.to_double())));
      return mul(mul(g, c[y_]), std::log(a.to_double()));
    });
  return y;
}

Tensor atan2(const Tensor& a, const Tensor& b) {
  if (autocasts_on_gpu(a)) [[unlikely]]
    return autocast_widest(atan2, a, b);
  Tensor y = binary(BinaryOp::Atan2, a, b);
  if (tracks_grad(a, b))
    record("atan2", y, {a, b},
           [sa = Side(a), sb = Side(b), a_ = save(a), b_ = save(b)](GradContext& c, const Tensor& g) {
             Tensor u = c[a_], v = c[b_];
             Tensor squares = add(square(u), square(v));
             Tensor scale = div(g, where(eq(squares, 0), INFINITY, squares));  // 0 in the origin
             return std::array<Tensor, 2>{sa.of(mul(scale, v)), sb.of(neg(mul(scale, u)))};
           });
  return y;
}

namespace {
Tensor extremum(BinaryOp op, const Tensor& a, const Tensor& b) {
  Tensor y = binary(op, a, b);
  if (tracks_grad(a, b))
    record(name(op), y, {a, b},
           [sa = Side(a), sb = Side(b), a_ = save(a), b_ = save(b), op](GradContext& c, const Tensor& g) {
             Tensor u = c[a_].detach(), v = c[b_].detach();
             Tensor half = where(eq(u, v), div(g, 2), g);
             Tensor b_wins = op == BinaryOp::Maximum ? lt(u, v) : gt(u, v);
             Tensor a_wins = op == BinaryOp::Maximum ? gt(u, v) : lt(u, v);
             return std::array<Tensor, 2>{sa.of(where(b_wins, 0, half)), sb.of(where(a_wins, 0, half))};
           });
  return y;
}
}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) { return extremum(BinaryOp::Maximum, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return extremum(BinaryOp::Minimum, a, b); }

Tensor operator/(const Scalar& a, const Tensor& b) {
  if (autocasts_on_gpu(b)) [[unlikely]]
    return autocast_float32([&](const Tensor& x) { return a / x; }, b);
  if (const DType dtype = result_type(b, a); is_complex_computable(dtype)) [[unlikely]]
    return div(complex_number(a, dtype, b.device()), b);
  Tensor y = binary(BinaryOp::Div, a, b);
  if (tracks_grad(b))
    record("div", y, {b}, [b_ = save(b), y_ = save_output(y)](GradContext& c, const Tensor& g) {
      return neg(div(mul(g, c[y_]), c[b_]));
    });
  return y;
}

Tensor neg(const Tensor& x) {
  if (is_complex(x.dtype())) [[unlikely]]
    return mul(x, -1.0);
  Tensor y = unary(UnaryOp::Neg, x);
  if (tracks_grad(x)) record("neg", y, {x}, [](GradContext&, const Tensor& g) { return neg(g); });
  return y;
}

Tensor abs(const Tensor& x) {
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Abs, x);
  Tensor y = unary(UnaryOp::Abs, x);
  if (tracks_grad(x))
    record("abs", y, {x}, [x_ = save(x)](GradContext& c, const Tensor& g) { return mul(g, sign(c[x_])); });
  return y;
}

Tensor sign(const Tensor& x) {
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Sgn, x);
  if (is_bool(x.dtype())) return clone(x);
  return record_zero("sign", unary(UnaryOp::Sign, x), x);
}
Tensor floor(const Tensor& x) { return record_zero("floor", unary(UnaryOp::Floor, x), x); }
Tensor ceil(const Tensor& x) { return record_zero("ceil", unary(UnaryOp::Ceil, x), x); }
Tensor round(const Tensor& x) { return record_zero("round", unary(UnaryOp::Round, x), x); }
Tensor trunc(const Tensor& x) { return record_zero("trunc", unary(UnaryOp::Trunc, x), x); }

Tensor square(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(square, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return mul(x, x);
  if (is_bool(x.dtype())) return to(x, DType::Int64);  // bools square as the integers that they stand for
  Tensor y = unary(UnaryOp::Square, x);
  if (tracks_grad(x))
    record("square", y, {x},
           [x_ = save(x)](GradContext& c, const Tensor& g) { return mul(g, mul(c[x_], 2)); });
  return y;
}

Tensor exp(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(exp, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Exp, x);
  Tensor y = unary(UnaryOp::Exp, x);
  if (tracks_grad(x))
    record("exp", y, {x}, [y_ = save_output(y)](GradContext& c, const Tensor& g) { return mul(g, c[y_]); });
  return y;
}

Tensor expm1(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(expm1, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Expm1, x);
  Tensor y = unary(UnaryOp::Expm1, x);
  if (tracks_grad(x))
    record("expm1", y, {x},
           [y_ = save_output(y)](GradContext& c, const Tensor& g) { return mul(g, add(c[y_], 1)); });
  return y;
}

Tensor log(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(log, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Log, x);
  Tensor y = unary(UnaryOp::Log, x);
  if (tracks_grad(x))
    record("log", y, {x}, [x_ = save(x)](GradContext& c, const Tensor& g) { return div(g, c[x_]); });
  return y;
}

Tensor log1p(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(log1p, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Log1p, x);
  Tensor y = unary(UnaryOp::Log1p, x);
  if (tracks_grad(x))
    record("log1p", y, {x},
           [x_ = save(x)](GradContext& c, const Tensor& g) { return div(g, add(c[x_], 1)); });
  return y;
}

Tensor log2(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(log2, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return mul(log(x), 1.44269504088896340736);
  Tensor y = unary(UnaryOp::Log2, x);
  if (tracks_grad(x))
    record("log2", y, {x}, [x_ = save(x)](GradContext& c, const Tensor& g) {
      return div(g, mul(c[x_], 0.69314718055994530942));
    });
  return y;
}

Tensor log10(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(log10, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return mul(log(x), 0.43429448190325182765);
  Tensor y = unary(UnaryOp::Log10, x);
  if (tracks_grad(x))
    record("log10", y, {x}, [x_ = save(x)](GradContext& c, const Tensor& g) {
      return div(g, mul(c[x_], 2.30258509299404568402));
    });
  return y;
}

Tensor sqrt(const Tensor& x) {
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Sqrt, x);
  Tensor y = unary(UnaryOp::Sqrt, x);
  if (tracks_grad(x))
    record("sqrt", y, {x},
           [y_ = save_output(y)](GradContext& c, const Tensor& g) { return div(g, mul(c[y_], 2)); });
  return y;
}

Tensor rsqrt(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(rsqrt, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return reciprocal(sqrt(x));
  Tensor y = unary(UnaryOp::Rsqrt, x);
  if (tracks_grad(x))
    record("rsqrt", y, {x}, [y_ = save_output(y)](GradContext& c, const Tensor& g) {
      Tensor r = c[y_];
      return mul(mul(g, -0.5), mul(r, square(r)));
    });
  return y;
}

Tensor reciprocal(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(reciprocal, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Reciprocal, x);
  Tensor y = unary(UnaryOp::Reciprocal, x);
  if (tracks_grad(x))
    record("reciprocal", y, {x},
           [y_ = save_output(y)](GradContext& c, const Tensor& g) { return neg(mul(g, square(c[y_]))); });
  return y;
}

Tensor sin(const Tensor& x) {
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Sin, x);
  Tensor y = unary(UnaryOp::Sin, x);
  if (tracks_grad(x))
    record("sin", y, {x}, [x_ = save(x)](GradContext& c, const Tensor& g) { return mul(g, cos(c[x_])); });
  return y;
}

Tensor cos(const Tensor& x) {
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Cos, x);
  Tensor y = unary(UnaryOp::Cos, x);
  if (tracks_grad(x))
    record("cos", y, {x},
           [x_ = save(x)](GradContext& c, const Tensor& g) { return neg(mul(g, sin(c[x_]))); });
  return y;
}

Tensor tan(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(tan, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Tan, x);
  Tensor y = unary(UnaryOp::Tan, x);
  if (tracks_grad(x))
    record("tan", y, {x},
           [y_ = save_output(y)](GradContext& c, const Tensor& g) { return mul(g, add(square(c[y_]), 1)); });
  return y;
}

Tensor erf(const Tensor& x) {
  Tensor y = unary(UnaryOp::Erf, x);
  if (tracks_grad(x))
    record("erf", y, {x}, [x_ = save(x)](GradContext& c, const Tensor& g) {
      return mul(g, mul(exp(neg(square(c[x_]))), 1.12837916709551257390));
    });
  return y;
}

ClampRange clamp_range(const Tensor& x, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  TERN_CHECK(min || max, ValueError, "clamp: At least one of 'min' or 'max' must not be None");
  constexpr double kInf = std::numeric_limits<double>::infinity();
  ClampRange range;
  range.dtype = x.dtype();
  if (min) range.dtype = promote_types(range.dtype, promote_with_scalar(x.dtype(), *min));
  if (max) range.dtype = promote_types(range.dtype, promote_with_scalar(x.dtype(), *max));
  range.low = min ? param_of(*min) : Param{-kInf, std::numeric_limits<int64_t>::min()};
  range.high = max ? param_of(*max) : Param{kInf, std::numeric_limits<int64_t>::max()};
  if (!is_floating_point(range.dtype) && is_computable(range.dtype) && range.dtype != DType::Bool) {
    // A bound outside the dtype's range bounds nothing.
    int bits = static_cast<int>(itemsize(range.dtype)) * 8;
    bool is_signed = range.dtype != DType::UInt8;
    int64_t lowest =
        is_signed ? (bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1))) : 0;
    int64_t highest =
        is_signed ? (bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (bits - 1)) - 1) : 255;
    range.low.integer = std::min(std::max(range.low.integer, lowest), highest);
    range.high.integer = std::min(std::max(range.high.integer, lowest), highest);
  }
  return range;
}

Tensor clamp_inside(const Tensor& x, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  if (!max) return gt(x, min->to_double());
  Tensor below = lt(x, max->to_double());
  return min ? logical_and(gt(x, min->to_double()), below) : below;
}

Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max) {
  ClampRange range = clamp_range(x, min, max);
  Tensor y = unary(UnaryOp::Clamp, cast(x, range.dtype), range.low, range.high);
  if (tracks_grad(x))
    record("clamp", y, {x}, [x_ = save(x), min, max](GradContext& c, const Tensor& g) {
      return where(clamp_inside(c[x_].detach(), min, max), g, 0);
    });
  return y;
}

}  // namespace tern
