// Cross entropy and negative log likelihood with their gradients. Losses of two
// tensors are in loss_pair.cpp.
#include "tern/ops/loss.h"

#include "tern/autograd/arithmetic.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/index.h"
#include "tern/ops/loss_common.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"

namespace tern {
namespace {

/// What backward needs besides tensors. `problem` has no pointers.
struct Frame {
  CrossEntropyProblem problem;
  int64_t class_dim;
};

void set_tensors(CrossEntropyProblem& p, const Tensor& input, const Tensor& target, const Tensor& weight) {
  p.input = input.data_ptr();
  p.target = static_cast<const int64_t*>(target.data_ptr());
  p.weight = weight.defined() ? weight.data_ptr() : nullptr;
}

/// The gradient as operators: with q = ((1 - e) * onehot(t) + e / C) * weight
/// it is softmax * sum(q) - q.
Tensor gradient_formula(const Frame& f, const Tensor& input, const Tensor& target, const Tensor& weight,
                        const Tensor& saved, const Tensor& g) {
  const CrossEntropyProblem& p = f.problem;
  const Tensor counts = unsqueeze(ne(target, p.ignore_index), f.class_dim);
  Tensor q, divisor;
  {
    NoGradGuard no_grad;
    const Tensor at = where(counts, unsqueeze(target, f.class_dim), 0);
    q = scatter(filled(input.shape(), input.dtype(), input.device(), 0), f.class_dim, at, 1);
    if (p.label_smoothing != 0)
      q = add(mul(q, 1 - p.label_smoothing), p.label_smoothing / static_cast<double>(p.classes));
    if (weight.defined()) {
      Shape shape(input.shape().size(), 1);
      shape[static_cast<size_t>(f.class_dim)] = p.classes;
      q = mul(q, reshape(weight, shape));
    }
    q = where(counts, q, 0);
    divisor = to(reshape(narrow(saved, 0, saved.numel() - 1, 1), IntArrayRef()), input.dtype());
    divisor = where(counts, divisor, 1);  // it is 0 when nothing counts
  }
  const Tensor scale = p.reduction == Reduction::None   ? unsqueeze(g, f.class_dim)
                       : p.reduction == Reduction::Mean ? div(where(counts, g, 0), divisor)
                                                        : g;
  const Tensor slope = p.log_probabilities
                           ? neg(q)
                           : sub(mul(softmax(input, f.class_dim), sum(q, f.class_dim, /*keepdim=*/true)), q);
  return mul(scale, slope);
}

/// Targets are class numbers. All was checked.
Tensor fused(const char* op, const Frame& f, const Tensor& input_given, const Tensor& target_given,
             const Tensor& weight_given) {
  const Tensor input = contiguous(input_given), target = contiguous(target_given);
  const Tensor weight = weight_given.defined() ? contiguous(weight_given.detach()) : weight_given;
  const int64_t rows = f.problem.batch * f.problem.inner;
  const bool is_half = f.problem.dtype == DType::Float16 || f.problem.dtype == DType::BFloat16;
  Tensor loss = f.problem.reduction == Reduction::None
                    ? empty_contiguous(target.shape(), rows, input.dtype(), input.device())
                    : empty_contiguous({}, 1, input.dtype(), input.device());
  Tensor saved = empty_contiguous({2 * rows + 1}, 2 * rows + 1, is_half ? DType::Float32 : f.problem.dtype,
                                  input.device());
  CrossEntropyArgs args;
  args.problem = f.problem;
  set_tensors(args.problem, input, target, weight);
  args.loss = loss.data_ptr();
  args.saved = saved.data_ptr();
  launch(current_stream(input.device()), kernels::cross_entropy, args);
  if (tracks_grad(input))
    record(op, loss, {input},
           [f, input_ = save(input), target_ = save(target), weight_ = save(weight), saved_ = save(saved)](
               GradContext& c, const Tensor& g_given) {
             const Tensor x = c[input_], t = c[target_], w = c[weight_], s = c[saved_];
             if (is_grad_enabled()) return gradient_formula(f, x, t, w, s, g_given);
             const Tensor g = contiguous(g_given);
             Tensor grad = empty_contiguous(x.shape(), x.numel(), x.dtype(), x.device());
             CrossEntropyBackwardArgs back;
             back.problem = f.problem;
             set_tensors(back.problem, x, t, w);
             back.saved = s.data_ptr();
             back.grad_loss = g.data_ptr();
             back.grad_input = grad.data_ptr();
             launch(current_stream(x.device()), kernels::cross_entropy_backward, back);
             return grad;
           });
  return loss;
}

void check_input(const char* op, const Tensor& input, const Tensor& target, const Tensor& weight,
                 int64_t classes) {
  check_same_device(op, {{"input", input}, {"target", target}, {"weight", weight}});
  TERN_CHECK(is_floating_point(input.dtype()), DTypeError,
             "{}: not implemented for {}: the input must be floating point: convert it with to(float32)", op,
             name(input.dtype()));
  TERN_CHECK(!weight.defined() || (weight.dim() == 1 && weight.size(0) == classes), ShapeError,
             "{}: weight tensor should be defined either for all {} classes or "
             "no classes but got weight tensor of shape: {}",
             op, classes, to_string(weight.shape()));
  TERN_CHECK(!weight.defined() || weight.dtype() == input.dtype(), DTypeError,
             "{}: expected weight to have the dtype of the input, {}, got {}", op, name(input.dtype()),
             weight.defined() ? name(weight.dtype()) : "");
}

int64_t class_dim_of(const char* op, const Tensor& input) {
  TERN_CHECK(input.dim() >= 1, ShapeError,
             "{}: expected an input of shape [C], [N, C] or [N, C, d1, ...], "
             "got a 0-d tensor",
             op);
  return input.dim() == 1 ? 0 : 1;
}

/// The problem of class numbers; checks their shape and dtype.
Frame make_frame(const char* op, const Tensor& input, const Tensor& target, int64_t class_dim,
                 Reduction reduction) {
  TERN_CHECK(target.dtype() == DType::Int64 || target.dtype() == DType::UInt8, DTypeError,
             "{}: expected target dtype to be int64 or uint8, but got {}: "
             "convert it with to(int64)",
             op, name(target.dtype()));
  check_reduction(op, reduction);
  Shape expected = input.shape();
  expected.erase(static_cast<size_t>(class_dim));
  if (target.shape() != expected) [[unlikely]] {
    const bool same_rank = target.dim() + 1 == input.dim();
    TERN_CHECK(!same_rank || input.dim() == 1 || input.size(0) == target.size(0), ShapeError,
               "{}: Expected input batch_size ({}) to match target batch_size "
               "({}): input is {}, target is {}",
               op, input.size(0), target.size(0), to_string(input.shape()), to_string(target.shape()));
    TERN_THROW(ShapeError, "{}: Expected target size {}, got {}: input is {}", op, to_string(expected),
               to_string(target.shape()), to_string(input.shape()));
  }
  Frame f{{}, class_dim};
  f.problem.dtype = input.dtype();
  f.problem.reduction = reduction;
  f.problem.classes = input.size(class_dim);
  f.problem.batch = class_dim == 0 ? 1 : input.shape()[0];
  f.problem.inner = 1;
  for (size_t d = 2; d < input.shape().size(); ++d) f.problem.inner *= input.shape()[d];
  return f;
}

Tensor as_int64(const Tensor& target) { return cast(target, DType::Int64); }

/// Targets are probabilities of the classes.
Tensor with_probabilities(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o,
                          int64_t class_dim) {
  TERN_CHECK(is_floating_point(target.dtype()), DTypeError,
             "cross_entropy: Expected floating point type for target with "
             "class probabilities, got {}",
             name(target.dtype()));
  TERN_CHECK(o.ignore_index < 0, ValueError,
             "cross_entropy: ignore_index is not supported for floating point target");
  check_reduction("cross_entropy", o.reduction);
  const int64_t classes = input.size(class_dim);
  Tensor share = target;
  if (o.label_smoothing != 0)
    share = add(mul(target, 1 - o.label_smoothing), o.label_smoothing / static_cast<double>(classes));
  Tensor terms = mul(log_softmax(input, class_dim), share);
  if (o.weight.defined()) {
    Shape shape(input.shape().size(), 1);
    shape[static_cast<size_t>(class_dim)] = classes;
    terms = mul(terms, reshape(o.weight, shape));
  }
  if (o.reduction == Reduction::None) return neg(sum(terms, class_dim));
  const Tensor total = neg(sum(terms));
  return o.reduction == Reduction::Sum
             ? total
             : div(total, static_cast<double>(input.numel()) / static_cast<double>(classes));
}

}  // namespace

Reduction parse_reduction(std::string_view word) {
  if (word == "none") return Reduction::None;
  if (word == "mean") return Reduction::Mean;
  if (word == "sum") return Reduction::Sum;
  TERN_CHECK(word == "batchmean", ValueError,
             "'{}' is not a valid value for reduction: it is none, mean, sum or "
             "batchmean",
             word);
  return Reduction::BatchMean;
}

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o) {
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(
        [&](const Tensor& x, const Tensor& y, const Tensor& weight) {
          CrossEntropyOptions options = o;
          options.weight = weight;
          return cross_entropy(x, y, options);
        },
        input, target, o.weight);
  const char* op = "cross_entropy";
  const int64_t class_dim = class_dim_of(op, input);
  check_input(op, input, target, o.weight, input.shape()[static_cast<size_t>(class_dim)]);
  TERN_CHECK(o.label_smoothing >= 0 && o.label_smoothing <= 1, ValueError,
             "{}: label_smoothing must be between 0.0 and 1.0. Got: {}", op, o.label_smoothing);
  if (input.shape() == target.shape()) return with_probabilities(input, target, o, class_dim);
  Frame f = make_frame(op, input, target, class_dim, o.reduction);
  f.problem.ignore_index = o.ignore_index;
  f.problem.label_smoothing = o.label_smoothing;
  return fused(op, f, input, as_int64(target), o.weight);
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const NllLossOptions& o) {
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(
        [&](const Tensor& x, const Tensor& y, const Tensor& weight) {
          NllLossOptions options = o;
          options.weight = weight;
          return nll_loss(x, y, options);
        },
        input, target, o.weight);
  const char* op = "nll_loss";
  const int64_t class_dim = class_dim_of(op, input);
  check_input(op, input, target, o.weight, input.shape()[static_cast<size_t>(class_dim)]);
  Frame f = make_frame(op, input, target, class_dim, o.reduction);
  f.problem.ignore_index = o.ignore_index;
  f.problem.log_probabilities = true;
  return fused(op, f, input, as_int64(target), o.weight);
}

}  // namespace tern
