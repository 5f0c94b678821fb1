// Activations with their gradients: one fused kernel backward, and a formula of operators where second
// derivatives are asked for.
#include "tern/ops/activation.h"

#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"

namespace tern {
namespace {

/// The fused form of `g * f'(v)` where nothing is recorded, else the same as operators.
template <class Formula>
Tensor gradient(BinaryOp fused, const Tensor& g, const Tensor& v, Param param, Formula&& formula) {
  return tracks_grad(g, v) ? formula() : binary(fused, g, v, param);
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
  Tensor y = unary(UnaryOp::Sigmoid, x);
  if (tracks_grad(x))
    record("sigmoid", y, {x}, [y_ = save_output(y)](GradContext& c, const Tensor& g) {
      Tensor v = c[y_];
      return gradient(BinaryOp::SigmoidBackward, g, v, {}, [&] { return mul(g, mul(v, rsub(v, 1))); });
    });
  return y;
}

Tensor tanh(const Tensor& x) {
  Tensor y = unary(UnaryOp::Tanh, x);
  if (tracks_grad(x))
    record("tanh", y, {x}, [y_ = save_output(y)](GradContext& c, const Tensor& g) {
      Tensor v = c[y_];
      return gradient(BinaryOp::TanhBackward, g, v, {}, [&] { return mul(g, rsub(square(v), 1)); });
    });
  return y;
}

Tensor silu(const Tensor& x) {
  Tensor y = unary(UnaryOp::Silu, x);
  if (tracks_grad(x))
    record("silu", y, {x}, [x_ = save(x)](GradContext& c, const Tensor& g) {
      Tensor v = c[x_];
      return gradient(BinaryOp::SiluBackward, g, v, {}, [&] {
        Tensor s = sigmoid(v);
        return mul(g, mul(s, add(mul(v, rsub(s, 1)), 1)));
      });
    });
  return y;
}

Tensor gelu_tanh_gradient(const Tensor& g, const Tensor& x) {
  Tensor t = tanh(mul(add(x, mul(pow(x, 3), 0.044715)), 0.79788456080286535588));
  Tensor dt = mul(rsub(square(t), 1), mul(add(mul(square(x), 3 * 0.044715), 1), 0.79788456080286535588));
  return mul(mul(g, 0.5), add(add(t, 1), mul(x, dt)));
}

Tensor gelu(const Tensor& x, std::string_view approximate) {
  TERN_CHECK(approximate == "none" || approximate == "tanh", ValueError,
             "gelu: approximate argument must be either none or tanh, got '{}'", approximate);
  bool exact = approximate == "none";
  Tensor y = unary(exact ? UnaryOp::Gelu : UnaryOp::GeluTanh, x);
  if (tracks_grad(x))
    record("gelu", y, {x}, [x_ = save(x), exact](GradContext& c, const Tensor& g) {
      Tensor v = c[x_];
      return gradient(exact ? BinaryOp::GeluBackward : BinaryOp::GeluTanhBackward, g, v, {}, [&] {
        if (exact) {
          Tensor cdf = mul(add(erf(mul(v, 0.70710678118654752440)), 1), 0.5);
          Tensor pdf = mul(exp(mul(square(v), -0.5)), 0.39894228040143267794);
          return mul(g, add(cdf, mul(v, pdf)));
        }
        return gelu_tanh_gradient(g, v);
      });
    });
  return y;
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
      return gradient(BinaryOp::SoftplusBackward, g, v, param_of(threshold),
                      [&] { return where(gt(v, threshold), g, mul(g, sigmoid(v))); })
          .to(dtype);
    });
  return y;
}

Tensor logsigmoid(const Tensor& x) {
  Tensor y = unary(UnaryOp::LogSigmoid, x);
  if (tracks_grad(x))
    record("logsigmoid", y, {x},
           [x_ = save(x)](GradContext& c, const Tensor& g) { return mul(g, sigmoid(neg(c[x_]))); });
  return y;
}

Tensor elu(const Tensor& x, double alpha) {
  Tensor y = unary(UnaryOp::Elu, x, param_of(alpha));
  if (tracks_grad(x))
    record("elu", y, {x}, [x_ = save(x), alpha](GradContext& c, const Tensor& g) {
      Tensor v = c[x_];
      return gradient(BinaryOp::EluBackward, g, v, param_of(alpha),
                      [&] { return where(gt(v, 0), g, mul(g, mul(exp(v), alpha))); });
    });
  return y;
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  Tensor y = unary(UnaryOp::LeakyRelu, x, param_of(negative_slope));
  if (tracks_grad(x))
    record("leaky_relu", y, {x}, [x_ = save(x), negative_slope](GradContext& c, const Tensor& g) {
      Tensor v = c[x_];
      return gradient(BinaryOp::LeakyReluBackward, g, v, param_of(negative_slope),
                      [&] { return where(gt(v, 0), g, mul(g, negative_slope)); });
    });
  return y;
}

}  // namespace tern
