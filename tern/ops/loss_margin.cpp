// Losses of rankings, embeddings and margins. All but multilabel_margin_loss are made of other operators,
// whose gradients are theirs.
#include "tern/ops/loss_margin.h"

#include "tern/autograd/autocast_mode.h"
#include "tern/ops/activation.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/distance.h"
#include "tern/ops/index.h"
#include "tern/ops/loss_common.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

/// max(0, x), whose slope at 0 is 1.
Tensor at_least_zero(const Tensor& x) { return clamp(x, 0, {}); }

void check_triplet(const char* op, const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                   double margin, Reduction reduction) {
  check_same_device(op, {{"anchor", anchor}, {"positive", positive}, {"negative", negative}});
  check_reduction(op, reduction);
  TERN_CHECK(margin > 0, ValueError, "{}: margin must be greater than 0, got {}", op, margin);
  TERN_CHECK(anchor.dim() == positive.dim() && positive.dim() == negative.dim(), ShapeError,
             "{}: the anchor, positive, and negative tensors are expected to have the same number of "
             "dimensions, but got {}, {} and {}",
             op, to_string(anchor.shape()), to_string(positive.shape()), to_string(negative.shape()));
}

template <class Distance>
Tensor triplet(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin, bool swap,
               Reduction reduction, const Distance& distance) {
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (swap) far = minimum(far, distance(positive, negative));
  return reduced(at_least_zero(sub(add(near, margin), far)), reduction);
}

/// Class scores: [N, C], or one row as [C] or a number. Gives C.
int64_t check_scores(const char* op, const Tensor& input) {
  TERN_CHECK(is_floating_point(input.dtype()), DTypeError,
             "{}: not implemented for {}: convert the input with to(float32)", op, name(input.dtype()));
  const int64_t classes = input.dim() == 0 ? 1 : input.size(-1);
  TERN_CHECK(input.dim() <= 2 && classes != 0, ShapeError,
             "{}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {}", op,
             to_string(input.shape()));
  return classes;
}

void check_classes(const char* op, const Tensor& target) {
  TERN_CHECK(target.dtype() == DType::Int64, DTypeError,
             "{}: expected target dtype to be int64, but got {}: convert it with to(int64)", op,
             name(target.dtype()));
}

}  // namespace

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossOptions& o) {
  if (autocasts(input1)) [[unlikely]]
    return autocast_float32(margin_ranking_loss, input1, input2, target, o);
  const char* op = "margin_ranking_loss";
  check_same_device(op, {{"input1", input1}, {"input2", input2}, {"target", target}});
  check_reduction(op, o.reduction);
  TERN_CHECK(input1.dim() == input2.dim() && input2.dim() == target.dim(), ShapeError,
             "{}: All input tensors should have same dimension but got sizes: input1: {}, input2: {}, "
             "target: {}",
             op, to_string(input1.shape()), to_string(input2.shape()), to_string(target.shape()));
  return reduced(at_least_zero(rsub(mul(target, sub(input1, input2)), o.margin)), o.reduction);
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, const HingeEmbeddingLossOptions& o) {
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(hinge_embedding_loss, input, target, o);
  check_same_device("hinge_embedding_loss", {{"input", input}, {"target", target}});
  check_reduction("hinge_embedding_loss", o.reduction);
  const Tensor apart = where(ne(target, 1), at_least_zero(rsub(input, o.margin)), 0);
  return reduced(add(apart, where(ne(target, -1), input, 0)), o.reduction);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossOptions& o) {
  if (autocasts(input1)) [[unlikely]]
    return autocast_float32(cosine_embedding_loss, input1, input2, target, o);
  const char* op = "cosine_embedding_loss";
  check_same_device(op, {{"input1", input1}, {"input2", input2}, {"target", target}});
  check_reduction(op, o.reduction);
  const bool batch = target.dim() == 1;
  const int64_t dims = batch ? 2 : 1;
  TERN_CHECK(target.dim() <= 1 && input1.dim() == dims && input2.dim() == dims, ShapeError,
             "{}: expected inputs [N, D] with a target [N], or [D] with [], but found inputs with sizes {} "
             "and {}, and target with size {}",
             op, to_string(input1.shape()), to_string(input2.shape()), to_string(target.shape()));
  const double eps = 1e-12;
  const auto squares = [&](const Tensor& x) { return add(sum(mul(x, x), -1), eps); };
  const Tensor length = sqrt(mul(squares(input1), squares(input2)));
  const Tensor cosine = div(sum(mul(input1, input2), -1), length);
  const Tensor together = where(eq(target, 1), rsub(cosine, 1), 0);
  const Tensor apart = where(eq(target, -1), at_least_zero(sub(cosine, o.margin)), 0);
  return reduced(add(together, apart), o.reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& o) {
  if (autocasts(anchor)) [[unlikely]]
    return autocast_float32(triplet_margin_loss, anchor, positive, negative, o);
  check_triplet("triplet_margin_loss", anchor, positive, negative, o.margin, o.reduction);
  return triplet(anchor, positive, negative, o.margin, o.swap, o.reduction,
                 [&](const Tensor& a, const Tensor& b) { return pairwise_distance(a, b, o.p, o.eps); });
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossOptions& o) {
  check_triplet("triplet_margin_with_distance_loss", anchor, positive, negative, o.margin, o.reduction);
  return triplet(anchor, positive, negative, o.margin, o.swap, o.reduction,
                 [&](const Tensor& a, const Tensor& b) {
                   return o.distance_function ? o.distance_function(a, b) : pairwise_distance(a, b);
                 });
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginLossOptions& o) {
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(
        [&](const Tensor& x, const Tensor& t, const Tensor& weight) {
          return multi_margin_loss(x, t, {o.p, o.margin, weight, o.reduction});
        },
        input, target, o.weight);
  const char* op = "multi_margin_loss";
  check_same_device(op, {{"input", input}, {"target", target}, {"weight", o.weight}});
  check_reduction(op, o.reduction);
  TERN_CHECK(o.p == 1 || o.p == 2, ValueError, "{}: only p == 1 and p == 2 supported, got {}", op, o.p);
  const int64_t classes = check_scores(op, input), rows = input.numel() / classes;
  check_classes(op, target);
  TERN_CHECK(target.numel() == rows && target.dim() <= 1 && (input.dim() < 2 || target.dim() == 1),
             ShapeError,
             "{}: expected a target of one class number for each row, but got target {} for input {}", op,
             to_string(target.shape()), to_string(input.shape()));
  TERN_CHECK(!o.weight.defined() || (o.weight.dim() == 1 && o.weight.size(0) == classes), ShapeError,
             "{}: inconsistent weight size, expected {} but got {}", op, classes,
             to_string(o.weight.shape()));
  TERN_CHECK(!o.weight.defined() || o.weight.dtype() == input.dtype(), DTypeError,
             "{}: expected weight to have the dtype of the input, {}, got {}", op, name(input.dtype()),
             o.weight.defined() ? name(o.weight.dtype()) : "");
  const Tensor x = reshape(input, {rows, classes}), at = reshape(target, {rows, 1});
  Tensor margins = relu(add(x, rsub(gather(x, 1, at), o.margin)));
  if (o.p == 2) margins = square(margins);
  Tensor loss = sum(scatter(margins, 1, at, 0), 1);
  if (o.weight.defined()) loss = mul(loss, gather(o.weight, 0, reshape(target, {rows})));
  return reduced(reshape(div(loss, classes), target.shape()), o.reduction);
}

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target_given, Reduction reduction) {
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(multilabel_margin_loss, input, target_given, reduction);
  const char* op = "multilabel_margin_loss";
  check_same_device(op, {{"input", input}, {"target", target_given}});
  check_reduction(op, reduction);
  MultilabelMarginArgs args;
  args.dtype = input.dtype();
  args.classes = check_scores(op, input);
  args.rows = input.numel() / args.classes;
  check_classes(op, target_given);
  TERN_CHECK(target_given.shape() == input.shape(), ShapeError,
             "{}: inconsistent target size: {} for input of size: {}", op, to_string(target_given.shape()),
             to_string(input.shape()));
  const Tensor x = contiguous(input), target = contiguous(target_given);
  const Tensor loss = empty_of(input.dim() == 2 ? Shape{args.rows} : Shape{}, x);
  const Tensor is_target = empty_contiguous(x.shape(), x.numel(), DType::UInt8, x.device());
  args.input = x.data_ptr();
  args.target = static_cast<const int64_t*>(target.data_ptr());
  args.is_target = static_cast<uint8_t*>(is_target.data_ptr());
  args.loss = loss.data_ptr();
  if (args.rows != 0) launch(current_stream(x.device()), kernels::multilabel_margin, args);
  if (tracks_grad(x))
    record(op, loss, {x},
           [op, rows = args.rows, classes = args.classes, x_ = save(x), target_ = save(target),
            is_target_ = save(is_target)](GradContext& c, const Tensor& g_given) {
             const Tensor y = c[x_], t = c[target_], marks = c[is_target_], g = contiguous(g_given);
             const Tensor grad = empty_of(y.shape(), y);
             MultilabelMarginBackwardArgs back;
             back.dtype = y.dtype();
             back.rows = rows;
             back.classes = classes;
             back.input = y.data_ptr();
             back.target = static_cast<const int64_t*>(t.data_ptr());
             back.is_target = static_cast<const uint8_t*>(marks.data_ptr());
             back.grad_loss = g.data_ptr();
             back.grad_input = grad.data_ptr();
             if (rows != 0) launch(current_stream(y.device()), kernels::multilabel_margin_backward, back);
             return differentiable_once(op, grad, y, g);
           });
  return reduced(loss, reduction);
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossOptions& o) {
  const char* op = "multilabel_soft_margin_loss";
  check_same_device(op, {{"input", input}, {"target", target}, {"weight", o.weight}});
  check_reduction(op, o.reduction);
  TERN_CHECK(input.dim() > 0, ShapeError, "{}: expected an input [..., C], but got a 0-d tensor", op);
  const AutocastPause pause;  // PyTorch's is made of operators that autocast leaves alone
  const Shape shape = broadcast_shapes(input.shape(), target.shape(), op);
  const double classes = static_cast<double>(input.size(-1)), terms = static_cast<double>(shape.back());
  const Tensor x = expand(input, shape), y = expand(target, shape);
  const Tensor loss = binary_cross_entropy_with_logits(x, y, {.weight = o.weight, .reduction = o.reduction});
  if (o.reduction == Reduction::Mean) return terms == classes ? loss : mul(loss, terms / classes);
  return div(o.reduction == Reduction::None ? sum(loss, -1) : loss, classes);
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  if (autocasts(input)) [[unlikely]]
    return autocast_float32(soft_margin_loss, input, target, reduction);
  check_same_device("soft_margin_loss", {{"input", input}, {"target", target}});
  check_reduction("soft_margin_loss", reduction);
  return reduced(neg(logsigmoid(mul(target, input))), reduction);
}

}  // namespace tern
