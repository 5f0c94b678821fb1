// Losses of two tensors of one shape, and their gradients. Sums of blocks are added in a fixed order, in
// double.
#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/elements.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/report.cuh"
#include "tern/kernels/loss.h"
#include "tern/kernels/math.h"

namespace tern::cuda_backend {
namespace {

template <class C>
__device__ __forceinline__ C absolute(C d) {
  return d < C(0) ? -d : d;
}
/// NaN stays.
template <class C>
__device__ __forceinline__ C sign(C d) {
  return d > C(0) ? C(1) : (d < C(0) ? C(-1) : d);
}
template <class C>
__device__ __forceinline__ C bounded_log(C log) {
  return log < C(-100) ? C(-100) : log;
}
template <class C>
__device__ __forceinline__ C at_least(C x, C low) {
  return x < low ? low : x;
}

/// One kernel for all losses of a dtype: which one is chosen at run time, the same for all threads.
template <class C>
struct Loss {
  PairLoss op;
  C parameter;

  __device__ C value(C x, C y) const {
    switch (op) {
      case PairLoss::Mse:
        return (x - y) * (x - y);
      case PairLoss::L1:
        return absolute(x - y);
      case PairLoss::SmoothL1:
        return absolute(x - y) < parameter ? C(0.5) * (x - y) * (x - y) / parameter
                                           : absolute(x - y) - C(0.5) * parameter;
      case PairLoss::Huber:
        return absolute(x - y) <= parameter ? C(0.5) * (x - y) * (x - y)
                                            : parameter * (absolute(x - y) - C(0.5) * parameter);
      case PairLoss::Bce:
        return (y - C(1)) * bounded_log(math::log1p(-x)) - y * bounded_log(math::log(x));
      case PairLoss::BceWithLogits:
        return at_least(x, C(0)) - x * y + math::log1p(math::exp(-absolute(x)));
      case PairLoss::KlDiv:
        return (y == C(0) ? C(0) : y * math::log(y)) - y * x;
      default:
        return math::exp(y) * (y - x);
    }
  }
  __device__ C slope(C x, C y) const {
    switch (op) {
      case PairLoss::Mse:
        return C(2) * (x - y);
      case PairLoss::L1:
        return C(x > y) - C(x < y);
      case PairLoss::SmoothL1:
        return absolute(x - y) < parameter ? (x - y) / parameter : sign(x - y);
      case PairLoss::Huber:
        return absolute(x - y) <= parameter ? x - y : parameter * sign(x - y);
      case PairLoss::Bce:
        return (x - y) / at_least((C(1) - x) * x, C(1e-12));
      case PairLoss::BceWithLogits:
        return math::sigmoid(x) - y;
      case PairLoss::KlDiv:
        return -y;
      default:
        return -math::exp(y);
    }
  }
};

/// Elements of one block.
inline constexpr int64_t kPiece = 8192;

template <class T>
__global__ void losses(PairLossArgs args, double* partial, Fault* fault) {
  using C = Compute<T>;
  const Loss<C> loss{args.op, static_cast<C>(args.parameter)};
  const T* x = static_cast<const T*>(args.input);
  const T* y = static_cast<const T*>(args.target);
  const int64_t begin = blockIdx.x * kPiece, end = min(begin + kPiece, args.numel);
  C sum = C(0);
  for (int64_t i = begin + threadIdx.x; i < end; i += kBlock) {
    const C a = widen(x[i]), b = widen(y[i]);
    if (args.op == PairLoss::Bce) {
      if (!(a >= C(0) && a <= C(1))) report(fault, FaultKind::NotProbability, nullptr, /*value=*/0);
      if (!(b >= C(0) && b <= C(1))) report(fault, FaultKind::NotProbability, nullptr, /*value=*/1);
    }
    const C value = loss.value(a, b);
    if (partial)
      sum += value;
    else
      static_cast<T*>(args.loss)[i] = narrow<T>(value);
  }
  if (!partial) return;
  const double total = block_reduce(static_cast<double>(sum), Plus());
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

template <class T>
__global__ void finish(PairLossArgs args, const double* partial, int64_t count) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kBlock) sum += partial[i];
  sum = block_reduce(sum, Plus());
  if (threadIdx.x == 0) *static_cast<T*>(args.loss) = narrow<T>(static_cast<Compute<T>>(sum * args.scale));
}

template <class T>
__global__ void slopes(PairLossBackwardArgs args) {
  using C = Compute<T>;
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= args.numel) return;
  const Loss<C> loss{args.op, static_cast<C>(args.parameter)};
  const C grad = widen(static_cast<const T*>(args.grad_loss)[args.reduction == Reduction::None ? i : 0]);
  const C slope =
      loss.slope(widen(static_cast<const T*>(args.input)[i]), widen(static_cast<const T*>(args.target)[i]));
  static_cast<T*>(args.grad_input)[i] = narrow<T>(static_cast<C>(args.scale) * grad * slope);
}

}  // namespace

void pair_loss(const LaunchContext& context, const PairLossArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    const int64_t count = ceil_div(args.numel, kPiece);
    Storage scratch;
    double* partial = nullptr;
    if (args.reduction != Reduction::None) {
      scratch = workspace(context, static_cast<size_t>(std::max<int64_t>(count, 1)) * sizeof(double));
      partial = static_cast<double*>(scratch->data());
    }
    start(context, blocks(count), kBlock, 0, losses<T>, args, partial, stream_of(context.stream).fault());
    if (partial) start(context, 1, kBlock, 0, finish<T>, args, static_cast<const double*>(partial), count);
  });
}

void pair_loss_backward(const LaunchContext& context, const PairLossBackwardArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    start(context, blocks(ceil_div(args.numel, kBlock)), kBlock, 0, slopes<T>, args);
  });
}

}  // namespace tern::cuda_backend
