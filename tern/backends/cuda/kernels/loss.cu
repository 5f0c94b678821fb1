// Cross entropy, fused with log-softmax: a warp for each row (a thread where rows are short or lie apart, a
// block where they are long), then one block that puts the rows' losses together in a fixed order. Losses of
// two tensors are in loss_pair.cu.
#include "tern/kernels/loss.h"

#include <limits>

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/report.cuh"
#include "tern/kernels/math.h"

namespace tern::cuda_backend {
namespace {

/// Row r: where its first class lies; classes are `inner` apart.
__device__ __forceinline__ int64_t row_start(const CrossEntropyProblem& p, int64_t r) {
  return r / p.inner * p.classes * p.inner + r % p.inner;
}

template <class T>
__device__ __forceinline__ Compute<T> weight_of(const CrossEntropyProblem& p, int64_t c) {
  return p.weight ? widen(static_cast<const T*>(p.weight)[c]) : Compute<T>(1);
}

template <class C>
struct Shares {
  C on_target, on_all;
  __device__ explicit Shares(const CrossEntropyProblem& p)
      : on_target(static_cast<C>(1 - p.label_smoothing)),
        on_all(p.label_smoothing != 0 ? static_cast<C>(p.label_smoothing / static_cast<double>(p.classes))
                                      : C(0)) {}
};

/// Whether the target counts; reports one that is none.
__device__ __forceinline__ bool counts(const CrossEntropyProblem& p, int64_t target, Fault* fault,
                                       const char* op) {
  if (target == p.ignore_index) return false;
  if (target >= 0 && target < p.classes) return true;
  report(fault, FaultKind::TargetClass, op, target, p.classes, p.ignore_index);
  return false;
}

template <class C>
struct RowLoss {
  C loss, weight;
};

template <int kLanes, class T, class Op>
__device__ __forceinline__ T reduce_lanes(T value, const Op& op) {
  if constexpr (kLanes == kBlock)
    return block_reduce(value, op);
  else
    return warp_reduce(value, op, kLanes);
}

/// By `kLanes` (1, 32 or kBlock) threads. Writes the row's maximum and logarithm of the sum, and gives the
/// first of them its loss and weight.
template <class T, int kLanes>
__device__ __forceinline__ RowLoss<Compute<T>> row_loss(const CrossEntropyArgs& args, int64_t r, Fault* fault,
                                                        const char* op) {
  using C = Compute<T>;
  const CrossEntropyProblem& p = args.problem;
  const int64_t rows = p.batch * p.inner;
  const int lane = threadIdx.x % kLanes;
  const T* x = static_cast<const T*>(p.input) + row_start(p, r);
  C maximum = C(0), log_sum = C(0), smooth = C(0), total_weight = C(0);
  if (!p.log_probabilities) {
    maximum = -std::numeric_limits<C>::infinity();
    for (int64_t c = lane; c < p.classes; c += kLanes) {
      const C v = widen(x[c * p.inner]);
      maximum = v > maximum ? v : maximum;
    }
    maximum = reduce_lanes<kLanes>(maximum, Larger());
    C sum = C(0);
    for (int64_t c = lane; c < p.classes; c += kLanes) sum += math::exp(widen(x[c * p.inner]) - maximum);
    log_sum = math::log(reduce_lanes<kLanes>(sum, Plus()));
  }
  const Shares<C> shares(p);
  if (shares.on_all != C(0)) {
    for (int64_t c = lane; c < p.classes; c += kLanes) {
      const C w = weight_of<T>(p, c);
      smooth += w * (widen(x[c * p.inner]) - maximum);
      total_weight += w;
    }
    smooth = reduce_lanes<kLanes>(smooth, Plus());
    total_weight = reduce_lanes<kLanes>(total_weight, Plus());
  }
  if (lane != 0) return {C(0), C(0)};
  C* saved = static_cast<C*>(args.saved);
  saved[r] = maximum;
  saved[rows + r] = log_sum;
  const int64_t t = p.target[r];
  C loss = C(0), w = C(0);
  if (counts(p, t, fault, op)) {
    w = weight_of<T>(p, t);
    loss = w * (log_sum - (widen(x[t * p.inner]) - maximum));
    if (shares.on_all != C(0))
      loss = shares.on_target * loss + shares.on_all * (total_weight * log_sum - smooth);
  }
  if (p.reduction == Reduction::None) static_cast<T*>(args.loss)[r] = narrow<T>(loss);
  return {loss, w};
}

template <class T, int kLanes>
__global__ void row_losses(CrossEntropyArgs args, Compute<T>* losses, Compute<T>* weights, Fault* fault,
                           const char* op) {
  const int64_t r = (int64_t{blockIdx.x} * kBlock + threadIdx.x) / kLanes;
  if (r >= args.problem.batch * args.problem.inner) return;
  const auto found = row_loss<T, kLanes>(args, r, fault, op);
  if (threadIdx.x % kLanes != 0) return;
  losses[r] = found.loss;
  weights[r] = found.weight;
}

struct Total {
  double loss, divisor;
};
struct PlusTotal {
  __device__ Total operator()(const Total& a, const Total& b) const {
    return {a.loss + b.loss, a.divisor + b.divisor};
  }
};

/// Sums of pieces of rows, one for each block.
template <class C>
__global__ void add_rows(const C* losses, const C* weights, int64_t rows, int64_t piece, Total* totals) {
  Total sum{0, 0};
  const int64_t begin = blockIdx.x * piece, end = min(begin + piece, rows);
  for (int64_t r = begin + threadIdx.x; r < end; r += kBlock)
    sum = PlusTotal()(sum, {static_cast<double>(losses[r]), static_cast<double>(weights[r])});
  sum = block_reduce(sum, PlusTotal());
  if (threadIdx.x == 0) totals[blockIdx.x] = sum;
}

template <class T>
__device__ void write_loss(const CrossEntropyArgs& args, Total sum) {
  using C = Compute<T>;
  const CrossEntropyProblem& p = args.problem;
  static_cast<C*>(args.saved)[2 * p.batch * p.inner] = static_cast<C>(sum.divisor);
  if (p.reduction == Reduction::Mean) sum.loss /= sum.divisor;
  if (p.reduction != Reduction::None) *static_cast<T*>(args.loss) = narrow<T>(static_cast<C>(sum.loss));
}

template <class T>
__global__ void finish_loss(CrossEntropyArgs args, const Total* totals, int count) {
  Total sum{0, 0};
  for (int i = 0; i < count; ++i) sum = PlusTotal()(sum, totals[i]);
  write_loss<T>(args, sum);
}

/// Everything by one block, a thread for each row: what small batches of few classes need is one launch.
inline constexpr int64_t kFewRows = 512, kFewClasses = 32, kManyClasses = 2048;
template <class T>
__global__ void __launch_bounds__(kFewRows) few_rows(CrossEntropyArgs args, Fault* fault, const char* op) {
  Total sum{0, 0};
  for (int64_t r = threadIdx.x; r < args.problem.batch * args.problem.inner; r += blockDim.x) {
    const auto found = row_loss<T, 1>(args, r, fault, op);
    sum = PlusTotal()(sum, {static_cast<double>(found.loss), static_cast<double>(found.weight)});
  }
  sum = block_reduce(sum, PlusTotal());
  if (threadIdx.x == 0) write_loss<T>(args, sum);
}

/// The sum of all weights of classes, for label smoothing, in a fixed order.
template <class T>
__global__ void add_weights(CrossEntropyProblem p, Compute<T>* total) {
  Compute<T> sum = 0;
  for (int64_t c = threadIdx.x; c < p.classes; c += kBlock) sum += weight_of<T>(p, c);
  sum = block_reduce(sum, Plus());
  if (threadIdx.x == 0) *total = sum;
}

/// Elements [begin, begin + count) of the input, which are whole lines of `inner` elements; the first line
/// belongs to a class of a sample whose rows begin at `first_row`.
struct Lines {
  int64_t begin, first_row;
  uint32_t count, first_class;
  Divider inner, classes;
};

/// A thread for each element of the lines.
template <class T>
__global__ void input_gradient(CrossEntropyBackwardArgs args, const Lines lines,
                               const Compute<T>* total_weight, Fault* fault, const char* op) {
  using C = Compute<T>;
  const CrossEntropyProblem& p = args.problem;
  const int64_t rows = p.batch * p.inner;
  const uint32_t number = blockIdx.x * kBlock + threadIdx.x;
  if (number >= lines.count) return;
  const uint32_t line = lines.inner.divide(number), from_sample = lines.first_class + line;
  const uint32_t sample = lines.classes.divide(from_sample);
  const int64_t c = from_sample - sample * lines.classes.divisor, i = lines.begin + number;
  const int64_t r = lines.first_row + int64_t{sample} * p.inner + (number - line * lines.inner.divisor);
  T* out = static_cast<T*>(args.grad_input) + i;
  const int64_t t = p.target[r];
  if (!counts(p, t, fault, op)) {
    *out = narrow<T>(C(0));
    return;
  }
  const C* saved = static_cast<const C*>(args.saved);
  const T* grad_loss = static_cast<const T*>(args.grad_loss);
  const C scale = p.reduction == Reduction::None  ? widen(grad_loss[r])
                  : p.reduction == Reduction::Sum ? widen(*grad_loss)
                                                  : widen(*grad_loss) / saved[2 * rows];
  const Shares<C> shares(p);
  const C hit = scale * shares.on_target * weight_of<T>(p, t);
  C value = C(0);
  if (!p.log_probabilities) {
    const C factor = hit + (shares.on_all != C(0) ? scale * shares.on_all * *total_weight : C(0));
    value = factor * math::exp(widen(static_cast<const T*>(p.input)[i]) - saved[r] - saved[rows + r]);
  }
  if (shares.on_all != C(0)) value -= scale * shares.on_all * weight_of<T>(p, c);
  if (c == t) value -= hit;
  *out = narrow<T>(value);
}

const char* name_of(const CrossEntropyProblem& p) {
  return p.log_probabilities ? "nll_loss" : "cross_entropy";
}

}  // namespace

void cross_entropy(const LaunchContext& context, const CrossEntropyArgs& args) {
  const CrossEntropyProblem& p = args.problem;
  visit_floating(p.dtype, [&]<class T>() {
    using C = Compute<T>;
    const int64_t rows = p.batch * p.inner;
    Fault* fault = stream_of(context.stream).fault();
    if (rows <= kFewRows && p.classes <= kFewClasses)
      return start(context, 1, rows <= kBlock ? kBlock : static_cast<int>(kFewRows), 0, few_rows<T>, args,
                   fault, name_of(p));
    const int64_t piece = std::max<int64_t>(4096, ceil_div(rows, 256)), pieces = ceil_div(rows, piece);
    const Storage scratch =
        workspace(context, static_cast<size_t>(2 * std::max<int64_t>(rows, 1)) * sizeof(C));
    const Storage sums =
        workspace(context, static_cast<size_t>(std::max<int64_t>(pieces, 1)) * sizeof(Total));
    auto* losses = static_cast<C*>(scratch->data());
    auto* weights = losses + rows;
    auto* totals = static_cast<Total*>(sums->data());
    const auto run = [&]<int kLanes>() {
      start(context, blocks(ceil_div(rows * kLanes, kBlock)), kBlock, 0, row_losses<T, kLanes>, args, losses,
            weights, fault, name_of(p));
    };
    const bool one_class = p.log_probabilities && p.label_smoothing == 0;  // is read of each row
    if (p.inner > 1 || p.classes <= 8 || one_class)
      run.template operator()<1>();
    else if (p.classes < kManyClasses)
      run.template operator()<32>();
    else
      run.template operator()<kBlock>();
    start(context, blocks(pieces), kBlock, 0, add_rows<C>, static_cast<const C*>(losses),
          static_cast<const C*>(weights), rows, piece, totals);
    start(context, 1, 1, 0, finish_loss<T>, args, static_cast<const Total*>(totals),
          static_cast<int>(pieces));
  });
}

void cross_entropy_backward(const LaunchContext& context, const CrossEntropyBackwardArgs& args) {
  const CrossEntropyProblem& p = args.problem;
  visit_floating(p.dtype, [&]<class T>() {
    using C = Compute<T>;
    Storage scratch;
    C* total_weight = nullptr;
    if (p.label_smoothing != 0) {
      scratch = workspace(context, sizeof(C));
      total_weight = static_cast<C*>(scratch->data());
      start(context, 1, kBlock, 0, add_weights<T>, p, total_weight);
    }
    const int64_t count = p.batch * p.classes;
    if (count * p.inner == 0) return;
    if (p.inner > kMostElements || p.classes > kMostElements / 2)
      throw_not_on_gpus("cross-entropy of 2^31 rows of a sample or 2^30 classes");
    const int64_t at_once = std::min(kMostElements / p.inner, kMostElements / 2);
    for (int64_t line = 0; line < count; line += at_once) {
      const int64_t elements = std::min(at_once, count - line) * p.inner;
      const Lines lines{line * p.inner,
                        line / p.classes * p.inner,
                        static_cast<uint32_t>(elements),
                        static_cast<uint32_t>(line % p.classes),
                        Divider(p.inner),
                        Divider(p.classes)};
      start(context, blocks(ceil_div(elements, kBlock)), kBlock, 0, input_gradient<T>, args, lines,
            static_cast<const C*>(total_weight), stream_of(context.stream).fault(), name_of(p));
    }
  });
}

}  // namespace tern::cuda_backend
