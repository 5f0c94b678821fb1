// Blocks of attention: which there are, and what is launched for one.
#include "tern/ops/attention_blocks.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "tern/kernels/softmax.h"
#include "tern/ops/common.h"
#include "tern/ops/creation.h"
#include "tern/ops/shape.h"

namespace tern::detail {
namespace {

/// Scores in one block, which stay in the second cache from one step to the next; a GPU's has tens of
/// megabytes.
int64_t scores_in_block(const Tensor& x) { return int64_t{1} << (x.device().is_cpu() ? 18 : 23); }

int64_t rows_of(const Heads& heads) { return heads.query.size(-2); }
int64_t columns_of(const Heads& heads) { return heads.key.size(-2); }
int64_t batch_dims(const Heads& heads) { return heads.query.dim() - 2; }

/// Appends a dimension of the batch, joined to the one before where all strides allow it.
void add_batch_dim(MatmulArgs& args, int64_t size, const std::array<int64_t, 4>& strides) {
  const std::array<int64_t*, 4> all{args.a_batch_strides, args.b_batch_strides, args.addend_batch_strides,
                                    args.out_batch_strides};
  int& n = args.batch_dims;
  bool joins = n > 0;
  for (size_t i = 0; joins && i < all.size(); ++i) joins = all[i][n - 1] == strides[i] * size;
  if (!joins) {
    TERN_CHECK(n < MatmulArgs::kMaxBatchDims, NotImplementedError,
               "scaled_dot_product_attention: more than {} batch dimensions: reshape the operands",
               MatmulArgs::kMaxBatchDims);
    args.batch_sizes[n++] = 1;
  }
  args.batch_sizes[n - 1] *= size;
  for (size_t i = 0; i < all.size(); ++i) all[i][n - 1] = strides[i];
}

/// out = alpha * a b + addend. All have the same batch dimensions; `addend` may be undefined, or `out`.
void multiply(const Tensor& out, const Tensor& a, const Tensor& b, double alpha = 1,
              const Tensor& addend = {}) {
  if (out.numel() == 0) return;
  const size_t rank = out.shape().size(), row = rank - 2, column = rank - 1;
  MatmulArgs args = plain_product(out.dtype(), {out.shape()[row], out.shape()[column], a.shape()[column]},
                                  {a.data_ptr(), a.strides()[row], a.strides()[column]},
                                  {b.data_ptr(), b.strides()[row], b.strides()[column]}, out.data_ptr());
  args.out_row_stride = out.strides()[row];
  args.alpha = alpha;
  if (addend.defined()) {
    args.addend = addend.data_ptr();
    args.addend_row_stride = addend.strides()[row];
    args.addend_col_stride = addend.strides()[column];
  }
  for (size_t d = 0; d < row; ++d)
    if (out.shape()[d] != 1)
      add_batch_dim(
          args, out.shape()[d],
          {a.strides()[d], b.strides()[d], addend.defined() ? addend.strides()[d] : 0, out.strides()[d]});
  launch(current_stream(out.device()), kernels::matmul, args);
}

Tensor empty_scores(const Heads& heads) {
  Shape shape = heads.query.shape();
  shape.back() = columns_of(heads);
  return empty_of(std::move(shape), heads.query);
}

SoftmaxShape rows_of_scores(const Tensor& scores) {
  const int64_t columns = scores.size(-1);
  return {columns == 0 ? 0 : scores.numel() / columns, columns, 1};
}

/// The softmax of the scores, in heads.weights if there is one. Of each row it writes what it has read.
Tensor compute_weights(const Heads& heads, double scale) {
  Tensor scores = heads.weights.defined() ? heads.weights : empty_scores(heads);
  if (scores.numel() == 0) return scores;
  multiply(scores, heads.query, mT(heads.key), scale, heads.bias);
  launch(current_stream(scores.device()), kernels::softmax,
         {.op = SoftmaxOp::Softmax,
          .dtype = scores.dtype(),
          .out = scores.data_ptr(),
          .in = scores.data_ptr(),
          .shape = rows_of_scores(scores)});
  return scores;
}

Tensor dropped(const Tensor& x, const AttentionSettings& settings) {
  return settings.dropout != nullptr ? settings.dropout->apply(x) : x;
}

void forward_block(const Heads& heads, const AttentionSettings& settings) {
  multiply(heads.output, dropped(compute_weights(heads, settings.scale), settings), heads.value);
}

/// `adds`: to the gradients of key and value, which rows before this block's have begun.
void backward_block(const Heads& heads, const Heads& grads, const AttentionSettings& settings, bool adds) {
  const Tensor weights = heads.weights.defined() ? heads.weights : compute_weights(heads, settings.scale);
  if (grads.value.defined())
    multiply(grads.value, mT(dropped(weights, settings)), grads.output, 1, adds ? grads.value : Tensor());
  if (!grads.query.defined() && !grads.key.defined()) return;
  Tensor of_scores = empty_scores(heads);
  multiply(of_scores, grads.output, mT(heads.value));
  of_scores = dropped(of_scores, settings);
  if (of_scores.numel() != 0)
    launch(current_stream(weights.device()), kernels::softmax_backward,
           {.op = SoftmaxOp::Softmax,
            .dtype = weights.dtype(),
            .grad_in = of_scores.data_ptr(),
            .grad_out = of_scores.data_ptr(),
            .out = weights.data_ptr(),
            .shape = rows_of_scores(weights)});
  if (grads.query.defined()) multiply(grads.query, of_scores, heads.key, settings.scale);
  if (grads.key.defined())
    multiply(grads.key, mT(of_scores), heads.query, settings.scale, adds ? grads.key : Tensor());
}

// ---- parts

void narrow_to(Tensor& x, int64_t dim, int64_t start, int64_t length) {
  if (x.defined()) x = narrow(x, dim, start, length);
}

Heads part_of_batch(Heads heads, int64_t dim, int64_t start, int64_t length) {
  for (Tensor* x : {&heads.query, &heads.key, &heads.value, &heads.output, &heads.bias, &heads.weights})
    narrow_to(*x, dim, start, length);
  return heads;
}
Heads some_rows(Heads heads, int64_t start, int64_t length) {
  for (Tensor* x : {&heads.query, &heads.output, &heads.bias, &heads.weights})
    narrow_to(*x, -2, start, length);
  return heads;
}
Heads first_columns(Heads heads, int64_t columns) {
  for (Tensor* x : {&heads.key, &heads.value}) narrow_to(*x, -2, 0, columns);
  for (Tensor* x : {&heads.bias, &heads.weights}) narrow_to(*x, -1, 0, columns);
  return heads;
}

/// Calls f(heads, others) with parts of the batch that have `most` scores, or one matrix each.
template <class F>
void split_batch(const Heads& heads, const Heads& others, int64_t most, const F& f) {
  const Shape& shape = heads.query.shape();
  int64_t scores = rows_of(heads) * columns_of(heads), first = -1;
  for (int64_t d = batch_dims(heads); d-- > 0;) {
    scores *= shape[d];
    if (shape[d] > 1) first = d;
  }
  if (first < 0 || scores <= most) return f(heads, others);
  const int64_t size = shape[first], step = std::clamp<int64_t>(size * most / scores, 1, size);
  for (int64_t i = 0; i < size; i += step) {
    const int64_t count = std::min(step, size - i);
    split_batch(part_of_batch(heads, first, i, count), part_of_batch(others, first, i, count), most, f);
  }
}

/// The causal mask of rows from `first_row` on, as what is added to scores.
Tensor causal_bias(const Heads& heads, int64_t first_row) {
  TensorOptions options;
  options.dtype = heads.query.dtype();
  options.device = heads.query.device();
  Shape shape = heads.query.shape();
  shape.back() = columns_of(heads);
  return expand(
      triu(full({rows_of(heads), columns_of(heads)}, -std::numeric_limits<double>::infinity(), options),
           first_row + 1),
      shape);
}

/// Rows of one matrix that make a block. All of them where there is dropout, which knows whole tensors only;
/// fewer under a causal mask, where those of a block see about the same columns.
int64_t rows_in_block(const Heads& heads, const AttentionSettings& settings) {
  const int64_t rows = std::max<int64_t>(rows_of(heads), 1);
  if (settings.dropout != nullptr) return rows;
  const int64_t scores = scores_in_block(heads.query) / (settings.is_causal ? 2 : 1);
  return std::clamp<int64_t>(scores / std::max<int64_t>(columns_of(heads), 1), 1, rows);
}

/// Calls f(heads, others) with the blocks. Columns that the causal mask hides from all rows of a block are
/// left out.
template <class F>
void for_blocks(const Heads& heads, const Heads& others, const AttentionSettings& settings, const F& f) {
  const int64_t rows = rows_of(heads), step = rows_in_block(heads, settings);
  // Several matrices leave room in the cache for their keys and values.
  const int64_t most =
      settings.dropout != nullptr ? std::numeric_limits<int64_t>::max() : scores_in_block(heads.query) / 2;
  for (int64_t i = 0; i < rows; i += step) {
    const int64_t count = std::min(step, rows - i);
    Heads block = count == rows ? heads : some_rows(heads, i, count);
    Heads other = count == rows ? others : some_rows(others, i, count);
    if (settings.is_causal && i + count < columns_of(heads) && count != rows) {
      block = first_columns(block, i + count);
      other = first_columns(other, i + count);
    }
    if (settings.is_causal) block.bias = causal_bias(block, i);
    // Some rows of several matrices would not be contiguous.
    split_batch(block, other, count == rows ? most : 0, f);
  }
}

void fill_with_zeros(const Tensor& x) {
  Tensor view = x;
  if (x.defined()) view.zero_();
}

}  // namespace

bool keeps_weights(const Heads& heads, const AttentionSettings& settings) {
  if (settings.dropout != nullptr) return true;
  constexpr int64_t kMostKept = int64_t{1} << 23;
  if (settings.is_causal && rows_in_block(heads, settings) < rows_of(heads)) return false;
  Shape scores = heads.query.shape();
  scores.back() = columns_of(heads);
  return checked_numel(scores) <= kMostKept;
}

void attend(const Heads& heads, const AttentionSettings& settings) {
  for_blocks(heads, {}, settings, [&](const Heads& block, const Heads&) { forward_block(block, settings); });
}

void attend_backward(const Heads& heads, const Heads& grads, const AttentionSettings& settings) {
  const bool adds = rows_in_block(heads, settings) < rows_of(heads);
  if (adds || rows_of(heads) == 0) {
    fill_with_zeros(grads.key);
    fill_with_zeros(grads.value);
  }
  for_blocks(heads, grads, settings,
             [&](const Heads& block, const Heads& other) { backward_block(block, other, settings, adds); });
}

}  // namespace tern::detail
