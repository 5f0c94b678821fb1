// Activations with their gradients: one fused kernel backward, and a formula of operators where second
// derivatives are asked for.
#include "tern/ops/activation.h"

#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/complex_elementwise.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

struct Params {
  Param first, second;
};

/// The fused form of `g * f'(v)` where nothing is recorded, else the same as operators.
template <class Formula>
Tensor gradient(BinaryOp fused, const Tensor& g, const Tensor& v, Params params, Formula&& formula) {
  return tracks_grad(g, v) ? formula() : binary(fused, g, v, params.first, params.second);
}

/// y = f(x), whose gradient is fused(g, x), or formula(g, x) where it is recorded.
template <class Formula>
Tensor recorded(const char* op, const Tensor& y, const Tensor& x, BinaryOp fused, Params params,
                Formula formula) {
  if (tracks_grad(x))
    record(op, y, {x}, [x_ = save(x), fused, params, formula](GradContext& c, const Tensor& g) {
      const Tensor v = c[x_];
      return gradient(fused, g, v, params, [&] { return formula(g, v); });
    });
  return y;
}

}  // namespace

Tensor relu(const Tensor& x) {
  Tensor y = unary(UnaryOp::Relu, x);
  if (tracks_grad(x))
    record("relu", y, {x}, [y_ = save_output(y)](GradContext& c, const Tensor& g) {
      Tensor v = c[y_];
      return gradient(BinaryOp::ReluBackward, g, v, {}, [&] { return relu_gradient(g, v); });
    });
  return y;
}

Tensor sigmoid(const Tensor& x) {
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Sigmoid, x);
  Tensor y = unary(UnaryOp::Sigmoid, x);
  if (tracks_grad(x))
    record("sigmoid", y, {x}, [y_ = save_output(y)](GradContext& c, const Tensor& g) {
      Tensor v = c[y_];
      return gradient(BinaryOp::SigmoidBackward, g, v, {}, [&] { return mul(g, mul(v, rsub(v, 1))); });
    });
  return y;
}

Tensor tanh(const Tensor& x) {
  if (is_complex(x.dtype())) [[unlikely]]
    return complex_function(ComplexUnary::Tanh, x);
  Tensor y = unary(UnaryOp::Tanh, x);
  if (tracks_grad(x))
    record("tanh", y, {x}, [y_ = save_output(y)](GradContext& c, const Tensor& g) {
      Tensor v = c[y_];
      return gradient(BinaryOp::TanhBackward, g, v, {}, [&] { return mul(g, rsub(square(v), 1)); });
    });
  return y;
}

Tensor silu(const Tensor& x) {
  return recorded("silu", unary(UnaryOp::Silu, x), x, BinaryOp::SiluBackward, {},
                  [](const Tensor& g, const Tensor& v) {
                    Tensor s = sigmoid(v);
                    return mul(g, mul(s, add(mul(v, rsub(s, 1)), 1)));
                  });
}

Tensor gelu_tanh_gradient(const Tensor& g, const Tensor& x) {
  Tensor t = tanh(mul(add(x, mul(pow(x, 3), 0.044715)), 0.79788456080286535588));
  Tensor dt = mul(rsub(square(t), 1), mul(add(mul(square(x), 3 * 0.044715), 1), 0.79788456080286535588));
  return mul(mul(g, 0.5), add(add(t, 1), mul(x, dt)));
}

Tensor gelu(const Tensor& x, std::string_view approximate) {
  TERN_CHECK(approximate == "none" || approximate == "tanh", ValueError,
             "gelu: approximate argument must be either none or tanh, got '{}'", approximate);
  if (approximate == "tanh")
    return recorded("gelu", unary(UnaryOp::GeluTanh, x), x, BinaryOp::GeluTanhBackward, {},
                    gelu_tanh_gradient);
  return recorded("gelu", unary(UnaryOp::Gelu, x), x, BinaryOp::GeluBackward, {},
                  [](const Tensor& g, const Tensor& v) {
                    Tensor cdf = mul(add(erf(mul(v, 0.70710678118654752440)), 1), 0.5);
                    Tensor pdf = mul(exp(mul(square(v), -0.5)), 0.39894228040143267794);
                    return mul(g, add(cdf, mul(v, pdf)));
                  });
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  if (autocasts_on_gpu(x)) [[unlikely]]
    return autocast_float32(softplus, x, beta, threshold);
  Tensor y = unary(UnaryOp::Softplus, x, param_of(beta), param_of(threshold));
  if (tracks_grad(x))
    record("softplus", y, {x}, [x_ = save(x), beta, threshold](GradContext& c, const Tensor& grad) {
      // The forward compares float32 products with the threshold, of 16-bit floats too.
      const DType dtype = grad.dtype();
      const DType wide = beta == 1 || dtype == DType::Float64 ? dtype : DType::Float32;
      const Tensor g = grad.to(wide), v = mul(c[x_].to(wide), beta);
      return gradient(BinaryOp::SoftplusBackward, g, v, {param_of(threshold), {}},
                      [&] { return where(gt(v, threshold), g, mul(g, sigmoid(v))); })
          .to(dtype);
    });
  return y;
}

Tensor logsigmoid(const Tensor& x) {
  return recorded("logsigmoid", unary(UnaryOp::LogSigmoid, x), x, BinaryOp::Glu, {param_of(-1.0), {}},
                  [](const Tensor& g, const Tensor& v) { return mul(g, sigmoid(neg(v))); });
}

namespace {

Tensor elu_of(const char* op, const Tensor& x, double alpha, double scale) {
  const Params params{param_of(alpha), param_of(scale)};
  return recorded(op, unary(UnaryOp::Elu, x, params.first, params.second), x, BinaryOp::EluBackward, params,
                  [alpha, scale](const Tensor& g, const Tensor& v) {
                    return where(gt(v, 0), g, mul(g, mul(exp(mul(v, scale)), alpha * scale)));
                  });
}

}  // namespace

Tensor elu(const Tensor& x, double alpha) { return elu_of("elu", x, alpha, 1); }

Tensor celu(const Tensor& x, double alpha) {
  TERN_CHECK(alpha != 0, ValueError, "celu: alpha cannot be 0");
  return elu_of("celu", x, alpha, 1 / alpha);
}

Tensor selu(const Tensor& x) {
  return recorded("selu", unary(UnaryOp::Selu, x), x, BinaryOp::SeluBackward, {},
                  [](const Tensor& g, const Tensor& v) {
                    constexpr double kScale = 1.05070098735548049342, kAlpha = 1.67326324235437728482;
                    return mul(g, where(gt(v, 0), kScale, mul(exp(v), kScale * kAlpha)));
                  });
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  const Params params{param_of(negative_slope), {}};
  return recorded("leaky_relu", unary(UnaryOp::LeakyRelu, x, params.first), x, BinaryOp::LeakyReluBackward,
                  params, [negative_slope](const Tensor& g, const Tensor& v) {
                    return where(gt(v, 0), g, mul(g, negative_slope));
                  });
}

Tensor rrelu(const Tensor& x, double lower, double upper, bool training,
             const std::optional<Generator>& generator) {
  TERN_CHECK(lower <= upper, ValueError,
             "rrelu: Lower bound should be less than or equal to the upper bound, got {} and {}", lower,
             upper);
  if (!training || lower == upper) return leaky_relu(x, (lower + upper) / 2);
  TERN_CHECK(is_floating_point(x.dtype()), DTypeError,
             "rrelu: not implemented for {}: convert with to(float32)", name(x.dtype()));
  Tensor drawn = empty_of(x.shape(), x);
  uniform_(drawn, lower, upper, generator);
  return mul(x, where(le(x.detach(), 0), drawn, 1));
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  if (autocasts(x)) [[unlikely]]
    return autocast_lower(prelu, x, weight);
  check_same_device("prelu", {{"the input", x}, {"the weight", weight}});
  TERN_CHECK(weight.dim() <= 1, ShapeError,
             "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}", weight.dim());
  const int64_t channels = x.dim() > 1 ? x.size(1) : 1;
  TERN_CHECK(weight.numel() == 1 || weight.numel() == channels, ShapeError,
             "prelu: Mismatch of parameter numbers and input channel size. Found parameter numbers = {} and "
             "channel size = {}",
             weight.numel(), channels);
  TERN_CHECK(x.dtype() == weight.dtype(), DTypeError,
             "prelu: Type promoting not supported. Got {} and {}: convert one of them with to(dtype)",
             name(x.dtype()), name(weight.dtype()));
  std::vector<int64_t> shape;
  if (weight.numel() != 1) shape.assign(static_cast<size_t>(x.dim() - 1), 1), shape[0] = channels;
  const Tensor slope = reshape(weight, shape);
  Tensor y = binary(BinaryOp::Prelu, x, slope);
  if (tracks_grad(x, slope))
    record(
        "prelu", y, {x, slope},
        [sw = Side(slope), x_ = save(x), w_ = save(slope)](GradContext& c, const Tensor& g) {
          const Tensor v = c[x_], w = c[w_], positive = gt(v, 0);
          return std::array<Tensor, 2>{where(positive, g, mul(g, w)), sw.of(mul(g, where(positive, 0, v)))};
        });
  return y;
}

Tensor mish(const Tensor& x) {
  return recorded("mish", unary(UnaryOp::Mish, x), x, BinaryOp::MishBackward, {},
                  [](const Tensor& g, const Tensor& v) {
                    Tensor t = tanh(softplus(v)), s = sigmoid(v);
                    return mul(g, add(t, mul(mul(v, s), rsub(square(t), 1))));
                  });
}

Tensor softsign(const Tensor& x) {
  return recorded("softsign", unary(UnaryOp::Softsign, x), x, BinaryOp::SoftsignBackward, {},
                  [](const Tensor& g, const Tensor& v) { return div(g, square(add(abs(v), 1))); });
}

Tensor hardsigmoid(const Tensor& x) {
  return recorded("hardsigmoid", unary(UnaryOp::Hardsigmoid, x), x, BinaryOp::HardsigmoidBackward, {},
                  [](const Tensor& g, const Tensor& v) {
                    return where(logical_and(gt(v, -3), lt(v, 3)), mul(g, 1.0 / 6), 0);
                  });
}

Tensor hardswish(const Tensor& x) {
  return recorded("hardswish", unary(UnaryOp::Hardswish, x), x, BinaryOp::HardswishBackward, {},
                  [](const Tensor& g, const Tensor& v) {
                    const Tensor inside = mul(g, add(mul(v, 1.0 / 3), 0.5));
                    return where(le(v, -3), 0, where(lt(v, 3), inside, g));
                  });
}

Tensor hardtanh(const Tensor& x, double min, double max) {
  TERN_CHECK(!(min > max), ValueError, "hardtanh: min_val cannot be greater than max_val (got {} and {})",
             min, max);
  TERN_CHECK(x.dtype() != DType::UInt8 || min >= 0, DTypeError,
             "hardtanh: cannot do hardtanh on an unsigned type with negative limits");
  const Params params{param_of(min), param_of(max)};
  return recorded("hardtanh", unary(UnaryOp::Clamp, x, params.first, params.second), x,
                  BinaryOp::HardtanhBackward, params, [min, max](const Tensor& g, const Tensor& v) {
                    return where(logical_or(le(v, min), ge(v, max)), 0, g);
                  });
}

Tensor relu6(const Tensor& x) { return hardtanh(x, 0, 6); }

Tensor hardshrink(const Tensor& x, double lambd) {
  const Tensor v = x.detach();
  return where(le(abs(v), lambd), 0, x);
}

Tensor softshrink(const Tensor& x, double lambd) {
  TERN_CHECK(lambd >= 0, ValueError, "softshrink: lambda must be greater or equal to 0, but found to be {}",
             lambd);
  Tensor y = sub(x.detach(), hardtanh(x.detach(), -lambd, lambd));
  if (tracks_grad(x))
    record("softshrink", y, {x}, [x_ = save(x), lambd](GradContext& c, const Tensor& g) {
      return where(le(abs(c[x_].detach()), lambd), 0, g);
    });
  return y;
}

Tensor tanhshrink(const Tensor& x) { return sub(x, tanh(x)); }

Tensor threshold(const Tensor& x, double threshold, double value) {
  const bool whole = !is_floating_point(x.dtype());  // keep their dtype, and take the numbers in it
  auto number = [whole](const Scalar& s) { return whole ? Scalar(s.to_int()) : s; };
  return where(le(x.detach(), number(threshold)), number(value), x);
}

Tensor glu(const Tensor& x, int64_t dim) {
  TERN_CHECK(x.dim() > 0, ShapeError, "glu: does not support scalars because halving size must be even");
  const int64_t d = wrap_dim(dim, x.dim(), "glu"), half = x.size(d) / 2;
  TERN_CHECK(x.size(d) % 2 == 0, ShapeError,
             "glu: Halving dimension must be even, but dimension {} is size {}", d, x.size(d));
  auto value = [d, half](const Tensor& v) { return narrow(v, d, 0, half); };
  auto gate = [d, half](const Tensor& v) { return narrow(v, d, half, half); };
  const Tensor plain = x.detach();
  Tensor y = binary(BinaryOp::Glu, value(plain), gate(plain), param_of(1.0));
  if (tracks_grad(x))
    record("glu", y, {x}, [x_ = save(x), value, gate, d](GradContext& c, const Tensor& g) {
      const Tensor v = c[x_], a = value(v), b = gate(v);
      if (tracks_grad(g, v)) {
        const Tensor s = sigmoid(b), ga = mul(g, s);
        return cat({ga, mul(mul(ga, a), rsub(s, 1))}, d);
      }
      Tensor grad = empty_contiguous(v.shape(), v.numel(), v.dtype(), v.device());
      binary_out(BinaryOp::Glu, value(grad), g, b, param_of(1.0));
      binary_out(BinaryOp::Mul, gate(grad), binary(BinaryOp::GluGate, g, b), a);
      return grad;
    });
  return y;
}

}  // namespace tern
