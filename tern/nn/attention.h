// Attention of several heads as a layer. The operator is in ops/attention.h, layers made of it in
// nn/transformer.h.
#pragma once

#include <optional>
#include <utility>

#include "tern/nn/linear.h"
#include "tern/nn/module.h"

namespace tern::nn {

/// The Linear behind attention, under the name that PyTorch prints and saves.
struct NonDynamicallyQuantizableLinear final : Linear {
  using Linear::Linear;
  std::string class_name() const override { return "NonDynamicallyQuantizableLinear"; }
};

struct MultiheadAttentionOptions {
  double dropout = 0;  ///< of the weights, in training
  bool bias = true;
  bool add_bias_kv = false;                    ///< one key and value more, which are learned
  bool add_zero_attn = false;                  ///< one key and value more, of zeros
  std::optional<int64_t> kdim = std::nullopt;  ///< features of key; embed_dim when left out
  std::optional<int64_t> vdim = std::nullopt;  ///< of value
  bool batch_first = false;                    ///< [N, L, E] in place of [L, N, E]
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// What a call may be given besides its tensors. Masks are bool, true for what is hidden, or floats that are
/// added to the scores; hidden from view is the other way round in scaled_dot_product_attention.
struct AttentionMasks {
  Tensor key_padding_mask = {};  ///< [N, S], or [S] without a batch
  bool need_weights = true;      ///< without them the call is faster
  Tensor attn_mask = {};         ///< [L, S] or [N * num_heads, L, S]
  bool average_attn_weights = true;
  /// Says that attn_mask, which must be given, is the causal mask; then it need not be read.
  bool is_causal = false;
};

/// Attention by several heads, each with projections of its own, and a projection of all results (Vaswani et
/// al., "Attention is all you need", 2017).
class MultiheadAttention final : public Module {
 public:
  /// Throws ValueError unless both are positive and num_heads divides embed_dim.
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, const MultiheadAttentionOptions& options = {});

  Parameter
      in_proj_weight;       ///< [3 * embed_dim, embed_dim], of query, key and value; absent with kdim or vdim
  Parameter q_proj_weight;  ///< [embed_dim, embed_dim], in its place, as the next two
  Parameter k_proj_weight;  ///< [embed_dim, kdim]
  Parameter v_proj_weight;  ///< [embed_dim, vdim]
  Parameter in_proj_bias;   ///< [3 * embed_dim], zeros at first; or absent
  Parameter bias_k;         ///< [1, 1, embed_dim], with add_bias_kv
  Parameter bias_v;         ///< [1, 1, embed_dim]
  NonDynamicallyQuantizableLinear out_proj;
  double dropout;  ///< of the weights, in training
  TERN_MODULE(in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, bias_k, bias_v,
              out_proj)

  /// Draws the initial numbers of the projections before attention again, and puts biases to 0.
  void reset_parameters();
  /// query [L, N, embed_dim], key [S, N, kdim] and value [S, N, vdim], or N first with batch_first, or
  /// without N, give an output like query, and the weights, undefined unless they are needed: [N, L, S], the
  /// mean of all heads, or [N, num_heads, L, S]. A row that sees no key is NaN with weights and 0 without, as
  /// in PyTorch. Throws ShapeError, ValueError.
  std::pair<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionMasks& masks = {}) const;
  std::pair<Tensor, Tensor> operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                       const AttentionMasks& masks) const {
    return detail::call(*this, query, key, value, masks);
  }

  int64_t embed_dim() const noexcept { return embed_dim_; }
  int64_t num_heads() const noexcept { return num_heads_; }
  int64_t kdim() const noexcept { return kdim_; }
  int64_t vdim() const noexcept { return vdim_; }
  bool add_zero_attn() const noexcept { return add_zero_attn_; }
  bool batch_first() const noexcept { return batch_first_; }
  void set_batch_first(bool batch_first) noexcept { batch_first_ = batch_first; }

 private:
  struct Projected;
  Projected project(const Tensor& query, const Tensor& key, const Tensor& value) const;
  void check_inputs(const Tensor& query, const Tensor& key, const Tensor& value,
                    const AttentionMasks& masks) const;
  Tensor merged_mask(const AttentionMasks& masks, DType dtype, int64_t batch, int64_t added) const;
  std::pair<Tensor, Tensor> attend(Projected projected, const AttentionMasks& masks) const;
  std::pair<Tensor, Tensor> with_weights(const Projected& projected, const Tensor& hidden) const;

  int64_t embed_dim_, num_heads_, kdim_, vdim_;
  bool add_zero_attn_, batch_first_;
};

}  // namespace tern::nn
