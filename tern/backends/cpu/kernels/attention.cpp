// Attention in one kernel, as simulated GPUs have it: row by row, for 16-bit floats. The CPU's own goes block
// by block through products, which are faster (ops/attention_blocks.cpp).
#include "tern/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tern/backends/cpu/kernels/loops.h"
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
template <class T>
void store(T* to, const float* sums, float divisor, int64_t n) {
  for (int64_t d = 0; d < n; ++d) to[d] = static_cast<T>(sums[d] / divisor);
}

template <class T>
void run_row(const AttentionArgs& args, int64_t batch, int64_t head, int64_t i, std::vector<float>& weights,
             std::vector<float>& sums) {
  const AttentionShape& s = args.shape;
  const int64_t columns = s.columns_of_row(i), key_head = head / (s.heads / s.key_heads);
  const T* const query = args.query.row<const T>(batch, head, i);
  float largest = -std::numeric_limits<float>::infinity(), total = 0;
  for (int64_t j = 0; j < columns; ++j) {
    float& score = weights[static_cast<size_t>(j)];
    score = dot(query, args.key.row<const T>(batch, key_head, j), s.width) * static_cast<float>(args.scale);
    largest = std::max(largest, score);  // never NaN
  }
  for (int64_t j = 0; j < columns; ++j) {
    float& weight = weights[static_cast<size_t>(j)];
    weight = math::exp_nonpositive(weight - largest);
    total += weight;
  }
  std::fill(sums.begin(), sums.end(), 0.0f);
  for (int64_t j = 0; j < columns; ++j)
    add_multiple(sums.data(), weights[static_cast<size_t>(j)], args.value.row<const T>(batch, key_head, j),
                 s.value_width);
  store(args.output.row<T>(batch, head, i), sums.data(), total, s.value_width);
  if (args.log_sums != nullptr)
    args.log_sums[(batch * s.heads + head) * s.rows + i] = largest + std::log(total);
}

template <class T>
void run(const AttentionArgs& args) {
  const AttentionShape& s = args.shape;
  const int64_t work = std::max<int64_t>(1, s.columns * (s.width + s.value_width));
  parallel_for(s.batch * s.heads * s.rows, std::max<int64_t>(1, kPointwiseGrain / work),
               [&](int64_t begin, int64_t end) {
                 std::vector<float> weights(static_cast<size_t>(s.columns)),
                     sums(static_cast<size_t>(s.value_width));
                 for (int64_t n = begin; n < end; ++n)
                   run_row<T>(args, n / s.rows / s.heads, n / s.rows % s.heads, n % s.rows, weights, sums);
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
    store(args.grad_query.row<T>(batch, head, i), grad_query.data(), 1, s.width);
  }
  for (int64_t j = 0; j < s.columns; ++j) {
    store(args.grad_key.row<T>(batch, head, j), grad_key.data() + j * s.width, 1, s.width);
    store(args.grad_value.row<T>(batch, head, j), grad_value.data() + j * s.value_width, 1, s.value_width);
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
  if (args.dtype == DType::Float16) return run<Half>(args);
  run<BFloat16>(args);
}

void attention_backward(const LaunchContext&, const AttentionBackwardArgs& args) {
  if (args.dtype == DType::Float16) return run_backward<Half>(args);
  run_backward<BFloat16>(args);
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
