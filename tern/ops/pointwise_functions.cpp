// Elementary functions of one and two operands with their gradients. Exponentials, logarithms and arithmetic
// are in pointwise.cpp.
#include <cmath>
#include <limits>
#include <numbers>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/activation.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/complex_elementwise.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation_checks.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"

namespace tern {
namespace {

/// y = f(x), whose gradient is gradient(g, x).
template <class Gradient>
Tensor function_of(UnaryOp op, const Tensor& x, Gradient gradient) {
  Tensor y = unary(op, x);
  if (tracks_grad(x))
    record(name(op), y, {x},
           [x_ = save(x), gradient](GradContext& c, const Tensor& g) { return gradient(g, c[x_]); });
  return y;
}

/// 1 - x^2.
Tensor beside_square(const Tensor& x) { return rsub(square(x), 1); }

/// log(base^a + base^b) to that base.
Tensor log_of_sum(const char* op_name, const Tensor& a, const Tensor& b, double log_base) {
  check_takes_floats(op_name, result_type(a, b));
  Tensor y = binary(BinaryOp::Logaddexp, a, b, param_of(log_base));
  if (tracks_grad(a, b))
    record(
        op_name, y, {a, b},
        [sa = Side(a), sb = Side(b), a_ = save(a), b_ = save(b), log_base](GradContext& c, const Tensor& g) {
          const Tensor distance = mul(sub(c[a_], c[b_]), log_base);
          return std::array<Tensor, 2>{c.needs(0) ? sa.of(mul(g, sigmoid(distance))) : Tensor(),
                                       c.needs(1) ? sb.of(mul(g, sigmoid(neg(distance)))) : Tensor()};
        });
  return y;
}

/// log(b) where a * log(b) has that slope: 0 where a is 0 and b not positive.
Tensor xlogy_slope(const Tensor& a, const Tensor& positive, const Tensor& logarithm) {
  return where(logical_and(eq(a.detach(), 0), logical_not(positive)), 0, logarithm);
}

template <class B>
Tensor copysign_of(const Tensor& a, const B& b) {
  Tensor y = binary(BinaryOp::Copysign, a, b);
  const auto slope = [](const Tensor& result, const Tensor& x) {
    return where(eq(x, 0), 0, div(result, x)).detach();
  };
  if constexpr (std::is_same_v<B, Tensor>) {
    if (tracks_grad(a, b))
      record("copysign", y, {a, b},
             [sa = Side(a), sb = Side(b), a_ = save(a), y_ = save_output(y), slope](GradContext& c,
                                                                                    const Tensor& g) {
               return std::array<Tensor, 2>{
                   c.needs(0) ? sa.of(mul(g, slope(c[y_], c[a_]))) : Tensor(),
                   c.needs(1) ? sb.of(filled(g.shape(), g.dtype(), g.device(), 0)) : Tensor()};
             });
  } else if (tracks_grad(a)) {
    record("copysign", y, {a}, [a_ = save(a), y_ = save_output(y), slope](GradContext& c, const Tensor& g) {
      return mul(g, slope(c[y_], c[a_]));
    });
  }
  return y;
}

/// fmax and fmin: `loses` is lt or gt.
Tensor number_extremum(BinaryOp op, const Tensor& a, const Tensor& b,
                       Tensor (*loses)(const Tensor&, const Tensor&)) {
  Tensor y = binary(op, a, b);
  if (tracks_grad(a, b))
    record(name(op), y, {a, b},
           [sa = Side(a), sb = Side(b), a_ = save(a), b_ = save(b), loses](GradContext& c, const Tensor& g) {
             const Tensor u = c[a_].detach(), v = c[b_].detach();
             const Tensor shared = eq(u, v), half = mul(g, 0.5);
             const Tensor a_taken = logical_or(loses(v, u), isnan(v));
             return std::array<Tensor, 2>{sa.of(where(shared, half, where(a_taken, g, 0))),
                                          sb.of(where(shared, half, where(a_taken, 0, g)))};
           });
  return y;
}

}  // namespace

Tensor positive(const Tensor& x) {
  TERN_CHECK(!is_bool(x.dtype()), DTypeError,
             "positive: The `+` operator, on a bool tensor is not supported: convert it with to(int64)");
  return x;
}

Tensor float_power(const Tensor& a, const Tensor& b) {
  return pow(to(a, DType::Float64), to(b, DType::Float64));
}
Tensor float_power(const Tensor& a, const Scalar& b) { return pow(to(a, DType::Float64), b.to_double()); }
Tensor float_power(const Scalar& a, const Tensor& b) { return pow(a.to_double(), to(b, DType::Float64)); }

Tensor asin(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(asin, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Asin, x);
  return function_of(UnaryOp::Asin, x,
                     [](const Tensor& g, const Tensor& v) { return mul(g, rsqrt(beside_square(v))); });
}

Tensor acos(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(acos, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Acos, x);
  return function_of(UnaryOp::Acos, x,
                     [](const Tensor& g, const Tensor& v) { return neg(mul(g, rsqrt(beside_square(v)))); });
}

Tensor atan(const Tensor& x) {
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Atan, x);
  return function_of(UnaryOp::Atan, x,
                     [](const Tensor& g, const Tensor& v) { return div(g, add(square(v), 1)); });
}

Tensor sinh(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(sinh, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Sinh, x);
  return function_of(UnaryOp::Sinh, x, [](const Tensor& g, const Tensor& v) { return mul(g, cosh(v)); });
}

Tensor cosh(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(cosh, x);
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Cosh, x);
  return function_of(UnaryOp::Cosh, x, [](const Tensor& g, const Tensor& v) { return mul(g, sinh(v)); });
}

Tensor asinh(const Tensor& x) {
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Asinh, x);
  return function_of(UnaryOp::Asinh, x,
                     [](const Tensor& g, const Tensor& v) { return mul(g, rsqrt(add(square(v), 1))); });
}

Tensor acosh(const Tensor& x) {
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Acosh, x);
  return function_of(UnaryOp::Acosh, x,
                     [](const Tensor& g, const Tensor& v) { return mul(g, rsqrt(sub(square(v), 1))); });
}

Tensor atanh(const Tensor& x) {
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Atanh, x);
  return function_of(UnaryOp::Atanh, x,
                     [](const Tensor& g, const Tensor& v) { return div(g, beside_square(v)); });
}

Tensor erfc(const Tensor& x) {
  return function_of(UnaryOp::Erfc, x, [](const Tensor& g, const Tensor& v) {
    return mul(g, mul(exp(neg(square(v))), -2 * std::numbers::inv_sqrtpi));
  });
}

Tensor sinc(const Tensor& x) {
  return function_of(UnaryOp::Sinc, x, [](const Tensor& g, const Tensor& in) {
    // The difference below loses most of a 16-bit float.
    const Tensor v = itemsize(in.dtype()) == 2 ? to(in, DType::Float32) : in;
    const Tensor angle = mul(v, std::numbers::pi), square_angle = mul(square(v), std::numbers::pi);
    const Tensor slope = div(sub(mul(angle, cos(angle)), sin(angle)), square_angle);
    return to(where(eq(square_angle.detach(), 0), 0, mul(g, slope)), g.dtype());
  });
}

Tensor exp2(const Tensor& x) {
  Tensor y = unary(UnaryOp::Exp2, x);
  if (tracks_grad(x))
    record("exp2", y, {x}, [y_ = save_output(y)](GradContext& c, const Tensor& g) {
      return mul(mul(g, c[y_]), std::numbers::ln2);
    });
  return y;
}

Tensor frac(const Tensor& x) {
  check_takes_floats("frac", x.dtype());
  Tensor y = unary(UnaryOp::Frac, x);
  if (tracks_grad(x)) record("frac", y, {x}, [](GradContext&, const Tensor& g) { return g; });
  return y;
}

Tensor deg2rad(const Tensor& x) { return mul(x, std::numbers::pi / 180); }
Tensor rad2deg(const Tensor& x) { return mul(x, 180 / std::numbers::pi); }

detail::LogitBounds::LogitBounds(const std::optional<double>& eps) {
  const bool given = eps && *eps >= 0;
  low = given ? *eps : std::numeric_limits<double>::quiet_NaN();
  high = given ? 1 - *eps : low;
}

Tensor logit(const Tensor& x, std::optional<double> eps) {
  const detail::LogitBounds bounds(eps);
  Tensor y = unary(UnaryOp::Logit, x, param_of(bounds.low), param_of(bounds.high));
  if (tracks_grad(x))
    record("logit", y, {x}, [x_ = save(x), bounds](GradContext& c, const Tensor& g) {
      const Tensor v = c[x_], plain = v.detach();
      if (!tracks_grad(g, v))
        return binary(BinaryOp::LogitBackward, g, v, param_of(bounds.low), param_of(bounds.high));
      const Tensor slope = div(g, mul(v, rsub(v, 1)));
      if (!bounds.clamps()) return where(logical_or(lt(plain, 0), gt(plain, 1)), bounds.low, slope);
      return where(logical_or(lt(plain, bounds.low), gt(plain, bounds.high)), 0, slope);
    });
  return y;
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  if (!is_floating_point(x.dtype())) return clone(x);
  const double most = detail::largest_of(x.dtype());
  Tensor y = binary(BinaryOp::NanToNum, x, Scalar(nan), param_of(posinf.value_or(most)),
                    param_of(neginf.value_or(-most)));
  if (tracks_grad(x))
    record("nan_to_num", y, {x},
           [x_ = save(x)](GradContext& c, const Tensor& g) { return where(isfinite(c[x_]), g, 0); });
  return y;
}

Tensor fmax(const Tensor& a, const Tensor& b) { return number_extremum(BinaryOp::Fmax, a, b, lt); }
Tensor fmin(const Tensor& a, const Tensor& b) { return number_extremum(BinaryOp::Fmin, a, b, gt); }

Tensor logaddexp(const Tensor& a, const Tensor& b) { return log_of_sum("logaddexp", a, b, 1); }
Tensor logaddexp2(const Tensor& a, const Tensor& b) {
  return log_of_sum("logaddexp2", a, b, std::numbers::ln2);
}

Tensor xlogy(const Tensor& a, const Tensor& b) {
  Tensor y = binary(BinaryOp::Xlogy, a, b);
  if (tracks_grad(a, b))
    record("xlogy", y, {a, b},
           [sa = Side(a), sb = Side(b), a_ = save(a), b_ = save(b)](GradContext& c, const Tensor& g) {
             const Tensor u = c[a_], v = c[b_];
             Tensor ga, gb;
             if (c.needs(0))
               ga = sa.of(mul(g, xlogy_slope(u, logical_not(le(v.detach(), 0)), log(to(v, g.dtype())))));
             if (c.needs(1)) gb = sb.of(mul(g, div(u, v)));
             return std::array<Tensor, 2>{ga, gb};
           });
  return y;
}

Tensor xlogy(const Tensor& a, const Scalar& b) {
  Tensor y = binary(BinaryOp::Xlogy, a, b);
  if (tracks_grad(a))
    record("xlogy", y, {a}, [a_ = save(a), number = b.to_double()](GradContext& c, const Tensor& g) {
      const Tensor u = c[a_].detach(), slope = mul(g, std::log(number));
      return number <= 0 ? where(eq(u, 0), 0, slope) : slope;
    });
  return y;
}

Tensor xlogy(const Scalar& a, const Tensor& b) {
  Tensor y = binary(BinaryOp::Xlogy, a, b);
  if (tracks_grad(b))
    record("xlogy", y, {b}, [b_ = save(b), a](GradContext& c, const Tensor& g) { return mul(g, a / c[b_]); });
  return y;
}

Tensor hypot(const Tensor& a, const Tensor& b) {
  check_takes_floats("hypot", result_type(a, b));
  Tensor y = binary(BinaryOp::Hypot, a, b);
  if (tracks_grad(a, b))
    record("hypot", y, {a, b},
           [sa = Side(a), sb = Side(b), a_ = save(a), b_ = save(b), y_ = save_output(y)](GradContext& c,
                                                                                         const Tensor& g) {
             const Tensor length = c[y_];
             return std::array<Tensor, 2>{c.needs(0) ? sa.of(mul(g, div(c[a_], length))) : Tensor(),
                                          c.needs(1) ? sb.of(mul(g, div(c[b_], length))) : Tensor()};
           });
  return y;
}

Tensor copysign(const Tensor& a, const Tensor& b) { return copysign_of(a, b); }
Tensor copysign(const Tensor& a, const Scalar& b) { return copysign_of(a, b); }

Tensor heaviside(const Tensor& x, const Tensor& values) {
  TERN_CHECK(x.dtype() == values.dtype(), DTypeError,
             "heaviside: not implemented for tensors with different dtypes: x is {}, values is {}: convert "
             "one with to(dtype)",
             name(x.dtype()), name(values.dtype()));
  return binary(BinaryOp::Heaviside, x, values);
}

}  // namespace tern
