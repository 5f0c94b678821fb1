// A table of vectors, looked up by number. The operator is in ops/embedding.h.
#pragma once

#include <optional>

#include "tern/nn/module.h"
#include "tern/ops/embedding.h"

namespace tern::nn {

struct EmbeddingOptions {
  /// This row starts as zeros and gets no gradient; negative counts from the end.
  std::optional<int64_t> padding_idx = std::nullopt;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// Rows of `weight` for whole numbers of any shape: [...] to [..., embedding_dim]. Rows start standard
/// normal.
class Embedding final : public Module {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options = {});

  Parameter weight;  ///< [num_embeddings, embedding_dim]
  TERN_MODULE(weight)

  Tensor forward(const Tensor& input) const;
  void reset_parameters();
  std::string extra_repr() const override;
  std::optional<int64_t> padding_idx() const noexcept { return padding_idx_; }

 private:
  std::optional<int64_t> padding_idx_;
};

struct EmbeddingBagOptions {
  BagMode mode = BagMode::Mean;
  bool include_last_offset = false;  ///< the last offset is the end of the last bag
  /// Rows of this number are left out; it starts as zeros and gets no gradient.
  std::optional<int64_t> padding_idx = std::nullopt;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

/// Sums, means or maxima of rows of `weight` for bags of numbers; see tern::embedding_bag. Rows start
/// standard normal.
class EmbeddingBag final : public Module {
 public:
  EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingBagOptions& options = {});

  Parameter weight;  ///< [num_embeddings, embedding_dim]
  TERN_MODULE(weight)

  Tensor forward(const Tensor& input, const Tensor& offsets = {},
                 const Tensor& per_sample_weights = {}) const;
  void reset_parameters();
  std::string extra_repr() const override;
  BagMode mode() const noexcept { return mode_; }
  bool include_last_offset() const noexcept { return include_last_offset_; }
  std::optional<int64_t> padding_idx() const noexcept { return padding_idx_; }

 private:
  BagMode mode_;
  bool include_last_offset_;
  std::optional<int64_t> padding_idx_;
};

}  // namespace tern::nn
