// Table look-up with a gradient for the table. The layer is nn::Embedding.
#pragma once

#include <optional>
#include <string_view>

#include "tern/core/tensor.h"

namespace tern {

/// Rows of `weight` [num, dim] in the shape of `input` (int64 or int32) with
/// `dim` at the end. Row `padding_idx` (negative: from the end) gets no
/// gradient. Gradients of equal indices are added in row-major order, so that
/// the result does not depend on threads. Throws IndexError for an index out of
/// range (negative ones too).
Tensor embedding(const Tensor& input, const Tensor& weight, std::optional<int64_t> padding_idx = {});

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = std::nullopt;
  /// First of all the rows in use whose norm is above it are scaled down to it, in `weight` itself, without a
  /// gradient; see embedding_renorm_.
  std::optional<double> max_norm = std::nullopt;
  double norm_type = 2;
  /// The gradient of each row is divided by how often its number occurs in the input.
  bool scale_grad_by_freq = false;
};
Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingOptions& options);

/// Scales the rows of `weight` [num, dim] that `input` names and whose norm of order norm_type, above 0, is
/// above max_norm down to it, in place. Throws as embedding does, ValueError for a norm_type or max_norm out
/// of range, AutogradError for a weight that requires a gradient where gradients are recorded.
Tensor& embedding_renorm_(Tensor& weight, const Tensor& input, double max_norm, double norm_type = 2);

enum class BagMode : uint8_t { Sum, Mean, Max };
/// "sum", "mean" or "max". Throws ValueError for another word.
BagMode parse_bag_mode(std::string_view word);
/// "sum", "mean" or "max".
const char* bag_mode_word(BagMode mode);

struct EmbeddingBagOptions {
  BagMode mode = BagMode::Mean;
  Tensor per_sample_weights = {};    ///< factors of the rows, in the shape of the input; for sums
  bool include_last_offset = false;  ///< the last offset is the end of the last bag
  std::optional<int64_t> padding_idx = std::nullopt;  ///< these rows are left out; no mean counts them
  std::optional<double> max_norm = std::nullopt;      ///< as in EmbeddingOptions
  double norm_type = 2;
  bool scale_grad_by_freq = false;  ///< as in EmbeddingOptions; not for maxima
};
/// The sum, mean or maximum of rows of `weight` [num, dim] for each bag of numbers, [bags, dim]; an empty bag
/// gives zeros. Of an input [bags, length] each row is a bag; of an input [length] bag i begins at offsets[i]
/// (int64 or int32), which do not fall. On the CPU the offsets are checked. Throws ShapeError, DTypeError,
/// ValueError, IndexError as embedding.
Tensor embedding_bag(const Tensor& input, const Tensor& weight, const Tensor& offsets = {},
                     const EmbeddingBagOptions& options = {});

namespace detail {

/// The row of `weight` that gets no gradient, counted from 0, or -1. Throws ShapeError unless the weight is
/// 2-D, ValueError.
int64_t padding_row(const char* op, const Tensor& weight, std::optional<int64_t> padding_idx);
/// The gradient of a table of `rows` rows for the gradient of those that `input` names. Has a gradient.
Tensor embedding_gradient(const Tensor& g, const Tensor& input, int64_t rows, int64_t padding,
                          bool scale_grad_by_freq);

}  // namespace detail
}  // namespace tern
