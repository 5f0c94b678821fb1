// Finite differences.
#include "tern/autograd/gradcheck.h"

#include <cmath>

#include "tern/autograd/arithmetic.h"
#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"

namespace tern {
namespace {

/// Weights that no symmetry of a formula cancels: fractional parts of multiples of the golden ratio,
/// around 1.
double weight(int64_t i) { return 0.5 + std::fmod(static_cast<double>(i + 1) * 0.6180339887498949, 1.0); }

Tensor weights_like(const Tensor& x, int64_t salt) {
  Tensor w = empty_contiguous(x.shape(), x.numel(), DType::Float64, kCPU);
  for (int64_t i = 0; i < w.numel(); ++i) w.data<double>()[i] = weight(i + salt);
  return w;
}

double weighted_sum(const Tensor& y) {
  Tensor host = compact(y.detach());
  double sum = 0;
  for (int64_t i = 0; i < host.numel(); ++i) sum += host.data<double>()[i] * weight(i);
  return sum;
}

void check_inputs(const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    TERN_CHECK(inputs[i].dtype() == DType::Float64 && inputs[i].device().is_cpu() &&
                   inputs[i].requires_grad() && inputs[i].is_contiguous(),
               ValueError,
               "gradcheck: input {} must be a contiguous float64 leaf on the cpu that requires a gradient, "
               "got {} on "
               "{}{}{}",
               i, name(inputs[i].dtype()), inputs[i].device().str(),
               inputs[i].is_contiguous() ? "" : ", not contiguous",
               inputs[i].requires_grad() ? "" : ", without requires_grad");
}

}  // namespace

void gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
               const std::vector<Tensor>& inputs, GradcheckOptions options) {
  check_inputs(inputs);
  Tensor y = function(inputs);
  // A result without history must not depend on the inputs: its gradients are zero.
  std::vector<Tensor> analytic(inputs.size());
  if (y.requires_grad()) analytic = grad({y}, inputs, {weights_like(y, 0)}, {.allow_unused = true});
  NoGradGuard no_grad;
  for (size_t i = 0; i < inputs.size(); ++i) {
    double* x = inputs[i].data<double>();
    Tensor gradient = analytic[i].defined() ? compact(analytic[i]) : Tensor();
    for (int64_t e = 0; e < inputs[i].numel(); ++e) {
      double kept = x[e];
      x[e] = kept + options.eps;
      double above = weighted_sum(function(inputs));
      x[e] = kept - options.eps;
      double below = weighted_sum(function(inputs));
      x[e] = kept;
      double expected = (above - below) / (2 * options.eps);
      double actual = gradient.defined() ? gradient.data<double>()[e] : 0;
      TERN_CHECK(std::fabs(actual - expected) <= options.atol + options.rtol * std::fabs(expected),
                 AutogradError,
                 "gradcheck: input {}, element {}: the gradient is {}, finite differences give {}", i, e,
                 actual, expected);
    }
  }
}

void gradgradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                   const std::vector<Tensor>& inputs, GradcheckOptions options) {
  check_inputs(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto first = [&](const std::vector<Tensor>& x) {
      EnableGradGuard recording;
      Tensor y = function(x);
      Tensor g = grad({y}, {x[i]}, {weights_like(y, 7)}, {.create_graph = true, .allow_unused = true})[0];
      return g.defined() ? g : filled(x[i].shape(), DType::Float64, kCPU, 0);
    };
    gradcheck(first, inputs, options);
  }
}

}  // namespace tern
