// Finite differences.
#include "tern/autograd/gradcheck.h"

#include <cmath>

#include "tern/autograd/arithmetic.h"
#include "tern/autograd/engine.h"
#include "tern/autograd/grad_mode.h"
#include "tern/base/check.h"
#include "tern/core/memory.h"

namespace tern {
namespace {

/// Weights that no symmetry of a formula cancels: fractional parts of multiples of the golden ratio,
/// around 1.
double weight(int64_t i) { return 0.5 + std::fmod(static_cast<double>(i + 1) * 0.6180339887498949, 1.0); }

size_t first_byte(const Tensor& x) { return static_cast<size_t>(x.storage_offset()) * sizeof(double); }

void set_element(const Tensor& x, size_t i, double value) {
  copy_from_host(*x.storage(), first_byte(x) + i * sizeof(double), &value, sizeof(double));
}

Tensor weights_like(const Tensor& x, int64_t salt) {
  std::vector<double> weights(static_cast<size_t>(x.numel()));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = weight(static_cast<int64_t>(i) + salt);
  Tensor w = empty_contiguous(x.shape(), x.numel(), DType::Float64, x.device());
  copy_from_host(*w.storage(), 0, weights.data(), w.nbytes());
  return w;
}

double weighted_sum(const Tensor& y) {
  const std::vector<double> values = host_values(y);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += values[i] * weight(static_cast<int64_t>(i));
  return sum;
}

void check_inputs(const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    TERN_CHECK(inputs[i].dtype() == DType::Float64 && inputs[i].requires_grad() && inputs[i].is_contiguous(),
               ValueError,
               "gradcheck: input {} must be a contiguous float64 leaf that requires a gradient, got {}{}{}",
               i, name(inputs[i].dtype()), inputs[i].is_contiguous() ? "" : ", not contiguous",
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
    const std::vector<double> x = host_values(inputs[i]);
    const std::vector<double> gradient =
        analytic[i].defined() ? host_values(analytic[i]) : std::vector<double>();
    for (size_t e = 0; e < x.size(); ++e) {
      set_element(inputs[i], e, x[e] + options.eps);
      double above = weighted_sum(function(inputs));
      set_element(inputs[i], e, x[e] - options.eps);
      double below = weighted_sum(function(inputs));
      set_element(inputs[i], e, x[e]);
      double expected = (above - below) / (2 * options.eps);
      double actual = gradient.empty() ? 0 : gradient[e];
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
      return g.defined() ? g : filled(x[i].shape(), DType::Float64, x[i].device(), 0);
    };
    gradcheck(first, inputs, options);
  }
}

}  // namespace tern
