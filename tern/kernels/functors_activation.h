// The element functions of activations of two operands, and the gradients of those of one. The others are in
// kernels/functors.h.
#pragma once

#include "tern/kernels/functors.h"

namespace tern::functors {

#define TERN_BINARY(Name, Result, expression)                                             \
  template <class C>                                                                      \
  struct Name {                                                                           \
    explicit Name(const Param*) {}                                                        \
    TERN_FN Result operator()(C a, C b) const { return static_cast<Result>(expression); } \
  }

// Gradients that would take several passes as formulas. The first operand is the gradient of the result.
TERN_BINARY(ReluBackward, C, b <= C(0) ? C(0) : a);                                   // b: the result
TERN_BINARY(SoftsignBackward, C, a / ((C(1) + std::abs(b)) * (C(1) + std::abs(b))));  // b: the input
TERN_BINARY(SigmoidBackward, C, a*(C(1) - b) * b);                                    // b: the result
TERN_BINARY(TanhBackward, C, a*(C(1) - b * b));                                       // b: the result
/// As Logit; b: the input. Outside the bounds it is flat, without bounds undefined.
template <class C>
struct LogitBackward {
  C low, high, outside;
  explicit LogitBackward(const Param* p) : low(from_param<C>(p[0])), high(from_param<C>(p[1])), outside(0) {
    if (low != low) outside = low, low = C(0), high = C(1);
  }
  TERN_FN C operator()(C a, C b) const { return b < low || b > high ? outside : a / (b * (C(1) - b)); }
};
template <class C>
struct SiluBackward : ManySteps {  // b: the input
  explicit SiluBackward(const Param*) {}
  TERN_FN C operator()(C a, C b) const {
    C s = math::sigmoid(b);
    return a * s * (C(1) + b * (C(1) - s));
  }
};
template <class C>
struct GeluBackward : ManySteps {  // b: the input
  explicit GeluBackward(const Param*) {}
  TERN_FN C operator()(C a, C b) const {
    auto [cdf, pdf] = math::normal(b);
    return a * (cdf + b * pdf);
  }
};
template <class C>
struct GeluTanhBackward : ManySteps {  // b: the input
  explicit GeluTanhBackward(const Param*) {}
  TERN_FN C operator()(C a, C b) const {
    C t = math::tanh(C(0.79788456080286535588) * (b + C(0.044715) * b * b * b));
    C dt = (C(1) - t * t) * C(0.79788456080286535588) * (C(1) + C(3 * 0.044715) * b * b);
    return a * C(0.5) * (C(1) + t + b * dt);
  }
};
/// b: beta * input; beyond 20, PyTorch's default threshold, the slope is 1
template <class C>
struct SoftplusBackward : ManySteps {
  C threshold;
  explicit SoftplusBackward(const Param* p) : threshold(from_param<C>(p[0])) {}
  TERN_FN C operator()(C a, C b) const { return b > threshold ? a : a * math::sigmoid(b); }
};
template <class C>
struct EluBackward : ManySteps {  // b: the input; params: as Elu's
  C slope, scale;
  explicit EluBackward(const Param* p)
      : slope(from_param<C>(p[0]) * from_param<C>(p[1])), scale(from_param<C>(p[1])) {}
  TERN_FN C operator()(C a, C b) const { return b > C(0) ? a : a * slope * math::exp(scale * b); }
};
template <class C>
struct SeluBackward : ManySteps {  // b: the input
  explicit SeluBackward(const Param*) {}
  TERN_FN C operator()(C a, C b) const {
    return a * Selu<C>::kScale * (b > C(0) ? C(1) : Selu<C>::kAlpha * math::exp(b));
  }
};
template <class C>
struct MishBackward : ManySteps {  // b: the input
  explicit MishBackward(const Param*) {}
  TERN_FN C operator()(C a, C b) const {
    // With t = tanh(softplus(b)) the slope is t + b * sigmoid(b) * (1 - t^2).
    const C e = math::exp(b), n = e * (e + C(2)), d = n + C(2);
    return b > C(20) ? a : a * (n / d + b * (C(4) * e * (e + C(1)) / (d * d)));
  }
};
template <class C>
struct HardswishBackward {  // b: the input
  explicit HardswishBackward(const Param*) {}
  TERN_FN C operator()(C a, C b) const {
    const C inside = a * (b * C(1.0 / 3) + C(0.5));
    return b <= C(-3) ? C(0) : (b < C(3) ? inside : a);
  }
};
/// a where the input b is strictly between the bounds, and beside NaN; params: low, high.
template <class C>
struct HardtanhBackward {
  C low, high;
  explicit HardtanhBackward(const Param* p) : low(from_param<C>(p[0])), high(from_param<C>(p[1])) {}
  TERN_FN C operator()(C a, C b) const { return ((b <= low) | (b >= high)) ? C(0) : a; }
};
template <class C>
struct HardsigmoidBackward {  // b: the input
  explicit HardsigmoidBackward(const Param*) {}
  TERN_FN C operator()(C a, C b) const { return ((b > C(-3)) & (b < C(3))) ? a * C(1.0 / 6) : C(0); }
};
/// a * sigmoid(b), or, with a scale of -1, a * (1 - sigmoid(b)); params: the scale of b.
template <class C>
struct Glu : ManySteps {
  C scale;
  explicit Glu(const Param* p) : scale(from_param<C>(p[0])) {}
  TERN_FN C operator()(C a, C b) const { return a * math::sigmoid(scale * b); }
};
/// a times the slope of the sigmoid at b.
template <class C>
struct GluGate : ManySteps {
  explicit GluGate(const Param*) {}
  TERN_FN C operator()(C a, C b) const {
    const C s = math::sigmoid(b);
    return a * s * (C(1) - s);
  }
};
/// LeakyRelu with a slope b for each element.
TERN_BINARY(Prelu, C, a > C(0) ? a : a * b);
template <class C>
struct LeakyReluBackward {  // b: the input; param: negative slope
  C slope;
  explicit LeakyReluBackward(const Param* p) : slope(from_param<C>(p[0])) {}
  TERN_FN C operator()(C a, C b) const { return b > C(0) ? a : slope * a; }
};
#undef TERN_BINARY

}  // namespace tern::functors
