// Attention with its gradients: masks, layouts of heads, what is kept for backward. What is launched is in
// attention_blocks.cpp.
#include "tern/ops/attention.h"

#include <cmath>
#include <limits>

#include "tern/ops/attention_blocks.h"
#include "tern/ops/attention_fused.h"
#include "tern/ops/autocast_rules.h"
#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/index.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"

namespace tern {
namespace {

using detail::AttentionSettings;
using detail::Heads;
using detail::HeadsOptions;

constexpr const char* kName = "scaled_dot_product_attention";
constexpr double kHidden = -std::numeric_limits<double>::infinity();

/// A mask as it is computed with. Rows that see no key are all 0: they keep their scores, which softmax can
/// take, and their results are put to 0.
struct Mask {
  Tensor bias;  ///< added to the scores, or undefined
  Tensor dead;  ///< bool, [..., L or 1, 1]: true for such rows; or undefined
};

Mask mask_of(const Tensor& mask, const Tensor& query) {
  if (!mask.defined()) return {};
  if (mask.dtype() == DType::Bool) {
    const Tensor hidden = logical_not(mask), dead = all(hidden, -1, /*keepdim=*/true);
    TensorOptions options;
    options.dtype = query.dtype();
    options.device = query.device();
    return {masked_fill(zeros(mask.shape(), options), logical_and(hidden, logical_not(dead)), kHidden), dead};
  }
  const Tensor dead = eq(amax(mask.detach(), -1, /*keepdim=*/true), kHidden);
  return {masked_fill(to(mask, query.dtype()), dead, 0), dead};
}

Tensor without_dead_rows(const Tensor& x, const Mask& mask) {
  return mask.dead.defined() ? masked_fill(x, mask.dead, 0) : x;
}

/// How the three tensors stand in those that are given, and how the result does.
struct Layout {
  int64_t heads = 0;  ///< side by side in the last of three dimensions; 0: there are no such heads
  bool batch_first = false;
  Shape batch = {};  ///< without heads: the common dimensions before the last two
};

Tensor expanded(const Tensor& x, const Shape& batch) {
  Shape shape = batch;
  shape.push_back(x.size(-2));
  shape.push_back(x.size(-1));
  return x.shape() == shape ? x : expand(x, shape);
}
Tensor view_of(const Tensor& x, const Layout& layout) {
  if (!x.defined()) return {};
  return layout.heads > 0 ? detail::split_heads(x, layout.heads, layout.batch_first)
                          : expanded(x, layout.batch);
}

/// Views of query, key and value in one tensor or three.
Heads views_of(const std::vector<Tensor>& given, const Layout& layout) {
  Heads heads;
  Tensor* parts[] = {&heads.query, &heads.key, &heads.value};
  for (size_t i = 0; i < 3; ++i) {
    if (given.size() == 3) {
      *parts[i] = view_of(given[i], layout);
    } else {
      const int64_t width = given[0].size(-1) / 3;
      *parts[i] = view_of(narrow(given[0], -1, static_cast<int64_t>(i) * width, width), layout);
    }
  }
  return heads;
}

/// The result's shape.
Shape result_shape(const std::vector<Tensor>& given, const Layout& layout, const Heads& heads) {
  Shape shape = layout.heads > 0 ? given[0].shape() : layout.batch;
  if (layout.heads > 0) {
    shape.back() = layout.heads * heads.value.size(-1);
  } else {
    shape.push_back(heads.query.size(-2));
    shape.push_back(heads.value.size(-1));
  }
  return shape;
}

std::vector<Tensor> detached(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> result;
  for (const Tensor& x : tensors) result.push_back(x.detach());
  return result;
}

/// Views without history, with the mask.
Heads heads_of(const std::vector<Tensor>& given, const Layout& layout, const Mask& mask) {
  Heads heads = views_of(detached(given), layout);
  if (!mask.bias.defined()) return heads;
  Shape scores = heads.query.shape();
  scores.back() = heads.key.size(-2);
  Tensor bias = mask.bias.detach();
  if (scores.back() > 1 && (bias.dim() == 0 || bias.size(-1) == 1)) {  // products want adjacent columns
    Shape own = bias.dim() == 0 ? Shape{1} : bias.shape();
    own.back() = scores.back();
    bias = contiguous(expand(bias, own));
  }
  heads.bias = expand(bias, scores);
  return heads;
}

/// What a call is made of besides its tensors.
struct Call {
  Layout layout;
  Mask mask;
  double scale = 1;
  bool is_causal = false;
  std::optional<DropoutMask> dropout = {};

  AttentionSettings settings() const { return {scale, is_causal, dropout ? &*dropout : nullptr}; }
  Tensor dropped(const Tensor& weights) const { return dropout ? dropout->apply(weights) : weights; }
};

/// softmax of the scores, recorded.
Tensor recorded_weights(const Heads& heads, const Call& call) {
  Tensor scores = matmul(mul(heads.query, call.scale), mT(heads.key));
  if (call.mask.bias.defined()) scores = add(scores, call.mask.bias);
  if (call.is_causal) {
    const Tensor visible =
        tril(ones({scores.size(-2), scores.size(-1)}, {.dtype = DType::Bool, .device = scores.device()}));
    scores = masked_fill(scores, logical_not(visible), kHidden);
  }
  return softmax(scores, -1);
}

/// The result by operators, for masks that require a gradient.
Tensor recorded_attention(const std::vector<Tensor>& given, const Call& call) {
  const Heads heads = views_of(given, call.layout);
  const Tensor y =
      without_dead_rows(matmul(call.dropped(recorded_weights(heads, call)), heads.value), call.mask);
  if (call.layout.heads == 0) return y;
  return detail::join_heads(y, call.layout.batch_first);
}

/// The gradients by operators, for second derivatives: those of the views, in the layout of what was given.
std::vector<Tensor> recorded_gradients(const std::vector<Tensor>& given, const Call& call,
                                       const Tensor& grad) {
  const Heads heads = views_of(given, call.layout);
  const Tensor g = without_dead_rows(view_of(grad, call.layout), call.mask);
  const Tensor weights = recorded_weights(heads, call);
  const Tensor of_weights = call.dropped(matmul(g, mT(heads.value)));
  const Tensor of_scores =
      mul(mul(weights, sub(of_weights, sum(mul(of_weights, weights), -1, /*keepdim=*/true))), call.scale);
  std::vector<Tensor> grads{matmul(of_scores, heads.key), matmul(mT(of_scores), heads.query),
                            matmul(mT(call.dropped(weights)), g)};
  for (size_t i = 0; i < 3; ++i) {
    if (call.layout.heads == 0) {
      grads[i] = reduce_to(grads[i], given[i].shape(), given[i].dtype());
    } else {
      grads[i] = detail::join_heads(grads[i], call.layout.batch_first);
    }
  }
  if (given.size() == 1) return {cat(grads, -1)};
  return grads;
}

/// What the forward pass leaves for the other: the weights, or its result and the logarithms of their sums,
/// or nothing, so that they are computed again.
struct Kept {
  Tensor weights, output, log_sums;
};

/// The gradients of the tensors that want one, nothing recorded.
std::vector<Tensor> plain_gradients(const std::vector<Tensor>& given, const Call& call, const Kept& kept,
                                    const Tensor& grad, const std::vector<bool>& wanted) {
  Heads heads = heads_of(given, call.layout, call.mask);
  heads.weights = kept.weights;
  const bool is_fused = kept.log_sums.defined();  // its kernel writes all gradients
  std::vector<Tensor> buffers;
  for (size_t i = 0; i < given.size(); ++i) {
    const Tensor& x = given[i];
    if (!wanted[i] && !is_fused)
      buffers.emplace_back();
    else
      buffers.push_back(
          empty_of(call.layout.heads > 0 ? x.shape() : expanded(x, call.layout.batch).shape(), x));
  }
  Heads grads = views_of(buffers, call.layout);
  grads.output = without_dead_rows(view_of(grad, call.layout), call.mask);
  if (is_fused) heads.output = view_of(kept.output.detach(), call.layout);
  if (!is_fused || !detail::attend_backward_fused(heads, grads, call.settings(), kept.log_sums))
    detail::attend_backward(heads, grads, call.settings());
  for (size_t i = 0; i < given.size(); ++i)
    if (!wanted[i]) buffers[i] = Tensor();
  if (call.layout.heads == 0)
    for (size_t i = 0; i < given.size(); ++i)
      if (wanted[i]) buffers[i] = reduce_to(buffers[i], given[i].shape(), given[i].dtype());
  return buffers;
}

/// The result, with its gradients for what was given.
Tensor attention(const std::vector<Tensor>& given, Call call) {
  const bool tracked = tracks_grad(given);
  if (tracks_grad(call.mask.bias)) return recorded_attention(given, call);
  Tensor y, weights, log_sums;
  {
    NoGradGuard no_grad;
    Heads heads = heads_of(given, call.layout, call.mask);
    y = empty_of(result_shape(given, call.layout, heads), given[0]);
    heads.output = view_of(y, call.layout);
    if (!detail::attend_fused(heads, call.settings(), tracked ? &log_sums : nullptr)) {
      if (tracked && detail::keeps_weights(heads, call.settings())) {
        Shape shape = heads.query.shape();
        shape.back() = heads.key.size(-2);
        heads.weights = weights = empty_of(shape, y);
      }
      detail::attend(heads, call.settings());
    }
    if (call.mask.dead.defined()) heads.output.masked_fill_(call.mask.dead, 0);
  }
  if (!tracked) return y;
  std::vector<Saved> saved;
  for (const Tensor& x : given) saved.push_back(save(x));
  record(kName, y, given,
         [saved = std::move(saved), weights_ = save(weights), log_sums_ = save(log_sums),
          y_ = log_sums.defined() ? save_output(y) : Saved(),
          call = std::move(call)](GradContext& c, const Tensor& g) {
           std::vector<Tensor> inputs;
           std::vector<bool> wanted;
           for (size_t i = 0; i < saved.size(); ++i) {
             inputs.push_back(c[saved[i]]);
             wanted.push_back(c.needs(i));
           }
           if (is_grad_enabled()) return recorded_gradients(inputs, call, g);
           return plain_gradients(inputs, call, {c[weights_], c[y_], c[log_sums_]}, g, wanted);
         });
  return y;
}

// ---- checks

void check_dtypes(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
  check_same_device(kName, {{"query", query}, {"key", key}, {"value", value}, {"attn_mask", mask}});
  TERN_CHECK(
      query.dtype() == key.dtype() && query.dtype() == value.dtype(), DTypeError,
      "{}: Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and "
      "value.dtype: {} instead: convert them with to(dtype)",
      kName, name(query.dtype()), name(key.dtype()), name(value.dtype()));
  TERN_CHECK(is_floating_point(query.dtype()) && is_computable(query.dtype()), DTypeError,
             "{}: not implemented for {}: convert the operands with to(float32)", kName, name(query.dtype()));
  TERN_CHECK(
      !mask.defined() || mask.dtype() == DType::Bool || is_floating_point(mask.dtype()), DTypeError,
      "{}: Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} "
      "and query.dtype: {} instead",
      kName, name(mask.dtype()), name(query.dtype()));
}

void check_shapes(const Tensor& query, const Tensor& key, const Tensor& value) {
  TERN_CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, ShapeError,
             "{}: Expected query, key, and value to all be at least 2 dimensional, but got query.dim: {}, "
             "key.dim: {} "
             "and value.dim: {} instead",
             kName, query.dim(), key.dim(), value.dim());
  TERN_CHECK(query.size(-1) == key.size(-1), ShapeError,
             "{}: query and key must have the same last size, got query {} and key {}", kName,
             to_string(query.shape()), to_string(key.shape()));
  TERN_CHECK(key.size(-2) == value.size(-2), ShapeError,
             "{}: key and value must have the same number of rows, got key {} and value {}", kName,
             to_string(key.shape()), to_string(value.shape()));
}

void check_mask(const Tensor& mask, const Shape& scores) {
  if (!mask.defined()) return;
  TERN_CHECK(broadcasts(mask.shape(), scores) && broadcast_shapes(mask.shape(), scores, kName) == scores,
             ShapeError, "{}: attn_mask of shape {} does not broadcast to the scores' {}", kName,
             to_string(mask.shape()), to_string(scores));
}

Shape batch_of(const Tensor& x) { return Shape(x.shape().begin(), x.shape().end() - 2); }

Shape shape_of_scores(Shape batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

std::optional<DropoutMask> draw_dropout(double p, const Shape& scores, const Tensor& like) {
  TERN_CHECK(p >= 0 && p <= 1, ValueError, "{}: dropout probability has to be between 0 and 1, but got {}",
             kName, p);
  if (p == 0 || checked_numel(scores) == 0) return std::nullopt;
  return DropoutMask(empty_of(scores, like), p);
}

/// Query heads in groups, each of which shares a head of key and value: [..., Hkv, group, L, E], and [...,
/// Hkv, 1, S, E]. A mask that has heads is grouped too.
Tensor grouped_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                         double dropout_p, bool is_causal, std::optional<double> scale) {
  TERN_CHECK(query.dim() >= 3 && key.dim() >= 3 && value.dim() >= 3, ShapeError,
             "{}: enable_gqa needs a dimension of heads before the last two", kName);
  const int64_t heads = query.size(-3), shared = key.size(-3);
  TERN_CHECK(shared == value.size(-3) && shared > 0 && heads % shared == 0, ShapeError,
             "{}: Number of heads in key and value must divide the number of heads in query, got key {}, "
             "value {} and "
             "query {}",
             kName, shared, value.size(-3), heads);
  const Shape groups{shared, heads / shared};
  Tensor grouped_mask = mask;
  if (mask.defined() && mask.dim() >= 3)
    grouped_mask = mask.size(-3) == 1 ? unsqueeze(mask, -3) : unflatten(mask, -3, groups);
  return flatten(
      scaled_dot_product_attention(unflatten(query, -3, groups), unsqueeze(key, -3), unsqueeze(value, -3),
                                   grouped_mask, dropout_p, is_causal, scale),
      -4, -3);
}

double default_scale(int64_t width) { return width == 0 ? 1 : 1 / std::sqrt(static_cast<double>(width)); }

Tensor attention_in_layout(const std::vector<Tensor>& given, const HeadsOptions& options) {
  Call call;
  call.layout = {options.heads, options.batch_first, {}};
  const Heads heads = views_of(detached(given), call.layout);
  const Shape scores = shape_of_scores(batch_of(heads.query), heads.query.size(-2), heads.key.size(-2));
  check_mask(options.mask, scores);
  call.mask = mask_of(options.mask, given[0]);
  call.scale = default_scale(heads.query.size(-1));
  call.is_causal = options.is_causal;
  call.dropout = draw_dropout(options.dropout_p, scores, given[0]);
  return attention(given, std::move(call));
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  if (autocasts(query)) [[unlikely]]
    return autocast_lower(scaled_dot_product_attention, query, key, value, attn_mask, dropout_p, is_causal,
                          scale, enable_gqa);
  check_dtypes(query, key, value, attn_mask);
  check_shapes(query, key, value);
  TERN_CHECK(!(is_causal && attn_mask.defined()), ValueError,
             "{}: Explicit attn_mask should not be set when is_causal=True", kName);
  if (enable_gqa && query.dim() >= 3 && key.dim() >= 3 && query.size(-3) != key.size(-3))
    return grouped_attention(query, key, value, attn_mask, dropout_p, is_causal, scale);
  Call call;
  call.layout.batch =
      broadcast_shapes(broadcast_shapes(batch_of(query), batch_of(key), kName), batch_of(value), kName);
  const Shape scores = shape_of_scores(call.layout.batch, query.size(-2), key.size(-2));
  check_mask(attn_mask, scores);
  call.mask = mask_of(attn_mask, query);
  call.scale = scale.value_or(default_scale(query.size(-1)));
  call.is_causal = is_causal;
  call.dropout = draw_dropout(dropout_p, scores, query);
  return attention({query, key, value}, std::move(call));
}

namespace detail {

Tensor split_heads(const Tensor& x, int64_t heads, bool batch_first) {
  const Tensor y = unflatten(x, -1, {heads, -1});
  return batch_first ? permute(y, {0, 2, 1, 3}) : permute(y, {1, 2, 0, 3});
}

Tensor join_heads(const Tensor& x, bool batch_first) {
  return flatten(batch_first ? permute(x, {0, 2, 1, 3}) : permute(x, {2, 0, 1, 3}), -2, -1);
}

Tensor attention_of_heads(const Tensor& query, const Tensor& key, const Tensor& value,
                          const HeadsOptions& options) {
  if (autocasts(query)) [[unlikely]]
    return autocast_lower(attention_of_heads, query, key, value, options);
  return attention_in_layout({query, key, value}, options);
}

Tensor attention_of_packed(const Tensor& packed, const HeadsOptions& options) {
  if (autocasts(packed)) [[unlikely]]
    return autocast_lower(attention_of_packed, packed, options);
  return attention_in_layout({packed}, options);
}

}  // namespace detail
}  // namespace tern
