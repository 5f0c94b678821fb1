// Layers of transformers, and stacks of them (Vaswani et al., "Attention is all you need", 2017).
#pragma once

#include <optional>
#include <string>

#include "tern/nn/any_module.h"
#include "tern/nn/attention.h"
#include "tern/nn/containers.h"
#include "tern/nn/dropout.h"
#include "tern/nn/linear.h"
#include "tern/nn/norm.h"

namespace tern::nn {

struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  ///< or "gelu"
  double layer_norm_eps = 1e-5;
  bool batch_first = false;  ///< [N, L, d_model] in place of [L, N, d_model]
  bool norm_first = false;   ///< normalises what goes into each part, else its sum with what it gives
  bool bias = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

// Masks are those of MultiheadAttention: bool, true for what is hidden, or floats that are added to the
// scores.

struct EncoderMasks {
  Tensor mask = {};                  ///< [L, L] or [N * nhead, L, L]
  Tensor src_key_padding_mask = {};  ///< [N, L], or [L] without a batch
  bool is_causal = false;            ///< says that mask, which must be given, is the causal mask
};

struct DecoderMasks {
  Tensor tgt_mask = {};                 ///< [L, L] or [N * nhead, L, L]
  Tensor memory_mask = {};              ///< [L, S] or [N * nhead, L, S]
  Tensor tgt_key_padding_mask = {};     ///< [N, L], or [L] without a batch
  Tensor memory_key_padding_mask = {};  ///< [N, S], or [S] without a batch
  bool tgt_is_causal = false;           ///< says that the mask, which must be given, is the causal mask
  bool memory_is_causal = false;
};

/// Self-attention, and a network of two layers for each position; each is added to its input.
class TransformerEncoderLayer final : public Module {
 public:
  /// Throws ValueError unless nhead divides d_model, and for other activations.
  TransformerEncoderLayer(int64_t d_model, int64_t nhead, const TransformerLayerOptions& options = {});

  MultiheadAttention self_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2;
  Dropout dropout1, dropout2;
  TERN_MODULE(self_attn, linear1, dropout, linear2, norm1, norm2, dropout1, dropout2)

  /// [L, N, d_model], or [N, L, d_model] with batch_first, or [L, d_model], to the same.
  Tensor forward(const Tensor& src, const EncoderMasks& masks = {}) const;
  Tensor operator()(const Tensor& src, const EncoderMasks& masks) const {
    return detail::call(*this, src, masks);
  }

  bool norm_first;
  std::string activation;
};

/// Self-attention, attention to what an encoder gave, and a network of two layers for each position.
class TransformerDecoderLayer final : public Module {
 public:
  /// Throws ValueError unless nhead divides d_model, and for other activations.
  TransformerDecoderLayer(int64_t d_model, int64_t nhead, const TransformerLayerOptions& options = {});

  MultiheadAttention self_attn, multihead_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout1, dropout2, dropout3;
  TERN_MODULE(self_attn, multihead_attn, linear1, dropout, linear2, norm1, norm2, norm3, dropout1, dropout2,
              dropout3)

  /// tgt [L, N, d_model] and memory [S, N, d_model], or N first with batch_first, or without N, to the shape
  /// of tgt.
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {}) const;
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks) const {
    return detail::call(*this, tgt, memory, masks);
  }

  bool norm_first;
  std::string activation;
};

/// Layers one after the other, and a norm if there is one.
class TransformerEncoder final : public Module {
 public:
  /// The layers are deep copies of the one given: they begin with its numbers.
  TransformerEncoder(const TransformerEncoderLayer& encoder_layer, int64_t num_layers, AnyModule norm_ = {});
  TransformerEncoder(ModuleList<TransformerEncoderLayer> layers_, AnyModule norm_);

  ModuleList<TransformerEncoderLayer> layers;
  AnyModule norm;
  TERN_MODULE(layers, norm)

  /// As TransformerEncoderLayer's. Padded positions are computed like others, also where PyTorch in
  /// evaluation leaves them out and gives 0.
  Tensor forward(const Tensor& src, const EncoderMasks& masks = {}) const;
  Tensor operator()(const Tensor& src, const EncoderMasks& masks) const {
    return detail::call(*this, src, masks);
  }
};

class TransformerDecoder final : public Module {
 public:
  /// The layers are deep copies of the one given: they begin with its numbers.
  TransformerDecoder(const TransformerDecoderLayer& decoder_layer, int64_t num_layers, AnyModule norm_ = {});
  TransformerDecoder(ModuleList<TransformerDecoderLayer> layers_, AnyModule norm_);

  ModuleList<TransformerDecoderLayer> layers;
  AnyModule norm;
  TERN_MODULE(layers, norm)

  /// As TransformerDecoderLayer's.
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {}) const;
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks) const {
    return detail::call(*this, tgt, memory, masks);
  }
};

struct TransformerOptions {
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t num_encoder_layers = 6;
  int64_t num_decoder_layers = 6;
  TransformerLayerOptions layer = {};
};

struct TransformerMasks {
  Tensor src_mask = {};
  Tensor tgt_mask = {};
  Tensor memory_mask = {};
  Tensor src_key_padding_mask = {};
  Tensor tgt_key_padding_mask = {};
  Tensor memory_key_padding_mask = {};
  bool src_is_causal = false;
  bool tgt_is_causal = false;
  bool memory_is_causal = false;
};

/// An encoder and a decoder, each with a norm at its end.
class Transformer final : public Module {
 public:
  explicit Transformer(const TransformerOptions& options = {});
  /// Of parts that are there already; `layer` of the options is not read.
  Transformer(TransformerEncoder encoder_, TransformerDecoder decoder_, const TransformerOptions& options);

  TransformerEncoder encoder;
  TransformerDecoder decoder;
  TERN_MODULE(encoder, decoder)

  /// src [S, N, d_model] and tgt [L, N, d_model], or N first with batch_first, or without N, to the shape of
  /// tgt.
  Tensor forward(const Tensor& src, const Tensor& tgt, const TransformerMasks& masks = {}) const;
  Tensor operator()(const Tensor& src, const Tensor& tgt, const TransformerMasks& masks) const {
    return detail::call(*this, src, tgt, masks);
  }
  /// Draws all weights, xavier_uniform.
  void reset_parameters();
  /// [size, size]: -inf above the diagonal, 0 elsewhere.
  static Tensor generate_square_subsequent_mask(int64_t size, const TensorOptions& options = {});

  int64_t d_model() const noexcept { return d_model_; }
  int64_t nhead() const noexcept { return nhead_; }
  bool batch_first() const noexcept { return batch_first_; }

 private:
  int64_t d_model_, nhead_;
  bool batch_first_;
};

}  // namespace tern::nn
