// Negative log likelihoods of counts and of normal distributions, made of other operators.
#include <cmath>
#include <limits>
#include <numbers>

#include "tern/autograd/arithmetic.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/index.h"
#include "tern/ops/loss.h"
#include "tern/ops/loss_common.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// Var in a shape that broadcasts to the input's: the same, with one dimension of size 1, or without the
/// last.
Tensor variance_like(const char* op, const Tensor& var, const Tensor& input) {
  if (var.shape() == input.shape()) return var;
  const size_t dims = input.shape().size();
  if (dims > 0 && var.shape() == Shape(input.shape().begin(), input.shape().end() - 1))
    return unsqueeze(var, -1);
  int64_t differing = 0;
  if (var.shape().size() == dims)
    for (size_t d = 0; d < dims; ++d)
      if (var.shape()[d] != input.shape()[d]) differing += var.shape()[d];
  TERN_CHECK(differing == 1, ShapeError,
             "{}: var is of incorrect size {}: expected the input's, {}, with at most one dimension of size "
             "1, or without the last dimension",
             op, to_string(var.shape()), to_string(input.shape()));
  return var;
}

}  // namespace

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNllLossOptions& o) {
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(poisson_nll_loss, input, target, o);
  check_same_device("poisson_nll_loss", {{"input", input}, {"target", target}});
  check_reduction("poisson_nll_loss", o.reduction);
  Tensor loss =
      o.log_input ? sub(exp(input), mul(target, input)) : sub(input, mul(target, log(add(input, o.eps))));
  if (o.full) {
    const Tensor stirling =
        add(sub(mul(target, log(target)), target), mul(log(mul(target, 2 * std::numbers::pi)), 0.5));
    loss = add(loss, masked_fill(stirling, le(target, 1), 0));
  }
  return reduced(loss, o.reduction);
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var_given,
                         const GaussianNllLossOptions& o) {
  const char* op = "gaussian_nll_loss";
  check_same_device(op, {{"input", input}, {"target", target}, {"var", var_given}});
  check_reduction(op, o.reduction);
  Tensor var = variance_like(op, var_given, input);
  if (var.device().is_cpu())
    TERN_CHECK(!any(lt(var, 0)).item<bool>(), ValueError, "{}: var has negative entry/entries", op);
  else
    var = where(lt(var, 0), std::numeric_limits<double>::quiet_NaN(), var);
  var = clone(var);
  {
    const NoGradGuard no_grad;  // the gradient does not know of eps
    var.clamp_(o.eps, {});
  }
  Tensor loss = mul(add(log(var), div(square(sub(input, target)), var)), 0.5);
  if (o.full) loss = add(loss, 0.5 * std::log(2 * std::numbers::pi));
  return reduced(loss, o.reduction);
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, double var,
                         const GaussianNllLossOptions& o) {
  TERN_CHECK(var >= 0, ValueError, "gaussian_nll_loss: var has negative entry/entries: got {}", var);
  return gaussian_nll_loss(input, target, filled(input.shape(), input.dtype(), input.device(), var), o);
}

}  // namespace tern
