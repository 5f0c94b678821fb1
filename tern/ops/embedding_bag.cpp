// Sums, means and maxima of rows of a table for each bag of numbers, made of operators.
#include <algorithm>

#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/embedding.h"
#include "tern/ops/index.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

constexpr const char* kBagOp = "embedding_bag";

/// On the CPU, where reading them costs nothing.
void check_offsets(const Tensor& offsets, int64_t length, bool include_last) {
  if (!offsets.device().is_cpu()) return;
  const Tensor dense = contiguous(offsets);
  const int64_t* begin = static_cast<const int64_t*>(dense.data_ptr());
  const int64_t* end = begin + dense.numel();
  if (begin == end) return;
  TERN_CHECK(
      *begin == 0, ValueError,
      "{}: offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position "
      "0. However, got {}",
      kBagOp, *begin);
  TERN_CHECK(std::is_sorted(begin, end), ValueError, "{}: offsets must not fall", kBagOp);
  TERN_CHECK(end[-1] <= length, ValueError,
             "{}: offsets[-1] can not be greater than input's length({}), got {}", kBagOp, length, end[-1]);
  TERN_CHECK(!include_last || end[-1] == length, ValueError,
             "{}: with include_last_offset the last offset must be the input's length, {}, got {}", kBagOp,
             length, end[-1]);
}

/// The number of its bag for each place of the input, and how many bags there are.
std::pair<Tensor, int64_t> bags_of(const Tensor& input, const Tensor& given, bool include_last) {
  const TensorOptions whole{.dtype = DType::Int64, .device = input.device()};
  if (input.dim() == 2) {
    TERN_CHECK(
        !given.defined(), ValueError,
        "{}: if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
        "length sequences",
        kBagOp);
    return {repeat_interleave(arange(input.size(0), whole), input.size(1)), input.size(0)};
  }
  TERN_CHECK(input.dim() == 1, ShapeError,
             "{}: input has to be 1D or 2D Tensor, but got Tensor of dimension {}", kBagOp, input.dim());
  TERN_CHECK(given.defined() && given.dim() == 1, ShapeError,
             "{}: offsets has to be a 1D Tensor, of where each bag of a 1D input begins", kBagOp);
  TERN_CHECK(given.dtype() == DType::Int64 || given.dtype() == DType::Int32, DTypeError,
             "{}: offsets must be int64 or int32, got {}", kBagOp, name(given.dtype()));
  const Tensor offsets = to(given, DType::Int64);
  const int64_t length = input.size(0), bags = offsets.size(0) - (include_last ? 1 : 0);
  TERN_CHECK(bags >= 0, ValueError, "{}: with include_last_offset there must be an offset", kBagOp);
  TERN_CHECK(bags > 0 || length == 0, ValueError, "{}: offsets is empty, but input has {} elements", kBagOp,
             length);
  check_offsets(offsets, length, include_last);
  const Tensor begins = narrow(offsets, 0, 0, bags);
  const Tensor marks = index_add(zeros({length + 1}, whole), 0, begins, ones({bags}, whole));
  return {narrow(sub(cumsum(marks, 0), 1), 0, 0, length), bags};
}

}  // namespace

const char* bag_mode_word(BagMode mode) {
  return mode == BagMode::Sum ? "sum" : mode == BagMode::Mean ? "mean" : "max";
}

BagMode parse_bag_mode(std::string_view word) {
  for (const BagMode mode : {BagMode::Sum, BagMode::Mean, BagMode::Max})
    if (word == bag_mode_word(mode)) return mode;
  TERN_THROW(ValueError, "{}: mode has to be one of sum, mean or max, got '{}'", kBagOp, word);
}

Tensor embedding_bag(const Tensor& input, const Tensor& weight, const Tensor& offsets,
                     const EmbeddingBagOptions& o) {
  check_same_device(kBagOp, {{"input", input},
                             {"weight", weight},
                             {"offsets", offsets},
                             {"per_sample_weights", o.per_sample_weights}});
  const bool weighted = o.per_sample_weights.defined();
  TERN_CHECK(!weighted || o.mode == BagMode::Sum, ValueError,
             "{}: per_sample_weights was not None: it is only supported for mode='sum'", kBagOp);
  TERN_CHECK(!weighted || o.per_sample_weights.shape() == input.shape(), ShapeError,
             "{}: expected per_sample_weights to have the shape of the input, {}, got {}", kBagOp,
             to_string(input.shape()), to_string(o.per_sample_weights.shape()));
  TERN_CHECK(!weighted || o.per_sample_weights.dtype() == weight.dtype(), DTypeError,
             "{}: expected weight ({}) and per_sample_weights ({}) to have the same dtype: convert one with "
             "to(dtype)",
             kBagOp, name(weight.dtype()), weighted ? name(o.per_sample_weights.dtype()) : "");
  TERN_CHECK(o.mode != BagMode::Max || !o.scale_grad_by_freq, ValueError,
             "{}: max mode does not support scaling the gradient by the frequency", kBagOp);
  const auto found = bags_of(input, offsets, o.include_last_offset);
  const Tensor& bag = found.first;
  const int64_t bags = found.second;
  const Tensor numbers = flatten(input);
  Tensor rows = embedding(numbers, weight,
                          {.padding_idx = o.padding_idx,
                           .max_norm = o.max_norm,
                           .norm_type = o.norm_type,
                           .scale_grad_by_freq = o.scale_grad_by_freq});
  const TensorOptions like{.dtype = weight.dtype(), .device = weight.device()};
  Tensor kept;  // which rows count
  if (o.padding_idx) {
    const int64_t padding = *o.padding_idx < 0 ? *o.padding_idx + weight.size(0) : *o.padding_idx;
    kept = ne(numbers, padding);
    rows = where(unsqueeze(kept, 1), rows,
                 o.mode == BagMode::Max ? -std::numeric_limits<double>::infinity() : 0.0);
  }
  if (weighted) rows = mul(rows, unsqueeze(flatten(o.per_sample_weights), 1));
  const Tensor empty_bags = zeros({bags, weight.size(1)}, like);
  const auto counts = [&] {
    const Tensor each = kept.defined() ? to(kept, weight.dtype()) : ones({numbers.numel()}, like);
    return unsqueeze(index_add(zeros({bags}, like), 0, bag, each), 1);
  };
  if (o.mode == BagMode::Max) {
    const Tensor maxima = scatter_reduce(empty_bags, 0, expand(unsqueeze(bag, 1), rows.shape()), rows, "amax",
                                         /*include_self=*/false);
    return kept.defined() ? where(eq(counts(), 0), 0, maxima) : maxima;
  }
  const Tensor sums = index_add(empty_bags, 0, bag, rows);
  return o.mode == BagMode::Mean ? div(sums, clamp_min(counts(), 1)) : sums;
}

}  // namespace tern
