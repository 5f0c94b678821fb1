// A table of vectors, looked up by number. The operator is in ops/embedding.h.
#pragma once

#include <optional>

#include "tern/nn/module.h"
#include "tern/ops/embedding.h"

namespace tern::nn {

struct EmbeddingOptions {
  /// This row starts as zeros and gets no gradient; negative counts from the end.
  std::optional<int64_t> padding_idx = std::nullopt;
  /// Each call first scales the rows in use whose norm of order norm_type is above max_norm down to it, in
  /// `weight`, without a gradient.
  std::optional<double> max_norm = std::nullopt;
  double norm_type = 2;
  /// The gradient of each row is divided by how often its number occurs in the input.
  bool scale_grad_by_freq = false;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// Rows of `weight` for whole numbers of any shape: [...] to [..., embedding_dim]. Rows start standard
/// normal.
class Embedding final : public Module {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options = {});
  /// One whose weight is `embeddings` [num_embeddings, embedding_dim] (converted and moved if the options say
  /// so, else shared), with `freeze` not to be learned. Throws ShapeError for other shapes.
  static Embedding from_pretrained(const Tensor& embeddings, bool freeze = true,
                                   const EmbeddingOptions& options = {});

  Parameter weight;  ///< [num_embeddings, embedding_dim]
  TERN_MODULE(weight)

  Tensor forward(const Tensor& input) const;
  void reset_parameters();
  std::string extra_repr() const override;
  std::optional<int64_t> padding_idx() const noexcept { return options_.padding_idx; }
  /// Those of each lookup.
  const tern::EmbeddingOptions& options() const noexcept { return options_; }

 private:
  tern::EmbeddingOptions options_;
};

struct EmbeddingBagOptions {
  BagMode mode = BagMode::Mean;
  bool include_last_offset = false;  ///< the last offset is the end of the last bag
  /// Rows of this number are left out; it starts as zeros and gets no gradient.
  std::optional<int64_t> padding_idx = std::nullopt;
  std::optional<double> max_norm = std::nullopt;  ///< as in EmbeddingOptions
  double norm_type = 2;
  bool scale_grad_by_freq = false;  ///< as in EmbeddingOptions; not for maxima
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// Sums, means or maxima of rows of `weight` for bags of numbers; see tern::embedding_bag. Rows start
/// standard normal.
class EmbeddingBag final : public Module {
 public:
  EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingBagOptions& options = {});
  /// As Embedding::from_pretrained.
  static EmbeddingBag from_pretrained(const Tensor& embeddings, bool freeze = true,
                                      const EmbeddingBagOptions& options = {});

  Parameter weight;  ///< [num_embeddings, embedding_dim]
  TERN_MODULE(weight)

  Tensor forward(const Tensor& input, const Tensor& offsets = {},
                 const Tensor& per_sample_weights = {}) const;
  void reset_parameters();
  std::string extra_repr() const override;
  BagMode mode() const noexcept { return options_.mode; }
  bool include_last_offset() const noexcept { return options_.include_last_offset; }
  std::optional<int64_t> padding_idx() const noexcept { return options_.padding_idx; }
  /// Those of each lookup, without per_sample_weights.
  const tern::EmbeddingBagOptions& options() const noexcept { return options_; }

 private:
  tern::EmbeddingBagOptions options_;
};

}  // namespace tern::nn
