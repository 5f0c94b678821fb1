// A table of vectors, looked up by number.
#include "tern/nn/embedding.h"

#include <fmt/format.h>

#include "tern/autograd/grad_mode.h"
#include "tern/nn/layer_support.h"
#include "tern/ops/embedding.h"

namespace tern::nn {

namespace {

/// The number from the front; checks the sizes too.
std::optional<int64_t> checked_padding(const char* layer, int64_t num_embeddings, int64_t embedding_dim,
                                       std::optional<int64_t> padding_idx) {
  at_least(layer, "num_embeddings", num_embeddings, 0);
  at_least(layer, "embedding_dim", embedding_dim, 0);
  if (!padding_idx) return padding_idx;
  TERN_CHECK(*padding_idx >= -num_embeddings && *padding_idx < num_embeddings, ValueError,
             "{}: padding_idx must be within num_embeddings, got {} of {}", layer, *padding_idx,
             num_embeddings);
  return *padding_idx < 0 ? *padding_idx + num_embeddings : *padding_idx;
}

void draw_rows(const Parameter& weight, std::optional<int64_t> padding_idx) {
  init::normal_(weight);
  if (padding_idx) init::zeros_(weight.detach().select(0, *padding_idx));
}

}  // namespace

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options)
    : padding_idx_(checked_padding("Embedding", num_embeddings, embedding_dim, options.padding_idx)) {
  weight = empty_parameter({num_embeddings, embedding_dim}, options);
  reset_parameters();
}

void Embedding::reset_parameters() { draw_rows(weight, padding_idx_); }

Tensor Embedding::forward(const Tensor& input) const { return embedding(input, weight, padding_idx_); }

std::string Embedding::extra_repr() const {
  std::string text = fmt::format("{}, {}", weight.size(0), weight.size(1));
  return padding_idx_ ? text + fmt::format(", padding_idx={}", *padding_idx_) : text;
}

EmbeddingBag::EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingBagOptions& options)
    : mode_(options.mode),
      include_last_offset_(options.include_last_offset),
      padding_idx_(checked_padding("EmbeddingBag", num_embeddings, embedding_dim, options.padding_idx)) {
  weight = empty_parameter({num_embeddings, embedding_dim}, options);
  reset_parameters();
}

void EmbeddingBag::reset_parameters() { draw_rows(weight, padding_idx_); }

Tensor EmbeddingBag::forward(const Tensor& input, const Tensor& offsets,
                             const Tensor& per_sample_weights) const {
  return embedding_bag(input, weight, offsets,
                       {.mode = mode_,
                        .per_sample_weights = per_sample_weights,
                        .include_last_offset = include_last_offset_,
                        .padding_idx = padding_idx_});
}

std::string EmbeddingBag::extra_repr() const {
  std::string text = fmt::format("{}, {}", weight.size(0), weight.size(1));
  if (padding_idx_) text += fmt::format(", padding_idx={}", *padding_idx_);
  return text + fmt::format(", mode='{}'", bag_mode_word(mode_));
}

}  // namespace tern::nn
