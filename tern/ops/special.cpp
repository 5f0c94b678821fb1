// Special functions with their gradients. The element functions are in kernels/special.h.
#include "tern/ops/special.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/creation.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// log(x^(a - 1) e^-x / Gamma(a)): how the share below x grows with x.
Tensor log_gamma_density(const Tensor& a, const Tensor& x) {
  return sub(sub(mul(sub(a, 1), log(x)), x), lgamma(a));
}

/// gammainc and gammaincc, whose gradients differ in their sign.
Tensor gamma_share(BinaryOp op, const Tensor& a, const Tensor& x, double sign) {
  check_takes_floats(name(op), result_type(a, x));
  Tensor y = binary(op, a, x);
  if (tracks_grad(a, x))
    record(name(op), y, {a, x},
           [sa = Side(a), sx = Side(x), a_ = save(a), x_ = save(x), sign](GradContext& c, const Tensor& g) {
             const Tensor shape = c[a_], at = c[x_];
             const Tensor slope = mul(mul(g, sign), exp(log_gamma_density(shape, at)));
             Tensor ga, gx;
             if (c.needs(0))
               ga = sa.of(neg(
                   mul(slope, differentiable_once("gammainc", binary(BinaryOp::StandardGammaGrad, shape, at),
                                                  shape, at))));
             if (c.needs(1)) gx = sx.of(slope);
             return std::array<Tensor, 2>{ga, gx};
           });
  return y;
}

[[noreturn]] void refuse_zeta_gradient() {
  TERN_THROW(NotImplementedError, "zeta: the derivative for x is not implemented: detach() it");
}

}  // namespace

Tensor lgamma(const Tensor& x) {
  Tensor y = unary(UnaryOp::Lgamma, x);
  if (tracks_grad(x))
    record("lgamma", y, {x},
           [x_ = save(x)](GradContext& c, const Tensor& g) { return mul(g, digamma(c[x_])); });
  return y;
}

Tensor digamma(const Tensor& x) {
  Tensor y = unary(UnaryOp::Digamma, x);
  if (tracks_grad(x))
    record("digamma", y, {x},
           [x_ = save(x)](GradContext& c, const Tensor& g) { return mul(g, polygamma(1, c[x_])); });
  return y;
}

Tensor polygamma(int64_t n, const Tensor& x) {
  TERN_CHECK(n >= 0, ValueError, "polygamma(n, x) does not support negative n: got {}", n);
  if (n == 0) return digamma(x);
  const double factorial = std::tgamma(static_cast<double>(n) + 1);
  Tensor y = unary(UnaryOp::Polygamma, x, param_of(static_cast<double>(n)),
                   param_of(n % 2 == 0 ? -factorial : factorial));
  if (tracks_grad(x))
    record("polygamma", y, {x},
           [x_ = save(x), n](GradContext& c, const Tensor& g) { return mul(g, polygamma(n + 1, c[x_])); });
  return y;
}

Tensor erfinv(const Tensor& x) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(tern::erfinv, x);
  Tensor y = unary(UnaryOp::Erfinv, x);
  if (tracks_grad(x))
    record("erfinv", y, {x}, [x_ = save(x)](GradContext& c, const Tensor& g) {
      return mul(g, mul(exp(square(erfinv(c[x_]))), std::sqrt(std::numbers::pi) / 2));
    });
  return y;
}

Tensor mvlgamma(const Tensor& x, int64_t p) {
  TERN_CHECK(p >= 1, ValueError, "mvlgamma: p has to be greater than or equal to 1, got {}", p);
  const DType dtype = is_floating_point(x.dtype()) ? x.dtype() : get_default_dtype();
  const Tensor steps = arange(0, static_cast<double>(p) / 2, 0.5, {.dtype = dtype, .device = x.device()});
  const auto d = static_cast<double>(p);
  const Tensor terms = lgamma(sub(unsqueeze(x, -1), steps));
  return add(sum(terms, {-1}, /*keepdim=*/false, dtype),  // of that dtype under autocast too
             d * (d - 1) / 4 * std::log(std::numbers::pi));
}

Tensor igamma(const Tensor& a, const Tensor& x) { return special::gammainc(a, x); }
Tensor igammac(const Tensor& a, const Tensor& x) { return special::gammaincc(a, x); }

Tensor gcd(const Tensor& a, const Tensor& b) { return binary(BinaryOp::Gcd, a, b); }
Tensor lcm(const Tensor& a, const Tensor& b) { return binary(BinaryOp::Lcm, a, b); }
Tensor bitwise_left_shift(const Tensor& a, const Tensor& b) {
  return binary(BinaryOp::BitwiseLeftShift, a, b);
}
Tensor bitwise_left_shift(const Tensor& a, const Scalar& b) {
  return binary(BinaryOp::BitwiseLeftShift, a, b);
}
Tensor bitwise_left_shift(const Scalar& a, const Tensor& b) {
  return binary(BinaryOp::BitwiseLeftShift, a, b);
}
Tensor bitwise_right_shift(const Tensor& a, const Tensor& b) {
  return binary(BinaryOp::BitwiseRightShift, a, b);
}
Tensor bitwise_right_shift(const Tensor& a, const Scalar& b) {
  return binary(BinaryOp::BitwiseRightShift, a, b);
}
Tensor bitwise_right_shift(const Scalar& a, const Tensor& b) {
  return binary(BinaryOp::BitwiseRightShift, a, b);
}

namespace special {

Tensor gammaln(const Tensor& x) { return lgamma(x); }
Tensor psi(const Tensor& x) { return tern::digamma(x); }
Tensor digamma(const Tensor& x) { return tern::digamma(x); }
Tensor polygamma(int64_t n, const Tensor& x) { return tern::polygamma(n, x); }
Tensor multigammaln(const Tensor& x, int64_t p) { return mvlgamma(x, p); }
Tensor erfinv(const Tensor& x) { return tern::erfinv(x); }

Tensor gammainc(const Tensor& a, const Tensor& x) { return gamma_share(BinaryOp::Gammainc, a, x, 1); }
Tensor gammaincc(const Tensor& a, const Tensor& x) { return gamma_share(BinaryOp::Gammaincc, a, x, -1); }

Tensor zeta(const Tensor& x, const Tensor& q) {
  Tensor y = binary(BinaryOp::Zeta, x, q);
  if (tracks_grad(x, q))
    record("zeta", y, {x, q}, [sq = Side(q), x_ = save(x), q_ = save(q)](GradContext& c, const Tensor& g) {
      if (c.needs(0)) refuse_zeta_gradient();
      const Tensor exponent = c[x_];
      return std::array<Tensor, 2>{Tensor(),
                                   sq.of(neg(mul(g, mul(exponent, zeta(add(exponent, 1), c[q_])))))};
    });
  return y;
}
Tensor zeta(const Tensor& x, const Scalar& q) {
  Tensor y = binary(BinaryOp::Zeta, x, q);
  if (tracks_grad(x))
    record("zeta", y, {x}, [](GradContext&, const Tensor&) -> Tensor { refuse_zeta_gradient(); });
  return y;
}
Tensor zeta(const Scalar& x, const Tensor& q) {
  Tensor y = binary(BinaryOp::Zeta, x, q);
  if (tracks_grad(q))
    record("zeta", y, {q}, [q_ = save(q), x = x.to_double()](GradContext& c, const Tensor& g) {
      return neg(mul(g, mul(zeta(x + 1, c[q_]), x)));
    });
  return y;
}

Tensor ndtr(const Tensor& x) { return mul(erfc(mul(x, -std::numbers::sqrt2 / 2)), 0.5); }

Tensor entr(const Tensor& x) {
  Tensor y;
  {
    NoGradGuard no_grad;
    y = where(lt(x, 0), -std::numeric_limits<double>::infinity(), neg(xlogy(x, x)));
  }
  if (tracks_grad(x))
    record("entr", y, {x},
           [x_ = save(x)](GradContext& c, const Tensor& g) { return neg(mul(g, add(log(c[x_]), 1))); });
  return y;
}

}  // namespace special

}  // namespace tern
