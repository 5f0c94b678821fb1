// Attention in one kernel, as simulated GPUs have it: row by row, for 16-bit floats. The CPU's own goes block
// by block through products, which are faster (ops/attention_blocks.cpp).
#include "tern/kernels/attention.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/kernels/list.h"
#include "tern/kernels/math.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

template <class T>
class Row {
 public:
  explicit Row(const AttentionArgs& args)
      : args_(args),
        query_(static_cast<size_t>(args.width)),
        sums_(static_cast<size_t>(args.value_width)),
        scores_(static_cast<size_t>(args.columns)) {}

  void run(int64_t batch, int64_t head, int64_t i) {
    const int64_t columns = args_.is_causal ? std::min(i + 1, args_.columns) : args_.columns;
    const int64_t key_head = head / (args_.heads / args_.key_heads);
    const T* const query = args_.query.row<const T>(batch, head, i);
    for (int64_t d = 0; d < args_.width; ++d) query_[at(d)] = static_cast<float>(query[d]);
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t j = 0; j < columns; ++j) {
      const T* const key = args_.key.row<const T>(batch, key_head, j);
      float sum = 0;
      for (int64_t d = 0; d < args_.width; ++d) sum += query_[at(d)] * static_cast<float>(key[d]);
      scores_[at(j)] = sum * static_cast<float>(args_.scale);
      largest = std::max(largest, scores_[at(j)]);
    }
    float total = 0;
    for (int64_t j = 0; j < columns; ++j) {
      // NaN is never the largest, and stays NaN here.
      scores_[at(j)] = math::exp_nonpositive(scores_[at(j)] - largest);
      total += scores_[at(j)];
    }
    std::fill(sums_.begin(), sums_.end(), 0.0f);
    for (int64_t j = 0; j < columns; ++j) {
      const T* const value = args_.value.row<const T>(batch, key_head, j);
      for (int64_t d = 0; d < args_.value_width; ++d)
        sums_[at(d)] += scores_[at(j)] * static_cast<float>(value[d]);
    }
    T* const output = args_.output.row<T>(batch, head, i);
    for (int64_t d = 0; d < args_.value_width; ++d) output[d] = static_cast<T>(sums_[at(d)] / total);
  }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }

  const AttentionArgs& args_;
  std::vector<float> query_, sums_, scores_;
};

template <class T>
void run(const AttentionArgs& args) {
  const int64_t work = std::max<int64_t>(1, args.columns * (args.width + args.value_width));
  parallel_for(args.batch * args.heads * args.rows, std::max<int64_t>(1, kPointwiseGrain / work),
               [&](int64_t begin, int64_t end) {
                 Row<T> row(args);
                 for (int64_t n = begin; n < end; ++n)
                   row.run(n / args.rows / args.heads, n / args.rows % args.heads, n % args.rows);
               });
}

}  // namespace

void attention(const LaunchContext&, const AttentionArgs& args) {
  if (args.dtype == DType::Float16) return run<Half>(args);
  run<BFloat16>(args);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
