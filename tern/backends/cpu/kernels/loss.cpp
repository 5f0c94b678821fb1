// Cross entropy, forward and backward. Losses of two tensors of one shape are in loss_pair.cpp.
#include <algorithm>
#include <cmath>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/transpose.h"
#include "tern/base/check.h"
#include "tern/base/small_vector.h"
#include "tern/kernels/list.h"
#include "tern/kernels/math.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// Rows are worked on in blocks, whose sizes depend on the problem alone so that sums do too.
constexpr int64_t kBlockRows = 256;
/// Elements of a block of short rows, which are computed as one long row.
constexpr int64_t kTile = 4096;
constexpr int64_t kShortRow = 128;

/// The rows [row, row + count): where their input and gradient start, and how elements follow each other.
struct Block {
  int64_t row;
  int64_t count;
  int64_t start;       // in elements of the input
  int64_t row_stride;  // from row to row
  int64_t class_stride;
};

struct Blocks {
  int64_t count, size, blocks_per_image;
  const CrossEntropyProblem& p;

  explicit Blocks(const CrossEntropyProblem& problem) : p(problem) {
    if (p.inner == 1) {
      size = std::clamp<int64_t>(kTile / std::max<int64_t>(p.classes, 1), 1, kBlockRows);
      blocks_per_image = 1;
      count = (p.batch + size - 1) / size;
    } else {
      size = kBlockRows;
      blocks_per_image = (p.inner + size - 1) / size;
      count = p.batch * blocks_per_image;
    }
  }
  Block operator[](int64_t i) const {
    if (p.inner == 1) {
      const int64_t row = i * size;
      return {row, std::min(size, p.batch - row), row * p.classes, p.classes, 1};
    }
    const int64_t image = i / blocks_per_image, at = i % blocks_per_image * size;
    return {image * p.inner + at, std::min(size, p.inner - at), image * p.classes * p.inner + at, 1, p.inner};
  }
  int64_t grain() const {
    const int64_t work = size * std::max<int64_t>(p.classes, 1);
    return std::max<int64_t>(1, kPointwiseGrain / 4 / work);
  }
};

/// Maximum of each row and sum of exp(x - maximum), where rows are neighbours and classes `stride` apart.
template <class T, class C = Compute<T>>
void column_statistics(const T* x, int64_t n, int64_t classes, int64_t stride, C* maximum, C* sum) {
  std::fill_n(maximum, n, -std::numeric_limits<C>::infinity());
  std::fill_n(sum, n, C(0));
  for (int64_t c = 0; c < classes; ++c) {
    const T* row = x + c * stride;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const C v = static_cast<C>(row[i]);
      maximum[i] = v > maximum[i] ? v : maximum[i];
    }
  }
  for (int64_t c = 0; c < classes; ++c) {
    const T* row = x + c * stride;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) sum[i] += math::exp_nonpositive(static_cast<C>(row[i]) - maximum[i]);
  }
}

/// Maximum of each row of the block and sum of exp(x - maximum).
template <class T, class C = Compute<T>>
void row_statistics(const CrossEntropyProblem& p, const Block& block, C* maximum, C* sum) {
  const T* x = static_cast<const T*>(p.input) + block.start;
  const int64_t n = block.count, classes = p.classes;
  if (block.class_stride != 1) {
    column_statistics(x, n, classes, block.class_stride, maximum, sum);
  } else if (classes <= kShortRow) {
    // Short rows are turned, so that vectors run over many of them.
    alignas(64) C tile[kTile], buffer[kTile];
    transpose_elements(sizeof(C), to_compute(x, n * classes, buffer), classes, n, classes, tile, n);
    column_statistics(tile, n, classes, n, maximum, sum);
  } else {
    for (int64_t r = 0; r < n; ++r) {
      const T* row = x + r * classes;
      C m = -std::numeric_limits<C>::infinity();
#pragma omp simd reduction(max : m)
      for (int64_t c = 0; c < classes; ++c) {
        const C v = static_cast<C>(row[c]);
        m = v > m ? v : m;
      }
      C s = 0;
#pragma omp simd reduction(+ : s)
      for (int64_t c = 0; c < classes; ++c) s += math::exp_nonpositive(static_cast<C>(row[c]) - m);
      maximum[r] = m;
      sum[r] = s;
    }
  }
}

/// Sum of weight[c] * (x[c] - maximum) of each row, for label smoothing.
template <class T, class C = Compute<T>>
void weighted_sums(const CrossEntropyProblem& p, const Block& block, const C* maximum, C* result) {
  const T* x = static_cast<const T*>(p.input) + block.start;
  const T* weight = static_cast<const T*>(p.weight);
  for (int64_t r = 0; r < block.count; ++r) {
    C total = 0;
    for (int64_t c = 0; c < p.classes; ++c)
      total += (weight ? static_cast<C>(weight[c]) : C(1)) *
               (static_cast<C>(x[r * block.row_stride + c * block.class_stride]) - maximum[r]);
    result[r] = total;
  }
}

template <class T, class C = Compute<T>>
C total_weight(const CrossEntropyProblem& p) {
  if (!p.weight) return static_cast<C>(p.classes);
  C total = 0;
  for (int64_t c = 0; c < p.classes; ++c) total += static_cast<C>(static_cast<const T*>(p.weight)[c]);
  return total;
}

void check_target(const CrossEntropyProblem& p, int64_t target) {
  TERN_CHECK(target >= 0 && target < p.classes, IndexError,
             "{}: Target {} is out of bounds. There are {} classes, and ignore_index is {}",
             p.log_probabilities ? "nll_loss" : "cross_entropy", target, p.classes, p.ignore_index);
}

struct Sums {
  double loss = 0, divisor = 0;
};

/// The sums over the block of loss_of(row, target, weight).
template <class T, class LossOf, class C = Compute<T>>
Sums sum_losses(const CrossEntropyProblem& p, const Block& block, T* losses, const LossOf& loss_of) {
  const T* weight = static_cast<const T*>(p.weight);
  Sums sums;
  for (int64_t r = 0; r < block.count; ++r) {
    const int64_t t = p.target[block.row + r];
    C loss = 0;
    if (t != p.ignore_index) {
      check_target(p, t);
      const C w = weight ? static_cast<C>(weight[t]) : C(1);
      loss = loss_of(r, t, w);
      sums.loss += static_cast<double>(loss);
      sums.divisor += static_cast<double>(w);
    }
    if (losses) losses[block.row + r] = static_cast<T>(loss);
  }
  return sums;
}

template <class T, class C = Compute<T>>
Sums forward_block(const CrossEntropyProblem& p, const Block& block, T* losses, C* maximum, C* log_sum,
                   C weights) {
  const T* x = static_cast<const T*>(p.input) + block.start;
  const auto at = [&](int64_t r, int64_t t) {
    return static_cast<C>(x[r * block.row_stride + t * block.class_stride]);
  };
  if (p.log_probabilities) {
    std::fill_n(maximum, block.count, C(0));
    std::fill_n(log_sum, block.count, C(0));
    return sum_losses(p, block, losses, [&](int64_t r, int64_t t, C w) { return -w * at(r, t); });
  }
  alignas(64) C smooth[kBlockRows];
  row_statistics<T>(p, block, maximum, log_sum);
  for (int64_t r = 0; r < block.count; ++r) log_sum[r] = math::log(log_sum[r]);
  const bool smoothing = p.label_smoothing != 0;
  if (smoothing) weighted_sums<T>(p, block, maximum, smooth);
  const C on_target = static_cast<C>(1 - p.label_smoothing);
  const C on_all = smoothing ? static_cast<C>(p.label_smoothing / static_cast<double>(p.classes)) : C(0);
  return sum_losses(p, block, losses, [&](int64_t r, int64_t t, C w) {
    const C loss = w * (log_sum[r] - (at(r, t) - maximum[r]));
    return smoothing ? on_target * loss + on_all * (weights * log_sum[r] - smooth[r]) : loss;
  });
}

/// factor * exp(x - maximum - log_sum) for each row of the block.
template <class T, class C = Compute<T>>
void scaled_softmax(const CrossEntropyProblem& p, const Block& block, const C* maximum, const C* log_sum,
                    const C* factor, T* grad) {
  const T* x = static_cast<const T*>(p.input) + block.start;
  const int64_t n = block.count, classes = p.classes;
  if (block.class_stride != 1) {
    for (int64_t c = 0; c < classes; ++c) {
      const T* row = x + c * block.class_stride;
      T* out = grad + c * block.class_stride;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i)
        out[i] = static_cast<T>(factor[i] *
                                math::exp_nonpositive(static_cast<C>(row[i]) - maximum[i] - log_sum[i]));
    }
  } else if (classes <= kShortRow) {
    alignas(64) C tile[kTile];
    alignas(64) C factors[kTile];
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < classes; ++c) {
        tile[r * classes + c] = static_cast<C>(x[r * classes + c]) - maximum[r] - log_sum[r];
        factors[r * classes + c] = factor[r];
      }
    }
    for (int64_t i = 0; i < n * classes; ++i)
      grad[i] = static_cast<T>(factors[i] * math::exp_nonpositive(tile[i]));
  } else {
    for (int64_t r = 0; r < n; ++r) {
      const T* row = x + r * classes;
      T* out = grad + r * classes;
      const C m = maximum[r], s = log_sum[r], f = factor[r];
#pragma GCC ivdep
      for (int64_t c = 0; c < classes; ++c)
        out[c] = static_cast<T>(f * math::exp_nonpositive(static_cast<C>(row[c]) - m - s));
    }
  }
}

template <class T, class C = Compute<T>>
void backward_block(const CrossEntropyBackwardArgs& args, const Block& block, const C* maximum,
                    const C* log_sum, C divisor, C weights) {
  const CrossEntropyProblem& p = args.problem;
  const T* weight = static_cast<const T*>(p.weight);
  const T* grad_loss = static_cast<const T*>(args.grad_loss);
  T* grad = static_cast<T*>(args.grad_input) + block.start;
  const C on_target = static_cast<C>(1 - p.label_smoothing);
  const C on_all =
      p.label_smoothing != 0 ? static_cast<C>(p.label_smoothing / static_cast<double>(p.classes)) : C(0);
  alignas(64) C scale[kBlockRows];   // gradient of the row's loss; 0 where ignored
  alignas(64) C factor[kBlockRows];  // of the softmax
  alignas(64) C hit[kBlockRows];     // taken away at the target
  for (int64_t r = 0; r < block.count; ++r) {
    const int64_t t = p.target[block.row + r];
    scale[r] = factor[r] = hit[r] = C(0);
    if (t == p.ignore_index) continue;
    check_target(p, t);
    scale[r] = p.reduction == Reduction::None  ? static_cast<C>(grad_loss[block.row + r])
               : p.reduction == Reduction::Sum ? static_cast<C>(*grad_loss)
                                               : static_cast<C>(*grad_loss) / divisor;
    hit[r] = scale[r] * on_target * (weight ? static_cast<C>(weight[t]) : C(1));
    factor[r] = hit[r] + scale[r] * on_all * weights;
  }
  if (p.log_probabilities && block.class_stride == 1) {
    std::fill_n(grad, block.count * p.classes, T(C(0)));
  } else if (p.log_probabilities) {
    for (int64_t c = 0; c < p.classes; ++c) std::fill_n(grad + c * block.class_stride, block.count, T(C(0)));
  } else {
    scaled_softmax<T>(p, block, maximum, log_sum, factor, grad);
  }
  for (int64_t r = 0; r < block.count; ++r) {
    const int64_t t = p.target[block.row + r];
    T* row = grad + r * block.row_stride;
    if (t == p.ignore_index) {  // the softmax may be NaN there
      for (int64_t c = 0; c < p.classes; ++c) row[c * block.class_stride] = T(C(0));
      continue;
    }
    if (on_all != C(0)) {
      const C share = scale[r] * on_all;
      for (int64_t c = 0; c < p.classes; ++c) {
        T& g = row[c * block.class_stride];
        g = static_cast<T>(static_cast<C>(g) - share * (weight ? static_cast<C>(weight[c]) : C(1)));
      }
    }
    T& g = row[t * block.class_stride];
    g = static_cast<T>(static_cast<C>(g) - hit[r]);
  }
}

}  // namespace

void cross_entropy(const LaunchContext&, const CrossEntropyArgs& args) {
  const CrossEntropyProblem& p = args.problem;
  visit_floating(p.dtype, [&]<class T>() {
    using C = Compute<T>;
    const int64_t rows = p.batch * p.inner;
    const Blocks blocks(p);
    C* maximum = static_cast<C*>(args.saved);
    C* log_sum = maximum + rows;
    T* losses = p.reduction == Reduction::None ? static_cast<T*>(args.loss) : nullptr;
    const C weights = p.label_smoothing != 0 ? total_weight<T>(p) : C(0);
    SmallVector<Sums, 16> sums(static_cast<size_t>(blocks.count));
    parallel_for(blocks.count, blocks.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Block block = blocks[i];
        sums[static_cast<size_t>(i)] =
            forward_block<T>(p, block, losses, maximum + block.row, log_sum + block.row, weights);
      }
    });
    Sums total;
    for (const Sums& s : sums) {
      total.loss += s.loss;
      total.divisor += s.divisor;
    }
    log_sum[rows] = static_cast<C>(total.divisor);
    if (p.reduction == Reduction::Mean) total.loss /= total.divisor;
    if (!losses) *static_cast<T*>(args.loss) = static_cast<T>(static_cast<C>(total.loss));
  });
}

void cross_entropy_backward(const LaunchContext&, const CrossEntropyBackwardArgs& args) {
  const CrossEntropyProblem& p = args.problem;
  visit_floating(p.dtype, [&]<class T>() {
    using C = Compute<T>;
    const int64_t rows = p.batch * p.inner;
    const Blocks blocks(p);
    const C* maximum = static_cast<const C*>(args.saved);
    const C* log_sum = maximum + rows;
    const C weights = p.label_smoothing != 0 ? total_weight<T>(p) : C(0);
    parallel_for(blocks.count, blocks.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Block block = blocks[i];
        backward_block<T>(args, block, maximum + block.row, log_sum + block.row, log_sum[rows], weights);
      }
    });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
