// Sums, means and maxima of rows of a table for each bag of numbers. Maxima and gradients are made of other
// operators.
#include <algorithm>
#include <array>
#include <limits>

#include "tern/ops/common.h"
#include "tern/ops/compare.h"
#include "tern/ops/copy.h"
#include "tern/ops/creation.h"
#include "tern/ops/embedding.h"
#include "tern/ops/index.h"
#include "tern/ops/index_plan.h"
#include "tern/ops/pointwise.h"
#include "tern/ops/reduce.h"
#include "tern/ops/scan.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

constexpr const char* kBagOp = "embedding_bag";

const int64_t* whole_numbers(const Tensor& x) { return static_cast<const int64_t*>(x.data_ptr()); }

/// On the CPU, where reading them costs nothing.
void check_offsets(const Tensor& offsets, int64_t length, bool include_last) {
  if (!offsets.device().is_cpu()) return;
  const Tensor dense = contiguous(offsets);
  const int64_t* begin = whole_numbers(dense);
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

/// Where bags begin among the numbers, undefined where all have the same length, and how many there are.
struct Bags {
  Tensor begins;
  int64_t count = 0;
};

Bags bags_of(const Tensor& input, const Tensor& given, bool include_last) {
  if (input.dim() == 2) {
    TERN_CHECK(
        !given.defined(), ValueError,
        "{}: if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
        "length sequences",
        kBagOp);
    return {{}, input.size(0)};
  }
  TERN_CHECK(input.dim() == 1, ShapeError,
             "{}: input has to be 1D or 2D Tensor, but got Tensor of dimension {}", kBagOp, input.dim());
  TERN_CHECK(given.defined() && given.dim() == 1, ShapeError,
             "{}: offsets has to be a 1D Tensor, of where each bag of a 1D input begins", kBagOp);
  TERN_CHECK(given.dtype() == DType::Int64 || given.dtype() == DType::Int32, DTypeError,
             "{}: offsets must be int64 or int32, got {}", kBagOp, name(given.dtype()));
  const Tensor offsets = contiguous(to(given, DType::Int64));
  const int64_t length = input.size(0), bags = offsets.size(0) - (include_last ? 1 : 0);
  TERN_CHECK(bags >= 0, ValueError, "{}: with include_last_offset there must be an offset", kBagOp);
  TERN_CHECK(bags > 0 || length == 0, ValueError, "{}: offsets is empty, but input has {} elements", kBagOp,
             length);
  check_offsets(offsets, length, include_last);
  return {narrow(offsets, 0, 0, bags), bags};
}

/// The number of its bag for each of the numbers.
Tensor bag_of_each(const Tensor& begins, int64_t bags, const Tensor& numbers) {
  const TensorOptions whole{.dtype = DType::Int64, .device = numbers.device()};
  const int64_t length = numbers.numel();
  if (!begins.defined()) return repeat_interleave(arange(bags, whole), bags == 0 ? 0 : length / bags);
  const Tensor marks = index_add(zeros({length + 1}, whole), 0, begins, ones({bags}, whole));
  return narrow(sub(cumsum(marks, 0), 1), 0, 0, length);
}

/// Of the numbers in each bag those that count, [bags, 1].
Tensor counts_of(const Tensor& kept, const Tensor& bag, int64_t bags) {
  const TensorOptions whole{.dtype = DType::Int64, .device = bag.device()};
  return unsqueeze(index_add(zeros({bags}, whole), 0, bag, to(kept, DType::Int64)), 1);
}

Tensor maxima(const Tensor& numbers, const Tensor& weight, const Bags& bags, int64_t padding,
              const EmbeddingBagOptions& o) {
  Tensor rows = embedding(numbers, weight, o.padding_idx);
  const TensorOptions like{.dtype = weight.dtype(), .device = weight.device()};
  const Tensor bag = bag_of_each(bags.begins, bags.count, numbers),
               nothing = zeros({bags.count, weight.size(1)}, like);
  const Tensor kept = ne(numbers, padding);
  if (o.padding_idx) rows = where(unsqueeze(kept, 1), rows, -std::numeric_limits<double>::infinity());
  const Tensor y = scatter_reduce(nothing, 0, expand(unsqueeze(bag, 1), rows.shape()), rows, "amax",
                                  /*include_self=*/false);
  return o.padding_idx ? where(eq(counts_of(kept, bag, bags.count), 0), 0, y) : y;
}

Tensor sums_or_means(const Tensor& numbers, const Tensor& weight, const Bags& bags, int64_t padding,
                     const EmbeddingBagOptions& o) {
  const bool means = o.mode == BagMode::Mean;
  const Tensor given_factors = o.per_sample_weights,
               factors = given_factors.defined() ? contiguous(flatten(given_factors)) : Tensor();
  Tensor y = empty_of({bags.count, weight.size(1)}, weight);
  if (y.numel() != 0) {
    const EmbeddingBagArgs args{.dtype = weight.dtype(),
                                .means = means,
                                .out = y.data_ptr(),
                                .table = weight.data_ptr(),
                                .dims = {.op = kBagOp,
                                         .count = 1,
                                         .index = {whole_numbers(numbers)},
                                         .size = {weight.size(0)},
                                         .stride = {weight.strides()[0]}},
                                .column_stride = weight.strides()[1],
                                .width = weight.size(1),
                                .length = numbers.numel(),
                                .bags = bags.count,
                                .begins = bags.begins.defined() ? whole_numbers(bags.begins) : nullptr,
                                .factors = factors.defined() ? factors.data_ptr() : nullptr,
                                .padding = padding};
    launch(current_stream(y.device()), kernels::embedding_bag, args);
  }
  if (!tracks_grad(weight, given_factors)) return y;
  record(kBagOp, y, {weight, given_factors},
         [weight_ = save(weight), numbers_ = save(numbers), begins_ = save(bags.begins),
          factors_ = save(given_factors), count = bags.count, padding, means,
          by_frequency = o.scale_grad_by_freq](GradContext& c, const Tensor& g) {
           const Tensor table = c[weight_], places = c[numbers_], given = c[factors_];
           const Tensor bag = bag_of_each(c[begins_], count, places), kept = ne(places, padding);
           Tensor of_rows = index_select(g, 0, bag);
           if (means) of_rows = div(of_rows, index_select(clamp_min(counts_of(kept, bag, count), 1), 0, bag));
           std::array<Tensor, 2> grads;
           if (c.needs(1))
             grads[1] =
                 reshape(mul(sum(mul(of_rows, index_select(table, 0, places)), 1), kept), given.shape());
           if (c.needs(0)) {
             if (given.defined()) of_rows = mul(of_rows, unsqueeze(flatten(given), 1));
             grads[0] = detail::embedding_gradient(of_rows, places, table.size(0), padding, by_frequency);
           }
           return grads;
         });
  return y;
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
  TERN_CHECK(is_floating_point(weight.dtype()), DTypeError,
             "{}: needs a floating-point dtype, got {}: convert the weight with to(float32)", kBagOp,
             name(weight.dtype()));
  const int64_t padding = detail::padding_row(kBagOp, weight, o.padding_idx);
  const Bags bags = bags_of(input, offsets, o.include_last_offset);
  if (o.max_norm) {
    Tensor table = weight.detach();
    embedding_renorm_(table, input, *o.max_norm, o.norm_type);
  }
  const Tensor numbers = contiguous(flatten(as_index(kBagOp, weight, input)));
  if (o.mode == BagMode::Max) return maxima(numbers, weight, bags, padding, o);
  return sums_or_means(numbers, weight, bags, padding, o);
}

}  // namespace tern
