// A table of vectors, looked up by number.
#include "tern/nn/embedding.h"

#include <fmt/format.h>

#include "tern/autograd/grad_mode.h"
#include "tern/nn/layer_support.h"
#include "tern/nn/text.h"
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

/// The numbers of a pretrained layer, where its options want them.
template <class Options>
Tensor pretrained(const char* layer, const Tensor& embeddings, const Options& options) {
  TERN_CHECK(embeddings.dim() == 2, ShapeError, "{}: embeddings are expected to be 2-dimensional, got {}",
             layer, to_string(embeddings.shape()));
  return embeddings.detach().to(options.device.value_or(embeddings.device()),
                                options.dtype.value_or(embeddings.dtype()));
}

/// What the texts of both layers say of norms and gradients.
template <class Options>
std::string norm_text(const Options& o) {
  std::string text;
  if (o.max_norm) text += ", max_norm=" + python_text(*o.max_norm);
  if (o.norm_type != 2) text += ", norm_type=" + python_text(o.norm_type);
  return o.scale_grad_by_freq ? text + ", scale_grad_by_freq=True" : text;
}

template <class Options>
void check_norm(const char* layer, const Options& o) {
  TERN_CHECK(!o.max_norm || *o.max_norm >= 0, ValueError, "{}: max_norm must not be negative, got {}", layer,
             *o.max_norm);
  TERN_CHECK(o.norm_type > 0, ValueError, "{}: norm_type must be above 0, got {}", layer, o.norm_type);
}

tern::EmbeddingOptions lookup_options(int64_t num_embeddings, int64_t embedding_dim,
                                      const EmbeddingOptions& o) {
  check_norm("Embedding", o);
  return {.padding_idx = checked_padding("Embedding", num_embeddings, embedding_dim, o.padding_idx),
          .max_norm = o.max_norm,
          .norm_type = o.norm_type,
          .scale_grad_by_freq = o.scale_grad_by_freq};
}

tern::EmbeddingBagOptions lookup_options(int64_t num_embeddings, int64_t embedding_dim,
                                         const EmbeddingBagOptions& o) {
  check_norm("EmbeddingBag", o);
  TERN_CHECK(o.mode != BagMode::Max || !o.scale_grad_by_freq, ValueError,
             "EmbeddingBag: max mode does not support scaling the gradient by the frequency");
  return {.mode = o.mode,
          .include_last_offset = o.include_last_offset,
          .padding_idx = checked_padding("EmbeddingBag", num_embeddings, embedding_dim, o.padding_idx),
          .max_norm = o.max_norm,
          .norm_type = o.norm_type,
          .scale_grad_by_freq = o.scale_grad_by_freq};
}

}  // namespace

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options)
    : options_(lookup_options(num_embeddings, embedding_dim, options)) {
  weight = empty_parameter({num_embeddings, embedding_dim}, options);
  reset_parameters();
}

Embedding Embedding::from_pretrained(const Tensor& embeddings, bool freeze, const EmbeddingOptions& options) {
  const Tensor numbers = pretrained("Embedding", embeddings, options);
  Embedding layer(0, 0);
  layer.options_ = lookup_options(numbers.size(0), numbers.size(1), options);
  layer.weight = Parameter(numbers, /*requires_grad=*/!freeze);
  return layer;
}

void Embedding::reset_parameters() { draw_rows(weight, options_.padding_idx); }

Tensor Embedding::forward(const Tensor& input) const { return embedding(input, weight, options_); }

std::string Embedding::extra_repr() const {
  std::string text = fmt::format("{}, {}", weight.size(0), weight.size(1));
  if (padding_idx()) text += fmt::format(", padding_idx={}", *padding_idx());
  return text + norm_text(options_);
}

EmbeddingBag::EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingBagOptions& options)
    : options_(lookup_options(num_embeddings, embedding_dim, options)) {
  weight = empty_parameter({num_embeddings, embedding_dim}, options);
  reset_parameters();
}

EmbeddingBag EmbeddingBag::from_pretrained(const Tensor& embeddings, bool freeze,
                                           const EmbeddingBagOptions& options) {
  const Tensor numbers = pretrained("EmbeddingBag", embeddings, options);
  EmbeddingBag layer(0, 0);
  layer.options_ = lookup_options(numbers.size(0), numbers.size(1), options);
  layer.weight = Parameter(numbers, /*requires_grad=*/!freeze);
  return layer;
}

void EmbeddingBag::reset_parameters() { draw_rows(weight, options_.padding_idx); }

Tensor EmbeddingBag::forward(const Tensor& input, const Tensor& offsets,
                             const Tensor& per_sample_weights) const {
  tern::EmbeddingBagOptions options = options_;
  options.per_sample_weights = per_sample_weights;
  return embedding_bag(input, weight, offsets, options);
}

std::string EmbeddingBag::extra_repr() const {
  std::string text = fmt::format("{}, {}", weight.size(0), weight.size(1)) + norm_text(options_) +
                     fmt::format(", mode='{}'", bag_mode_word(mode()));
  return padding_idx() ? text + fmt::format(", padding_idx={}", *padding_idx()) : text;
}

}  // namespace tern::nn
