// Attention: softmax of products of queries and keys, times values (Vaswani et al., "Attention is all you
// need", 2017). Scores are computed in blocks, so that they stay in a cache (ops/attention_blocks.h). The
// layers are nn::MultiheadAttention and nn::TransformerEncoder.
#pragma once

#include <optional>

#include "tern/core/tensor.h"

namespace tern {

/// softmax(scale * query key^T + mask) value: query [..., L, E], key [..., S, E] and value [..., S, Ev],
/// whose dimensions before the last two broadcast, give [..., L, Ev].
///
/// attn_mask broadcasts to [..., L, S]: bool, true where a key takes part, or floats that are added to the
/// scores; is_causal lets row i see the columns 0..i instead. A row that sees no key is 0, and so are its
/// gradients. dropout_p > 0 drops weights, always: pass 0 in evaluation. scale is 1 / sqrt(E) unless given.
/// enable_gqa lets several heads of query (dimension -3) share one of key and value, whose number must divide
/// theirs.
///
/// Weights of long sequences are not kept for gradients but computed again, unless there is dropout or the
/// mask requires a gradient. Throws DTypeError unless floating point and of one dtype, ShapeError, ValueError
/// for is_causal beside a mask.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask = {}, double dropout_p = 0,
                                    bool is_causal = false, std::optional<double> scale = {},
                                    bool enable_gqa = false);

namespace detail {

// For nn::MultiheadAttention: heads that stand side by side in the last dimension of [L, N, heads * E], or of
// [N, L, heads * E] with batch_first.

/// As [N, heads, L, E], a view.
Tensor split_heads(const Tensor& x, int64_t heads, bool batch_first);
/// And back.
Tensor join_heads(const Tensor& x, bool batch_first);

struct HeadsOptions {
  int64_t heads = 1;
  bool batch_first = false;
  /// Broadcasts to [N, heads, L, S]: bool, true where a key takes part, floats that are added, or undefined.
  Tensor mask = {};
  double dropout_p = 0;
  bool is_causal = false;
};
/// query [L, N, heads * E], key [S, N, heads * E] and value [S, N, heads * Ev] give [L, N, heads * Ev]; with
/// batch_first N comes first everywhere.
Tensor attention_of_heads(const Tensor& query, const Tensor& key, const Tensor& value,
                          const HeadsOptions& options);
/// The same of one tensor that holds query, key and value beside each other: [L, N, 3 * heads * E].
Tensor attention_of_packed(const Tensor& packed, const HeadsOptions& options);

}  // namespace detail
}  // namespace tern
