// Attention of several heads: projections, masks, and the form that also gives the weights.
#include "tern/nn/attention.h"

#include <cmath>
#include <limits>

#include "tern/nn/layer_support.h"
#include "tern/ops/attention.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/index.h"
#include "tern/ops/linear.h"
#include "tern/ops/matmul.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/random.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"
#include "tern/ops/softmax.h"

namespace tern::nn {
namespace {

int64_t checked_embed_dim(int64_t embed_dim, int64_t num_heads) {
  TERN_CHECK(
      embed_dim > 0 && num_heads > 0, ValueError,
      "MultiheadAttention: embed_dim and num_heads must be greater than 0, got embed_dim={} and num_heads={} "
      "instead",
      embed_dim, num_heads);
  TERN_CHECK(embed_dim % num_heads == 0, ValueError,
             "MultiheadAttention: embed_dim must be divisible by num_heads, got {} and {}", embed_dim,
             num_heads);
  return embed_dim;
}

/// A third of the rows of a packed parameter; absent if it is.
Tensor third(const Parameter& packed, int64_t i) {
  if (!packed.defined()) return {};
  const int64_t size = packed.size(0) / 3;
  return narrow(packed, 0, i * size, size);
}

void check_mask_dtype(const char* mask_name, const Tensor& mask) {
  TERN_CHECK(!mask.defined() || mask.dtype() == DType::Bool || is_floating_point(mask.dtype()), DTypeError,
             "MultiheadAttention: only bool and floating types of {} are supported, got {}", mask_name,
             name(mask.dtype()));
}

/// With `added` columns more, which hide nothing.
Tensor with_columns(const Tensor& mask, int64_t added) {
  if (!mask.defined() || added == 0) return mask;
  Shape shape = mask.shape();
  shape.back() = added;
  return cat({mask, zeros(shape, {.dtype = mask.dtype(), .device = mask.device()})}, -1);
}

/// A mask as what is added to scores.
Tensor as_bias(const Tensor& mask, DType dtype) {
  if (mask.dtype() != DType::Bool) return to(mask, dtype);
  return masked_fill(zeros(mask.shape(), {.dtype = dtype, .device = mask.device()}), mask,
                     -std::numeric_limits<double>::infinity());
}

}  // namespace

/// Query, key and value after their projections: in one tensor beside each other, or in three.
struct MultiheadAttention::Projected {
  Tensor packed;
  Tensor query, key, value;
};

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads,
                                       const MultiheadAttentionOptions& options)
    : out_proj(checked_embed_dim(embed_dim, num_heads), embed_dim,
               {.bias = options.bias, .device = options.device, .dtype = options.dtype}),
      dropout(options.dropout),
      embed_dim_(embed_dim),
      num_heads_(num_heads),
      kdim_(options.kdim.value_or(embed_dim)),
      vdim_(options.vdim.value_or(embed_dim)),
      add_zero_attn_(options.add_zero_attn),
      batch_first_(options.batch_first) {
  TERN_CHECK(dropout >= 0 && dropout <= 1, ValueError,
             "MultiheadAttention: dropout probability has to be between 0 and 1, but got {}", dropout);
  if (kdim_ == embed_dim && vdim_ == embed_dim) {
    in_proj_weight = empty_parameter({3 * embed_dim, embed_dim}, options);
  } else {
    q_proj_weight = empty_parameter({embed_dim, embed_dim}, options);
    k_proj_weight = empty_parameter({embed_dim, at_least("MultiheadAttention", "kdim", kdim_, 0)}, options);
    v_proj_weight = empty_parameter({embed_dim, at_least("MultiheadAttention", "vdim", vdim_, 0)}, options);
  }
  if (options.bias) in_proj_bias = empty_parameter({3 * embed_dim}, options);
  if (options.add_bias_kv) {
    bias_k = empty_parameter({1, 1, embed_dim}, options);
    bias_v = empty_parameter({1, 1, embed_dim}, options);
  }
  reset_parameters();
}

void MultiheadAttention::reset_parameters() {
  for (const Parameter* weight : {&in_proj_weight, &q_proj_weight, &k_proj_weight, &v_proj_weight})
    if (weight->defined()) init::xavier_uniform_(*weight);
  if (in_proj_bias.defined()) init::zeros_(in_proj_bias);
  if (in_proj_bias.defined() && out_proj.bias.defined()) init::zeros_(out_proj.bias);
  for (const Parameter* bias : {&bias_k, &bias_v})
    if (bias->defined()) init::xavier_normal_(*bias);
}

void MultiheadAttention::check_inputs(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const AttentionMasks& masks) const {
  const int64_t dim = query.dim();
  TERN_CHECK(
      dim == 2 || dim == 3, ShapeError,
      "MultiheadAttention: query should be unbatched 2D or batched 3D tensor but received {}-D query tensor",
      dim);
  TERN_CHECK(
      key.dim() == dim && value.dim() == dim, ShapeError,
      "MultiheadAttention: For {} ({}-D) query, expected key and value to be {}-D but found {}-D and {}-D "
      "tensors respectively",
      dim == 3 ? "batched" : "unbatched", dim, dim, key.dim(), value.dim());
  TERN_CHECK(query.size(-1) == embed_dim_, ShapeError,
             "MultiheadAttention: was expecting embedding dimension of {}, but got {}", embed_dim_,
             query.size(-1));
  TERN_CHECK(key.size(-1) == kdim_ && value.size(-1) == vdim_, ShapeError,
             "MultiheadAttention: key and value must have {} and {} features, got {} and {}", kdim_, vdim_,
             key.size(-1), value.size(-1));
  const int64_t sequence = dim == 3 && batch_first_ ? 1 : 0;
  TERN_CHECK(
      key.size(0) == value.size(0) && key.size(sequence) == value.size(sequence) &&
          (dim == 2 || (key.size(1) == value.size(1) && key.size(1 - sequence) == query.size(1 - sequence))),
      ShapeError,
      "MultiheadAttention: key's sequence and batch dims do not match: query is {}, key is {}, value is {}",
      to_string(query.shape()), to_string(key.shape()), to_string(value.shape()));
  check_mask_dtype("key_padding_mask", masks.key_padding_mask);
  check_mask_dtype("attn_mask", masks.attn_mask);
  TERN_CHECK(!masks.is_causal || masks.attn_mask.defined(), ValueError,
             "MultiheadAttention: Need attn_mask if specifying the is_causal hint: "
             "Transformer::generate_square_subsequent_mask makes one");

  const int64_t rows = query.size(sequence), columns = key.size(sequence),
                batch = dim == 3 ? query.size(1 - sequence) : 1;
  const Tensor &padding = masks.key_padding_mask, &mask = masks.attn_mask;
  const Shape of_padding = dim == 3 ? Shape{batch, columns} : Shape{columns};
  TERN_CHECK(!padding.defined() || padding.shape() == of_padding, ShapeError,
             "MultiheadAttention: The shape of the key_padding_mask is {}, but should be {}.",
             to_string(padding.shape()), to_string(of_padding));
  if (!mask.defined()) return;
  TERN_CHECK(mask.dim() == 2 || mask.dim() == 3, ShapeError,
             "MultiheadAttention: expected attn_mask to be 2-D or 3-D but found {}-D tensor instead",
             mask.dim());
  const Shape of_mask = mask.dim() == 2 ? Shape{rows, columns} : Shape{batch * num_heads_, rows, columns};
  TERN_CHECK(mask.shape() == of_mask, ShapeError,
             "MultiheadAttention: The shape of the {}D attn_mask is {}, but should be {}.", mask.dim(),
             to_string(mask.shape()), to_string(of_mask));
}

MultiheadAttention::Projected MultiheadAttention::project(const Tensor& query, const Tensor& key,
                                                          const Tensor& value) const {
  if (in_proj_weight.defined() && query.is_same(key) && key.is_same(value))
    return {linear(query, in_proj_weight, in_proj_bias), {}, {}, {}};
  const auto weight = [&](const Parameter& own, int64_t i) -> Tensor {
    return own.defined() ? Tensor(own) : third(in_proj_weight, i);
  };
  return {{},
          linear(query, weight(q_proj_weight, 0), third(in_proj_bias, 0)),
          linear(key, weight(k_proj_weight, 1), third(in_proj_bias, 1)),
          linear(value, weight(v_proj_weight, 2), third(in_proj_bias, 2))};
}

/// What is hidden, as [N or 1, num_heads or 1, L or 1, S + added]: bool, or floats that are added; or
/// undefined.
Tensor MultiheadAttention::merged_mask(const AttentionMasks& masks, DType dtype, int64_t batch,
                                       int64_t added) const {
  Tensor mask = with_columns(masks.attn_mask, added), padding = with_columns(masks.key_padding_mask, added);
  if (mask.defined())
    mask = mask.dim() == 2 ? unsqueeze(unsqueeze(mask, 0), 0) : unflatten(mask, 0, {batch, num_heads_});
  if (padding.defined()) padding = unsqueeze(unsqueeze(padding, 1), 1);
  if (!mask.defined() || !padding.defined()) return mask.defined() ? mask : padding;
  if (mask.dtype() == DType::Bool && padding.dtype() == DType::Bool) return logical_or(mask, padding);
  return add(as_bias(mask, dtype), as_bias(padding, dtype));
}

std::pair<Tensor, Tensor> MultiheadAttention::with_weights(const Projected& projected,
                                                           const Tensor& hidden) const {
  const auto heads = [&](const Tensor& x) { return tern::detail::split_heads(x, num_heads_, batch_first_); };
  const Tensor query = heads(projected.query);
  const double scale = std::sqrt(1.0 / static_cast<double>(query.size(-1)));
  Tensor scores = matmul(mul(query, scale), mT(heads(projected.key)));
  if (hidden.defined())
    scores = hidden.dtype() == DType::Bool
                 ? masked_fill(scores, hidden, -std::numeric_limits<double>::infinity())
                 : add(scores, tern::to(hidden, scores.dtype()));
  const Tensor weights = tern::dropout(softmax(scores, -1), dropout, is_training());
  const Tensor y = matmul(weights, heads(projected.value));
  return {tern::detail::join_heads(y, batch_first_), weights};
}

std::pair<Tensor, Tensor> MultiheadAttention::attend(Projected projected, const AttentionMasks& masks) const {
  const int64_t sequence = batch_first_ ? 1 : 0;
  const bool adds = bias_k.defined() || add_zero_attn_;
  if (projected.packed.defined() && (adds || masks.need_weights)) {
    const std::vector<Tensor> parts = chunk(projected.packed, 3, -1);
    projected = {{}, parts[0], parts[1], parts[2]};
  }
  const Tensor& like = projected.packed.defined() ? projected.packed : projected.query;
  const int64_t batch = like.size(1 - sequence);
  int64_t added = 0;
  if (adds) {
    Shape one = projected.key.shape();
    one[static_cast<size_t>(sequence)] = 1;
    const auto append = [&](Tensor& x, const Tensor& more) {
      x = cat({x, expand(tern::to(more, x.dtype()), one)}, sequence);
    };
    if (bias_k.defined()) {
      append(projected.key, bias_k);
      append(projected.value, bias_v);
      ++added;
    }
    if (add_zero_attn_) {
      const Tensor zero = zeros({1, 1, 1}, {.dtype = like.dtype(), .device = like.device()});
      append(projected.key, zero);
      append(projected.value, zero);
      ++added;
    }
  }
  const bool causal = masks.is_causal && !masks.key_padding_mask.defined() && !masks.need_weights;
  const Tensor hidden = causal ? Tensor() : merged_mask(masks, like.dtype(), batch, added);
  if (masks.need_weights) return with_weights(projected, hidden);
  const bool is_bool = hidden.defined() && hidden.dtype() == DType::Bool;
  const tern::detail::HeadsOptions options{.heads = num_heads_,
                                           .batch_first = batch_first_,
                                           .mask = is_bool ? logical_not(hidden) : hidden,
                                           .dropout_p = is_training() ? dropout : 0,
                                           .is_causal = causal};
  if (projected.packed.defined()) return {tern::detail::attention_of_packed(projected.packed, options), {}};
  return {tern::detail::attention_of_heads(projected.query, projected.key, projected.value, options), {}};
}

std::pair<Tensor, Tensor> MultiheadAttention::forward(const Tensor& query, const Tensor& key,
                                                      const Tensor& value,
                                                      const AttentionMasks& masks) const {
  check_inputs(query, key, value, masks);
  const bool batched = query.dim() == 3;
  const int64_t batch_dim = batch_first_ ? 0 : 1;
  Tensor q = query, k = key, v = value;
  AttentionMasks given = masks;
  if (!batched) {
    q = unsqueeze(query, batch_dim);
    k = key.is_same(query) ? q : unsqueeze(key, batch_dim);
    v = value.is_same(key) ? k : unsqueeze(value, batch_dim);
    if (given.key_padding_mask.defined()) given.key_padding_mask = unsqueeze(given.key_padding_mask, 0);
  }
  auto [attended, weights] = attend(project(q, k, v), given);
  Tensor y = out_proj(attended);
  if (weights.defined() && masks.average_attn_weights) weights = mean(weights, 1);
  if (batched) return {y, weights};
  return {squeeze(y, batch_dim), weights.defined() ? squeeze(weights, 0) : weights};
}

}  // namespace tern::nn
