// Losses of an input and a target of one shape, with the gradients of both.
#include <fmt/format.h>

#include <atomic>
#include <cstdio>

#include "tern/ops/activation.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/index.h"
#include "tern/ops/loss.h"
#include "tern/ops/loss_common.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

struct Rule {
  PairLoss loss;
  double parameter;
  Reduction reduction;  ///< None, Mean (by `scale`) or Sum
  double scale;
};

/// dl/dx as operators.
Tensor input_slope(const Rule& r, const Tensor& x, const Tensor& y) {
  switch (r.loss) {
    case PairLoss::Mse:
      return mul(sub(x, y), 2);
    case PairLoss::L1:
      return sign(sub(x, y));
    case PairLoss::SmoothL1:
      return clamp(div(sub(x, y), r.parameter), -1, 1);
    case PairLoss::Huber:
      return clamp(sub(x, y), -r.parameter, r.parameter);
    case PairLoss::Bce:
      return div(sub(x, y), clamp(mul(rsub(x, 1), x), 1e-12, {}));
    case PairLoss::BceWithLogits:
      return sub(sigmoid(x), y);
    case PairLoss::KlDiv:
      return neg(y);
    default:
      return neg(exp(y));
  }
}

/// dl/dy as operators.
Tensor target_slope(const Rule& r, const Tensor& x, const Tensor& y) {
  switch (r.loss) {
    case PairLoss::Bce:
      return sub(clamp(log1p(neg(x)), -100, {}), clamp(log(x), -100, {}));
    case PairLoss::BceWithLogits:
      return neg(x);
    case PairLoss::KlDiv:
      return where(gt(y, 0), sub(add(log(y), 1), x), neg(x));
    case PairLoss::KlDivLog:
      return mul(exp(y), sub(add(y, 1), x));
    default:
      return neg(input_slope(r, x, y));
  }
}

Tensor fused_gradient(const Rule& r, const Tensor& x, const Tensor& y, const Tensor& g_given) {
  const Tensor g = contiguous(g_given);
  Tensor grad = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
  PairLossBackwardArgs args;
  args.op = r.loss;
  args.dtype = x.dtype();
  args.reduction = r.reduction;
  args.numel = x.numel();
  args.parameter = r.parameter;
  args.scale = r.scale;
  args.input = x.data_ptr();
  args.target = y.data_ptr();
  args.grad_loss = g.data_ptr();
  args.grad_input = grad.data_ptr();
  if (args.numel != 0) launch(current_stream(x.device()), kernels::pair_loss_backward, args);
  return grad;
}

/// x and y have one shape and dtype.
Tensor pair(const char* op, Rule r, const Tensor& x_given, const Tensor& y_given) {
  const Tensor x = contiguous(x_given), y = contiguous(y_given);
  Tensor loss = r.reduction == Reduction::None ? empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device())
                                               : empty_contiguous({}, 1, x.dtype(), x.device());
  r.scale = r.reduction == Reduction::Mean        ? 1.0 / static_cast<double>(x.numel())
            : r.reduction == Reduction::BatchMean ? 1.0 / static_cast<double>(x.dim() == 0 ? 1 : x.size(0))
                                                  : 1.0;
  if (r.reduction == Reduction::BatchMean) r.reduction = Reduction::Mean;
  PairLossArgs args;
  args.op = r.loss;
  args.dtype = x.dtype();
  args.reduction = r.reduction;
  args.numel = x.numel();
  args.parameter = r.parameter;
  args.scale = r.scale;
  args.input = x.data_ptr();
  args.target = y.data_ptr();
  args.loss = loss.data_ptr();
  launch(current_stream(x.device()), kernels::pair_loss, args);
  if (tracks_grad(x, y))
    record(op, loss, {x, y}, [r, x_ = save(x), y_ = save(y)](GradContext& c, const Tensor& g) {
      const Tensor a = c[x_], b = c[y_];
      std::array<Tensor, 2> grads;
      if (!is_grad_enabled() && c.needs(0)) grads[0] = fused_gradient(r, a, b, g);
      if (!is_grad_enabled() && !c.needs(1)) return grads;
      const Tensor scaled = r.scale == 1 ? g : mul(g, r.scale);
      if (c.needs(0) && !grads[0].defined()) grads[0] = mul(scaled, input_slope(r, a, b));
      if (c.needs(1)) grads[1] = mul(scaled, target_slope(r, a, b));
      return grads;
    });
  return loss;
}

void check_pair(const char* op, const Tensor& x, const Tensor& y, Reduction reduction) {
  check_same_device(op, {{"input", x}, {"target", y}});
  TERN_CHECK(is_floating_point(x.dtype()) || is_floating_point(y.dtype()), DTypeError,
             "{}: not implemented for {}: convert with to(float32)", op, name(x.dtype()));
  check_reduction(op, reduction);
}

/// Both broadcast and promoted. PyTorch does the first three in this order, so that in them a 0-d tensor
/// counts as much as any.
Tensor broadcast_pair(const char* op, const Rule& r, Tensor x, Tensor y) {
  const bool broadcast_first =
      r.loss == PairLoss::Mse || r.loss == PairLoss::L1 || r.loss == PairLoss::SmoothL1;
  const DType dtype = broadcast_first ? promote_types(x.dtype(), y.dtype()) : result_type(x, y);
  x = to(x, dtype);
  y = to(y, dtype);
  if (x.shape() != y.shape()) {
    const Shape shape = broadcast_shapes(x.shape(), y.shape(), op);
    x = expand(x, shape);
    y = expand(y, shape);
  }
  return pair(op, r, x, y);
}

void check_same_shape(const char* op, const Tensor& x, const Tensor& y) {
  TERN_CHECK(x.shape() == y.shape(), ShapeError,
             "{}: Target size ({}) must be the same as input size ({}): "
             "reshape or expand one",
             op, to_string(y.shape()), to_string(x.shape()));
}

/// Weights may not make more terms than the input has elements.
void check_weight(const char* op, const char* name, const Tensor& weight, const Tensor& input) {
  if (!weight.defined()) return;
  const Shape shape = broadcast_shapes(input.shape(), weight.shape(), op);
  TERN_CHECK(shape == input.shape(), ShapeError,
             "{}: output with shape {} doesn't match the broadcast shape {}: {} has shape {}", op,
             to_string(input.shape()), to_string(shape), name, to_string(weight.shape()));
}

/// As PyTorch does, since it is seldom meant: [n, 1] and [n] become [n, n].
void warn_of_broadcast(const char* op, const Tensor& x, const Tensor& y) {
  static std::atomic<bool> told = false;
  if (x.shape() == y.shape() || told.exchange(true)) return;
  const std::string text = fmt::format(
      "{}: the target size {} differs from the input size {}: both are broadcast, which likely leads to "
      "wrong "
      "results (told once)\n",
      op, to_string(y.shape()), to_string(x.shape()));
  std::fputs(text.c_str(), stderr);
}

Tensor named_pair(const char* op, PairLoss loss, double parameter, const Tensor& x, const Tensor& y,
                  Reduction reduction) {
  check_pair(op, x, y, reduction);
  Tensor result = broadcast_pair(op, {loss, parameter, reduction, 1}, x, y);
  warn_of_broadcast(op, x, y);
  return result;
}

}  // namespace

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(mse_loss, input, target, reduction);
  return named_pair("mse_loss", PairLoss::Mse, 0, input, target, reduction);
}

Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(l1_loss, input, target, reduction);
  return named_pair("l1_loss", PairLoss::L1, 0, input, target, reduction);
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossOptions& o) {
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(smooth_l1_loss, input, target, o);
  TERN_CHECK(o.beta >= 0, ValueError, "smooth_l1_loss: does not support negative values for beta: got {}",
             o.beta);
  return named_pair("smooth_l1_loss", o.beta == 0 ? PairLoss::L1 : PairLoss::SmoothL1, o.beta, input, target,
                    o.reduction);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossOptions& o) {
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(huber_loss, input, target, o);
  TERN_CHECK(o.delta > 0, ValueError, "huber_loss: does not support non-positive values for delta: got {}",
             o.delta);
  return named_pair("huber_loss", PairLoss::Huber, o.delta, input, target, o.reduction);
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const BceOptions& o) {
  TERN_CHECK(!autocasts_on_gpu(input), ValueError,
             "binary_cross_entropy: nn::binary_cross_entropy and nn::BCELoss are unsafe to autocast: combine "
             "the sigmoid "
             "before them with the loss: use nn::binary_cross_entropy_with_logits or nn::BCEWithLogitsLoss, "
             "which are safe "
             "to autocast");
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(
        [&](const Tensor& x, const Tensor& y, const Tensor& weight) {
          return binary_cross_entropy(x, y, {weight, o.reduction});
        },
        input, target, o.weight);
  const char* op = "binary_cross_entropy";
  check_same_shape(op, input, target);
  check_weight(op, "weight", o.weight, input);
  if (!o.weight.defined()) return named_pair(op, PairLoss::Bce, 0, input, target, o.reduction);
  const Tensor terms = named_pair(op, PairLoss::Bce, 0, input, target, Reduction::None);
  return reduced(mul(terms, o.weight), o.reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BceWithLogitsOptions& o) {
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(
        [&](const Tensor& x, const Tensor& y, const Tensor& weight, const Tensor& pos_weight) {
          return binary_cross_entropy_with_logits(x, y, {weight, pos_weight, o.reduction});
        },
        input, target, o.weight, o.pos_weight);
  const char* op = "binary_cross_entropy_with_logits";
  check_same_shape(op, input, target);
  check_pair(op, input, target, o.reduction);
  check_weight(op, "weight", o.weight, input);
  check_weight(op, "pos_weight", o.pos_weight, input);
  const bool plain = !o.weight.defined() && !o.pos_weight.defined();
  if (!o.pos_weight.defined()) {
    const Tensor terms =
        named_pair(op, PairLoss::BceWithLogits, 0, input, target, plain ? o.reduction : Reduction::None);
    return plain ? terms : reduced(mul(terms, o.weight), o.reduction);
  }
  // (1 - y) x - (1 + (w - 1) y) log sigmoid(x)
  const Tensor factor = add(mul(sub(o.pos_weight, 1), target), 1);
  const Tensor terms = sub(mul(rsub(target, 1), input), mul(factor, logsigmoid(input)));
  return reduced(o.weight.defined() ? mul(terms, o.weight) : terms, o.reduction);
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KlDivOptions& o) {
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(kl_div, input, target, o);
  check_pair("kl_div", input, target, Reduction::Mean);
  return broadcast_pair("kl_div", {o.log_target ? PairLoss::KlDivLog : PairLoss::KlDiv, 0, o.reduction, 1},
                        input, target);
}

}  // namespace tern
