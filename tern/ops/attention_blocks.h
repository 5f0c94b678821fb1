// The arithmetic of attention on views of its tensors, nothing recorded: products straight from and into
// whatever layout heads stand in, in blocks that stay in a cache and bound the memory for scores. Internal to
// ops; checks, masks and gradients are in ops/attention.cpp.
#pragma once

#include "tern/core/tensor.h"
#include "tern/ops/dropout_mask.h"

namespace tern::detail {

/// The tensors of one attention, or gradients in their places: views of any strides but adjacent last
/// elements, with the same batch dimensions `...`. What is not there is undefined.
struct Heads {
  Tensor query;    ///< [..., L, E]
  Tensor key;      ///< [..., S, E]
  Tensor value;    ///< [..., S, Ev]
  Tensor output;   ///< [..., L, Ev]
  Tensor bias;     ///< [..., L, S], added to the scores
  Tensor weights;  ///< [..., L, S], contiguous: softmax of the scores, before dropout
};

struct AttentionSettings {
  double scale = 1;
  bool is_causal = false;  ///< row i sees columns 0..i
  const DropoutMask* dropout = nullptr;
};

/// Whether the weights of so many scores are kept from forward to backward, or computed again there.
bool keeps_weights(const Heads& heads, const AttentionSettings& settings);

/// Writes heads.output, and heads.weights if it is defined.
void attend(const Heads& heads, const AttentionSettings& settings);

/// Writes those of grads.query, key and value that are defined, from grads.output. heads.weights may be
/// undefined, unless there is dropout; heads.output is not read.
void attend_backward(const Heads& heads, const Heads& grads, const AttentionSettings& settings);

}  // namespace tern::detail
