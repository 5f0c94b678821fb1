// A table of vectors, looked up by number.
#include "tern/nn/embedding.h"

#include <fmt/format.h>

#include "tern/autograd/grad_mode.h"
#include "tern/nn/layer_support.h"
#include "tern/ops/embedding.h"

namespace tern::nn {

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options)
    : padding_idx_(options.padding_idx) {
  at_least("Embedding", "num_embeddings", num_embeddings, 0);
  at_least("Embedding", "embedding_dim", embedding_dim, 0);
  if (padding_idx_) {
    TERN_CHECK(*padding_idx_ >= -num_embeddings && *padding_idx_ < num_embeddings, ValueError,
               "Embedding: padding_idx must be within num_embeddings, got {} of {}", *padding_idx_,
               num_embeddings);
    if (*padding_idx_ < 0) *padding_idx_ += num_embeddings;
  }
  weight = empty_parameter({num_embeddings, embedding_dim}, options);
  reset_parameters();
}

void Embedding::reset_parameters() {
  init::normal_(weight);
  if (padding_idx_) init::zeros_(weight.detach().select(0, *padding_idx_));
}

Tensor Embedding::forward(const Tensor& input) const { return embedding(input, weight, padding_idx_); }

std::string Embedding::extra_repr() const {
  std::string text = fmt::format("{}, {}", weight.size(0), weight.size(1));
  return padding_idx_ ? text + fmt::format(", padding_idx={}", *padding_idx_) : text;
}

}  // namespace tern::nn
