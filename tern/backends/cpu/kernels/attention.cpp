// Attention in one kernel, block by block, and its gradients, as simulated GPUs have them: row by row, for
// 16-bit floats. The CPU's own gradients go through products, which are faster (ops/attention_blocks.cpp).
#include "tern/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tern/backends/cpu/kernels/gemm.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/widen.h"
#include "tern/kernels/list.h"
#include "tern/kernels/math.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

template <class T>
float dot(const T* a, const T* b, int64_t n) {
  float sum = 0;
  for (int64_t d = 0; d < n; ++d) sum += static_cast<float>(a[d]) * static_cast<float>(b[d]);
  return sum;
}
/// sums += factor * x.
template <class T>
void add_multiple(float* sums, float factor, const T* x, int64_t n) {
  for (int64_t d = 0; d < n; ++d) sums[d] += factor * static_cast<float>(x[d]);
}

/// Scores of a block of rows, which stay in the second cache beside keys and values.
constexpr int64_t kScores = 32768;
/// Tiles of rows in the largest block.
constexpr int64_t kMostTiles = 8;

/// Blocks of rows of one head after the other, by products in float32: all scores of a block, their softmax
/// without its division, and the sums of values, which are divided. Keys and values are packed once for the
/// blocks of a head, and for heads that share them.
template <class T>
class Blocks {
 public:
  static int64_t rows_in_block(const AttentionShape& s) {
    return std::clamp<int64_t>(kScores / s.columns / kMaxRows, 1, kMostTiles) * kMaxRows;
  }

  explicit Blocks(const AttentionArgs& args)
      : args_(args),
        s_(args.shape),
        columns_(s_.columns_of_row(s_.rows - 1)),
        step_(plane_step<float>(whole_panels(columns_))),
        keys_(columns_ * s_.width),
        values_(columns_ * s_.value_width),
        wide_(kWidened<T> ? std::max(columns_, rows_in_block(s_)) * std::max(s_.width, s_.value_width) : 0),
        scores_(rows_in_block(s_) * step_),
        sums_(rows_in_block(s_) * s_.value_width) {}

  /// Rows [first, first + rows) of a head.
  void run(int64_t batch, int64_t head, int64_t first, int64_t rows) {
    pack(batch, head / (s_.heads / s_.key_heads));
    const int64_t columns = seen_by(first + rows - 1);
    const Rows query = rows_of(args_.query, batch, head, first, rows, s_.width);
    multiply(query, rows, s_.width, keys_.get(), s_.width, columns, static_cast<float>(args_.scale),
             {scores_.get(), step_});
    float divisors[kMostTiles * kMaxRows];
    for (int64_t r = 0; r < rows; ++r) divisors[r] = weigh(batch, head, first + r, r, columns);
    multiply({scores_.get(), step_}, rows, columns, values_.get(), columns_, s_.value_width, 1,
             {sums_.get(), s_.value_width});
    for (int64_t r = 0; r < rows; ++r) {
      float* const sums = sums_.get() + r * s_.value_width;
      const float factor = 1 / divisors[r];
      for (int64_t d = 0; d < s_.value_width; ++d) sums[d] *= factor;
      from_compute(args_.output.row<T>(batch, head, first + r), sums, s_.value_width);
    }
  }

 private:
  struct Rows {
    float* data;
    int64_t step;
  };

  static int64_t whole_panels(int64_t columns) {
    constexpr int64_t W = kTileColumns<float>;
    return (columns + W - 1) / W * W;
  }
  /// Columns that are computed for row i.
  int64_t seen_by(int64_t i) const { return std::min(columns_, whole_panels(s_.columns_of_row(i))); }

  /// Rows as float: where they are, or in wide_.
  Rows rows_of(const AttentionOperand& x, int64_t batch, int64_t head, int64_t first, int64_t rows,
               int64_t width) const {
    if constexpr (kWidened<T>) {
      for (int64_t r = 0; r < rows; ++r)
        widen_row(wide_.get() + r * width, x.row<const T>(batch, head, first + r), width);
      return {wide_.get(), width};
    } else {
      return {x.row<float>(batch, head, first), x.row_stride};
    }
  }

  void pack(int64_t batch, int64_t key_head) {
    if (batch == packed_batch_ && key_head == packed_head_) return;
    packed_batch_ = batch;
    packed_head_ = key_head;
    const Rows key = rows_of(args_.key, batch, key_head, 0, columns_, s_.width);
    pack_panels(key.data, key.step, 1, columns_, s_.width, keys_.get());
    const Rows value = rows_of(args_.value, batch, key_head, 0, columns_, s_.value_width);
    pack_panels(value.data, 1, value.step, s_.value_width, columns_, values_.get());
  }
  static void pack_panels(const float* from, int64_t index_stride, int64_t k_stride, int64_t count,
                          int64_t depth, float* to) {
    constexpr int64_t W = kTileColumns<float>;
    for (int64_t j = 0; j < count; j += W)
      pack_panel(from + j * index_stride, index_stride, k_stride, std::min(W, count - j), depth,
                 to + j * depth);
  }

  /// c = alpha a b for b in panels, of which each has `panel_depth` rows and the first `depth` are read.
  static void multiply(Rows a, int64_t rows, int64_t depth, const float* panels, int64_t panel_depth,
                       int64_t columns, float alpha, Rows c) {
    constexpr int64_t W = kTileColumns<float>;
    for (int64_t p = 0; p < depth; p += kMaxDepth<float>)
      for (int64_t j = 0; j < columns; j += W)
        for (int64_t i = 0; i < rows; i += kMaxRows) {
          const int64_t width = std::min(W, columns - j);
          Tile<float> tile;
          tile.k = std::min(kMaxDepth<float>, depth - p);
          tile.a = a.data + i * a.step + p;
          tile.a_row_stride = a.step;
          tile.a_col_stride = 1;
          tile.b = panels + j * panel_depth + p * width;
          tile.b_row_stride = width;
          tile.c = c.data + i * c.step + j;
          tile.c_row_stride = c.step;
          const Epilogue<float> epilogue{
              .addend = p == 0 ? nullptr : tile.c, .addend_row_stride = c.step, .alpha = alpha};
          run_tile<float, Indirect::None>(std::min<int64_t>(kMaxRows, rows - i), width, tile, epilogue);
        }
  }

  /// e^(score - largest) in place of the r-th row of scores, which is row i of all; returns their sum. What
  /// is no number makes the sum none.
  float weigh(int64_t batch, int64_t head, int64_t i, int64_t r, int64_t columns) const {
    constexpr int64_t L = kLanes<float>;
    constexpr float kLowest = -std::numeric_limits<float>::infinity();
    float* const row = scores_.get() + r * step_;
    const int64_t seen = s_.columns_of_row(i), padded = whole_panels(seen);
    std::fill(row + seen, row + padded, kLowest);
    std::fill(row + padded, row + std::max(padded, columns), 0.0f);
    Vec<float> largest[2] = {splat(kLowest), splat(kLowest)}, sums[2] = {};
    for (int64_t j = 0; j < padded; j += 2 * L)
      for (int64_t k : {0, 1}) {
        const Vec<float> x = load(row + j + k * L);
        largest[k] = x > largest[k] ? x : largest[k];
      }
    float most = kLowest;
    for (int64_t l = 0; l < L; ++l) most = std::max({most, largest[0][l], largest[1][l]});
    for (int64_t j = 0; j < padded; ++j) row[j] = math::exp_nonpositive(row[j] - most);
    for (int64_t j = 0; j < padded; j += 2 * L)
      for (int64_t k : {0, 1}) sums[k] += load(row + j + k * L);
    sums[0] += sums[1];
    float total = 0;
    for (int64_t l = 0; l < L; ++l) total += sums[0][l];
    if (args_.log_sums != nullptr)
      args_.log_sums[(batch * s_.heads + head) * s_.rows + i] = most + std::log(total);
    return total;
  }

  const AttentionArgs& args_;
  const AttentionShape& s_;
  int64_t columns_;  ///< that any row sees
  int64_t step_;     ///< from a row of scores to the next
  Scratch<float> keys_, values_, wide_, scores_, sums_;
  int64_t packed_batch_ = -1, packed_head_ = -1;
};

template <class T>
void run(const AttentionArgs& args) {
  const AttentionShape& s = args.shape;
  const int64_t step = Blocks<T>::rows_in_block(s), blocks = (s.rows + step - 1) / step;
  const double products =
      static_cast<double>(step * s.columns) * static_cast<double>(s.width + s.value_width);
  parallel_for(s.batch * s.heads * blocks,
               std::max<int64_t>(1, static_cast<int64_t>(kWorkPerThread / products)),
               [&](int64_t begin, int64_t end) {
                 Blocks<T> work(args);
                 for (int64_t n = begin; n < end; ++n) {
                   const int64_t first = n % blocks * step, head = n / blocks;
                   work.run(head / s.heads, head % s.heads, first, std::min(step, s.rows - first));
                 }
               });
}

/// The gradients of one matrix of scores.
template <class T>
void run_matrix_backward(const AttentionBackwardArgs& args, int64_t batch, int64_t head) {
  const AttentionShape& s = args.shape;
  const auto scale = static_cast<float>(args.scale);
  std::vector<float> grad_query(static_cast<size_t>(s.width)),
      grad_key(static_cast<size_t>(s.columns * s.width)),
      grad_value(static_cast<size_t>(s.columns * s.value_width));
  for (int64_t i = 0; i < s.rows; ++i) {
    const T* const query = args.query.row<const T>(batch, head, i);
    const T* const grad = args.grad_output.row<const T>(batch, head, i);
    const float log_sum = args.log_sums[(batch * s.heads + head) * s.rows + i];
    const float mean = dot(grad, args.output.row<const T>(batch, head, i), s.value_width);
    std::fill(grad_query.begin(), grad_query.end(), 0.0f);
    for (int64_t j = 0; j < s.columns_of_row(i); ++j) {
      const T* const key = args.key.row<const T>(batch, head, j);
      const float weight = math::exp(dot(query, key, s.width) * scale - log_sum);
      const float of_weight = dot(grad, args.value.row<const T>(batch, head, j), s.value_width);
      const float of_score = weight * (of_weight - mean) * scale;
      add_multiple(grad_value.data() + j * s.value_width, weight, grad, s.value_width);
      add_multiple(grad_query.data(), of_score, key, s.width);
      add_multiple(grad_key.data() + j * s.width, of_score, query, s.width);
    }
    from_compute(args.grad_query.row<T>(batch, head, i), grad_query.data(), s.width);
  }
  for (int64_t j = 0; j < s.columns; ++j) {
    from_compute(args.grad_key.row<T>(batch, head, j), grad_key.data() + j * s.width, s.width);
    from_compute(args.grad_value.row<T>(batch, head, j), grad_value.data() + j * s.value_width,
                 s.value_width);
  }
}

template <class T>
void run_backward(const AttentionBackwardArgs& args) {
  parallel_for(args.shape.batch * args.shape.heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      run_matrix_backward<T>(args, n / args.shape.heads, n % args.shape.heads);
  });
}

}  // namespace

void attention(const LaunchContext&, const AttentionArgs& args) {
  if (args.dtype == DType::Float32) return run<float>(args);
  if (args.dtype == DType::Float16) return run<Half>(args);
  run<BFloat16>(args);
}

void attention_backward(const LaunchContext&, const AttentionBackwardArgs& args) {
  if (args.dtype == DType::Float16) return run_backward<Half>(args);
  run_backward<BFloat16>(args);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
