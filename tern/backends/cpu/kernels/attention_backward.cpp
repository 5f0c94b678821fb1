// The gradients of attention in one kernel: scores are computed again, a block of rows and columns at a time.
#include <algorithm>

#include "tern/backends/cpu/kernels/attention_products.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/widen.h"
#include "tern/kernels/attention.h"
#include "tern/kernels/list.h"
#include "tern/kernels/math.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Of a block of scores, which stays in the second cache beside its operands.
constexpr int64_t kRows = 84, kColumns = 256;
static_assert(kRows % kMaxRows == 0 && kColumns % kTileColumns<float> == 0);
/// Heads are cut into parts until there are so many, however many threads there are: sums must not depend on
/// that.
constexpr int64_t kEnoughParts = 32;

int64_t blocks_of_head(const AttentionShape& s) { return (s.rows + kRows - 1) / kRows; }
int64_t parts_of_head(const AttentionShape& s) {
  return std::clamp<int64_t>(kEnoughParts / (s.batch * s.heads), 1, (blocks_of_head(s) + 1) / 2);
}

/// Numbers of the gradients of key and value of one head.
int64_t sums_of_head(const AttentionShape& s) { return s.columns * (s.width + s.value_width); }

/// `sums` as the gradients of key and value.
template <class T>
void store_sums(const AttentionBackwardArgs& args, int64_t batch, int64_t head, const float* sums) {
  const AttentionShape& s = args.shape;
  const float* const of_values = sums + s.columns * s.width;
  for (int64_t j = 0; j < s.columns; ++j) {
    from_compute(args.grad_key.row<T>(batch, head, j), sums + j * s.width, s.width);
    from_compute(args.grad_value.row<T>(batch, head, j), of_values + j * s.value_width, s.value_width);
  }
}

/// Some rows of one head after the other: the gradient of the query, and what they add to those of key and
/// value.
template <class T>
class Parts {
 public:
  explicit Parts(const AttentionBackwardArgs& args)
      : args_(args),
        s_(args.shape),
        columns_(s_.columns_of_row(s_.rows - 1)),
        keys_across_(columns_ * s_.width),
        values_across_(columns_ * s_.value_width),
        keys_(columns_ * s_.width),
        queries_(kRows * s_.width),
        grads_(kRows * s_.value_width),
        wide_(kWidened<T> ? std::max(columns_, kRows) * std::max(s_.width, s_.value_width) : 0),
        wide_grads_(kWidened<T> ? kRows * s_.value_width : 0),
        weights_(kRows * kStep),
        of_scores_(kRows * kStep),
        grad_query_(kRows * s_.width) {}

  /// Rows [first, end) of a head; `sums`, [columns, width] and [columns, value_width], are overwritten.
  void run(int64_t batch, int64_t head, int64_t first, int64_t end, float* sums) {
    pack(batch, head);
    std::fill(sums, sums + sums_of_head(s_), 0.0f);
    for (int64_t i = first; i < end; i += kRows)
      run_rows(batch, head, i, std::min(kRows, end - i), sums, sums + s_.columns * s_.width);
  }

 private:
  static constexpr int64_t kStep = plane_step<float>(kColumns);

  void pack(int64_t batch, int64_t head) {
    if (batch == packed_batch_ && head == packed_head_) return;
    packed_batch_ = batch;
    packed_head_ = head;
    const FloatMatrix key = rows_of<T>(args_.key, batch, head, 0, columns_, s_.width, wide_.get());
    pack_panels(transposed(key), s_.width, columns_, keys_across_.get());
    pack_panels(key, columns_, s_.width, keys_.get());
    const FloatMatrix value = rows_of<T>(args_.value, batch, head, 0, columns_, s_.value_width, wide_.get());
    pack_panels(transposed(value), s_.value_width, columns_, values_across_.get());
  }

  void run_rows(int64_t batch, int64_t head, int64_t first, int64_t rows, float* grad_key,
                float* grad_value) {
    const auto scale = static_cast<float>(args_.scale);
    const FloatMatrix query = rows_of<T>(args_.query, batch, head, first, rows, s_.width, wide_.get());
    const FloatMatrix grad =
        rows_of<T>(args_.grad_output, batch, head, first, rows, s_.value_width, wide_grads_.get());
    pack_panels(query, rows, s_.width, queries_.get());
    pack_panels(grad, rows, s_.value_width, grads_.get());
    float means[kRows];
    for (int64_t r = 0; r < rows; ++r)
      means[r] = mean_of(batch, head, first + r, grad.data + r * grad.row_stride);

    const FloatMatrix weights{weights_.get(), kStep}, of_scores{of_scores_.get(), kStep};
    const int64_t seen = std::min(columns_, whole_panels(s_.columns_of_row(first + rows - 1)));
    for (int64_t j = 0; j < seen; j += kColumns) {
      const int64_t columns = std::min(kColumns, seen - j);
      multiply(query, rows, s_.width, {keys_across_.get() + j * s_.width, s_.width}, columns, weights, scale);
      multiply(grad, rows, s_.value_width, {values_across_.get() + j * s_.value_width, s_.value_width},
               columns, of_scores);
      for (int64_t r = 0; r < rows; ++r) weigh(batch, head, first + r, r, j, columns, means[r]);
      multiply(transposed(weights), columns, rows, {grads_.get(), rows}, s_.value_width,
               {grad_value + j * s_.value_width, s_.value_width}, 1, /*adds=*/true);
      multiply(transposed(of_scores), columns, rows, {queries_.get(), rows}, s_.width,
               {grad_key + j * s_.width, s_.width}, 1, /*adds=*/true);
      multiply(of_scores, rows, columns, {keys_.get(), columns_, j}, s_.width, {grad_query_.get(), s_.width},
               1,
               /*adds=*/j > 0);
    }
    for (int64_t r = 0; r < rows; ++r)
      from_compute(args_.grad_query.row<T>(batch, head, first + r), grad_query_.get() + r * s_.width,
                   s_.width);
  }

  /// Of row i: the sum of its weights times their gradients, which is that of output and its gradient.
  float mean_of(int64_t batch, int64_t head, int64_t i, const float* grad) const {
    const T* const output = args_.output.row<const T>(batch, head, i);
    float sums[8] = {};
    int64_t d = 0;
    for (; d + 8 <= s_.value_width; d += 8)
      for (int64_t l = 0; l < 8; ++l) sums[l] += grad[d + l] * static_cast<float>(output[d + l]);
    for (; d < s_.value_width; ++d) sums[0] += grad[d] * static_cast<float>(output[d]);
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
  }

  /// Of the r-th row of the block, which is row i of all, columns from j on: scores become weights, and
  /// gradients of weights those of scores. What the row does not see is 0 in both.
  void weigh(int64_t batch, int64_t head, int64_t i, int64_t r, int64_t j, int64_t columns,
             float mean) const {
    float *const weights = weights_.get() + r * kStep, *const of_scores = of_scores_.get() + r * kStep;
    const float log_sum = args_.log_sums[(batch * s_.heads + head) * s_.rows + i];
    const auto scale = static_cast<float>(args_.scale);
    const int64_t seen = std::clamp<int64_t>(s_.columns_of_row(i) - j, 0, columns);
    for (int64_t c = 0; c < seen; ++c) {
      const float x = weights[c] - log_sum;
      weights[c] = math::exp_nonpositive(x > 0 ? 0 : x);
    }
    for (int64_t c = 0; c < seen; ++c) of_scores[c] = weights[c] * (of_scores[c] - mean) * scale;
    std::fill(weights + seen, weights + columns, 0.0f);
    std::fill(of_scores + seen, of_scores + columns, 0.0f);
  }

  const AttentionBackwardArgs& args_;
  const AttentionShape& s_;
  int64_t columns_;  ///< that any row sees
  Scratch<float> keys_across_, values_across_, keys_, queries_, grads_, wide_, wide_grads_, weights_,
      of_scores_, grad_query_;
  int64_t packed_batch_ = -1, packed_head_ = -1;
};

template <class T>
void run(const AttentionBackwardArgs& args) {
  const AttentionShape& s = args.shape;
  const int64_t heads = s.batch * s.heads, blocks = blocks_of_head(s), parts = parts_of_head(s),
                size = sums_of_head(s);
  const Scratch<float> all_sums(parts > 1 ? heads * parts * size : 0);
  parallel_for(heads * parts, 1, [&](int64_t begin, int64_t end) {
    Parts<T> work(args);
    const Scratch<float> own_sums(parts > 1 ? 0 : size);
    for (int64_t n = begin; n < end; ++n) {
      const int64_t part = n % parts, batch = n / parts / s.heads, head = n / parts % s.heads;
      float* const sums = parts > 1 ? all_sums.get() + n * size : own_sums.get();
      work.run(batch, head, part * blocks / parts * kRows,
               std::min(s.rows, (part + 1) * blocks / parts * kRows), sums);
      if (parts == 1) store_sums<T>(args, batch, head, sums);
    }
  });
  if (parts == 1) return;
  parallel_for(heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      float* const sums = all_sums.get() + n * parts * size;
      for (int64_t part = 1; part < parts; ++part)
        for (int64_t k = 0; k < size; ++k) sums[k] += sums[part * size + k];
      store_sums<T>(args, n / s.heads, n % s.heads, sums);
    }
  });
}

}  // namespace

void attention_backward(const LaunchContext&, const AttentionBackwardArgs& args) {
  if (args.dtype == DType::Float32) return run<float>(args);
  if (args.dtype == DType::Float16) return run<Half>(args);
  run<BFloat16>(args);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
