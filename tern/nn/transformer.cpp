// Layers of transformers, and stacks of them.
#include "tern/nn/transformer.h"

#include <limits>
#include <utility>

#include "tern/nn/layer_support.h"
#include "tern/ops/activation.h"
#include "tern/ops/pointwise.h"

namespace tern::nn {
namespace {

MultiheadAttentionOptions attention_options(const TransformerLayerOptions& options) {
  return {.dropout = options.dropout,
          .bias = options.bias,
          .batch_first = options.batch_first,
          .device = options.device,
          .dtype = options.dtype};
}
LinearOptions linear_options(const TransformerLayerOptions& options) {
  return {.bias = options.bias, .device = options.device, .dtype = options.dtype};
}
LayerNormOptions norm_options(const TransformerLayerOptions& options) {
  return {
      .eps = options.layer_norm_eps, .bias = options.bias, .device = options.device, .dtype = options.dtype};
}

const std::string& checked_activation(const char* layer, const std::string& activation) {
  TERN_CHECK(activation == "relu" || activation == "gelu", ValueError,
             "{}: activation should be relu/gelu, not {}", layer, activation);
  return activation;
}

/// What encoder and decoder layers share.
template <class Layer>
Tensor self_attention(const Layer& layer, const Tensor& x, const Tensor& mask, const Tensor& padding,
                      bool is_causal) {
  const AttentionMasks masks{
      .key_padding_mask = padding, .need_weights = false, .attn_mask = mask, .is_causal = is_causal};
  return layer.dropout1(layer.self_attn(x, x, x, masks).first);
}
template <class Layer>
Tensor feed_forward(const Layer& layer, const Tensor& x) {
  const Tensor hidden = layer.activation == "relu" ? relu_after(layer.linear1, x) : gelu(layer.linear1(x));
  return layer.linear2(layer.dropout(hidden));
}

template <class Layer>
ModuleList<Layer> copies(const char* stack, const Layer& layer, int64_t num_layers) {
  at_least(stack, "num_layers", num_layers, 0);
  ModuleList<Layer> layers;
  for (int64_t i = 0; i < num_layers; ++i) layers.push_back(clone(layer));
  return layers;
}

}  // namespace

// ---- encoder

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                                                 const TransformerLayerOptions& options)
    : self_attn(d_model, nhead, attention_options(options)),
      linear1(d_model, options.dim_feedforward, linear_options(options)),
      dropout(options.dropout),
      linear2(options.dim_feedforward, d_model, linear_options(options)),
      norm1(d_model, norm_options(options)),
      norm2(d_model, norm_options(options)),
      dropout1(options.dropout),
      dropout2(options.dropout),
      norm_first(options.norm_first),
      activation(checked_activation("TransformerEncoderLayer", options.activation)) {}

Tensor TransformerEncoderLayer::forward(const Tensor& src, const EncoderMasks& masks) const {
  const auto attend = [&](const Tensor& x) {
    return self_attention(*this, x, masks.mask, masks.src_key_padding_mask, masks.is_causal);
  };
  if (norm_first) {
    const Tensor x = add(src, attend(norm1(src)));
    return add(x, dropout2(feed_forward(*this, norm2(x))));
  }
  const Tensor x = norm1(add(src, attend(src)));
  return norm2(add(x, dropout2(feed_forward(*this, x))));
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& encoder_layer, int64_t num_layers,
                                       AnyModule norm_)
    : TransformerEncoder(copies("TransformerEncoder", encoder_layer, num_layers), std::move(norm_)) {}

TransformerEncoder::TransformerEncoder(ModuleList<TransformerEncoderLayer> layers_, AnyModule norm_)
    : layers(std::move(layers_)), norm(std::move(norm_)) {}

Tensor TransformerEncoder::forward(const Tensor& src, const EncoderMasks& masks) const {
  Tensor x = src;
  for (const TransformerEncoderLayer& layer : layers) x = layer(x, masks);
  return norm.has_value() ? norm(x) : x;
}

// ---- decoder

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d_model, int64_t nhead,
                                                 const TransformerLayerOptions& options)
    : self_attn(d_model, nhead, attention_options(options)),
      multihead_attn(d_model, nhead, attention_options(options)),
      linear1(d_model, options.dim_feedforward, linear_options(options)),
      dropout(options.dropout),
      linear2(options.dim_feedforward, d_model, linear_options(options)),
      norm1(d_model, norm_options(options)),
      norm2(d_model, norm_options(options)),
      norm3(d_model, norm_options(options)),
      dropout1(options.dropout),
      dropout2(options.dropout),
      dropout3(options.dropout),
      norm_first(options.norm_first),
      activation(checked_activation("TransformerDecoderLayer", options.activation)) {}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory,
                                        const DecoderMasks& masks) const {
  const auto attend = [&](const Tensor& x) {
    return self_attention(*this, x, masks.tgt_mask, masks.tgt_key_padding_mask, masks.tgt_is_causal);
  };
  const auto look_at_memory = [&](const Tensor& x) {
    const AttentionMasks given{.key_padding_mask = masks.memory_key_padding_mask,
                               .need_weights = false,
                               .attn_mask = masks.memory_mask,
                               .is_causal = masks.memory_is_causal};
    return dropout2(multihead_attn(x, memory, memory, given).first);
  };
  if (norm_first) {
    Tensor x = add(tgt, attend(norm1(tgt)));
    x = add(x, look_at_memory(norm2(x)));
    return add(x, dropout3(feed_forward(*this, norm3(x))));
  }
  Tensor x = norm1(add(tgt, attend(tgt)));
  x = norm2(add(x, look_at_memory(x)));
  return norm3(add(x, dropout3(feed_forward(*this, x))));
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& decoder_layer, int64_t num_layers,
                                       AnyModule norm_)
    : TransformerDecoder(copies("TransformerDecoder", decoder_layer, num_layers), std::move(norm_)) {}

TransformerDecoder::TransformerDecoder(ModuleList<TransformerDecoderLayer> layers_, AnyModule norm_)
    : layers(std::move(layers_)), norm(std::move(norm_)) {}

Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks) const {
  Tensor x = tgt;
  for (const TransformerDecoderLayer& layer : layers) x = layer(x, memory, masks);
  return norm.has_value() ? norm(x) : x;
}

// ---- both

namespace {

template <class Layer>
Layer first_layer(const TransformerOptions& options) {
  return Layer(options.d_model, options.nhead, options.layer);
}
LayerNorm last_norm(const TransformerOptions& options) {
  return LayerNorm(options.d_model, norm_options(options.layer));
}

}  // namespace

Transformer::Transformer(const TransformerOptions& options)
    : encoder(first_layer<TransformerEncoderLayer>(options), options.num_encoder_layers, last_norm(options)),
      decoder(first_layer<TransformerDecoderLayer>(options), options.num_decoder_layers, last_norm(options)),
      d_model_(options.d_model),
      nhead_(options.nhead),
      batch_first_(options.layer.batch_first) {
  reset_parameters();
}

Transformer::Transformer(TransformerEncoder encoder_, TransformerDecoder decoder_,
                         const TransformerOptions& options)
    : encoder(std::move(encoder_)),
      decoder(std::move(decoder_)),
      d_model_(options.d_model),
      nhead_(options.nhead),
      batch_first_(options.layer.batch_first) {}

void Transformer::reset_parameters() {
  for (const Tensor& parameter : parameters())
    if (parameter.dim() > 1) init::xavier_uniform_(parameter);
}

Tensor Transformer::forward(const Tensor& src, const Tensor& tgt, const TransformerMasks& masks) const {
  const int64_t batch = batch_first_ ? 0 : 1;
  TERN_CHECK(src.dim() == tgt.dim() && (src.dim() == 2 || src.dim() == 3), ShapeError,
             "Transformer: src and tgt must both be 2-D or 3-D, got {} and {}", to_string(src.shape()),
             to_string(tgt.shape()));
  TERN_CHECK(src.dim() == 2 || src.size(batch) == tgt.size(batch), ShapeError,
             "Transformer: the batch number of src and tgt must be equal, got {} and {}",
             to_string(src.shape()), to_string(tgt.shape()));
  TERN_CHECK(src.size(-1) == d_model_ && tgt.size(-1) == d_model_, ShapeError,
             "Transformer: the feature number of src and tgt must be equal to d_model, got {} and {} for {}",
             src.size(-1), tgt.size(-1), d_model_);
  const Tensor memory = encoder(src, {masks.src_mask, masks.src_key_padding_mask, masks.src_is_causal});
  return decoder(tgt, memory,
                 {masks.tgt_mask, masks.memory_mask, masks.tgt_key_padding_mask,
                  masks.memory_key_padding_mask, masks.tgt_is_causal, masks.memory_is_causal});
}

Tensor Transformer::generate_square_subsequent_mask(int64_t size, const TensorOptions& options) {
  return triu(full({size, size}, -std::numeric_limits<double>::infinity(), options), 1);
}

}  // namespace tern::nn
