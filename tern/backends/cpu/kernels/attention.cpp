// Attention in one kernel, block by block. Its gradients are in attention_backward.cpp.
#include "tern/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tern/backends/cpu/kernels/attention_products.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/backends/cpu/kernels/widen.h"
#include "tern/kernels/list.h"
#include "tern/kernels/math.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

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
    const FloatMatrix query = rows_of<T>(args_.query, batch, head, first, rows, s_.width, wide_.get());
    multiply(query, rows, s_.width, {keys_.get(), s_.width}, columns, {scores_.get(), step_},
             static_cast<float>(args_.scale));
    float divisors[kMostTiles * kMaxRows];
    for (int64_t r = 0; r < rows; ++r) divisors[r] = weigh(batch, head, first + r, r, columns);
    multiply({scores_.get(), step_}, rows, columns, {values_.get(), columns_}, s_.value_width,
             {sums_.get(), s_.value_width});
    for (int64_t r = 0; r < rows; ++r) {
      float* const sums = sums_.get() + r * s_.value_width;
      const float factor = 1 / divisors[r];
      for (int64_t d = 0; d < s_.value_width; ++d) sums[d] *= factor;
      from_compute(args_.output.row<T>(batch, head, first + r), sums, s_.value_width);
    }
  }

 private:
  /// Columns that are computed for row i.
  int64_t seen_by(int64_t i) const { return std::min(columns_, whole_panels(s_.columns_of_row(i))); }

  void pack(int64_t batch, int64_t key_head) {
    if (batch == packed_batch_ && key_head == packed_head_) return;
    packed_batch_ = batch;
    packed_head_ = key_head;
    const FloatMatrix key = rows_of<T>(args_.key, batch, key_head, 0, columns_, s_.width, wide_.get());
    pack_panels(transposed(key), s_.width, columns_, keys_.get());
    const FloatMatrix value =
        rows_of<T>(args_.value, batch, key_head, 0, columns_, s_.value_width, wide_.get());
    pack_panels(value, columns_, s_.value_width, values_.get());
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

}  // namespace

void attention(const LaunchContext&, const AttentionArgs& args) {
  if (args.dtype == DType::Float32) return run<float>(args);
  if (args.dtype == DType::Float16) return run<Half>(args);
  run<BFloat16>(args);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
