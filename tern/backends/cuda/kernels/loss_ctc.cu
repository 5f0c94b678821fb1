// Connectionist temporal classification: a block walks over the steps of a sample, a thread for each state.
// The gradients of all steps are then computed at once, a block for each, in an order that is always the
// same.
#include <limits>

#include "tern/backends/cuda/kernels/block.cuh"
#include "tern/backends/cuda/kernels/launch.cuh"
#include "tern/backends/cuda/kernels/report.cuh"
#include "tern/kernels/ctc_steps.h"

namespace tern::cuda_backend {
namespace {

inline constexpr int kMostStates = 512;  // threads of a sample's block, at most

using ctc_steps::join_paths;
using ctc_steps::kNoPath;

/// A sample with the labels of its states.
template <class C>
struct CtcSample : ctc_steps::Sample<C> {
  using Base = ctc_steps::Sample<C>;
  using Base::Base, Base::states, Base::target, Base::log_probs, Base::stride, Base::blank, Base::classes;

  /// A label that is no class was reported, and counts as the blank.
  __device__ int64_t label(int64_t i) const {
    return target[i] >= 0 && target[i] < classes ? target[i] : blank;
  }
  __device__ int64_t label_of_state(int64_t s) const { return s % 2 == 0 ? blank : label(s / 2); }
  /// Whether a path may go from state s to s + 2.
  __device__ bool may_skip(int64_t s) const {
    return s % 2 == 1 && s + 2 < states && label(s / 2) != label(s / 2 + 1);
  }
  __device__ C emitted(int64_t t, int64_t s) const { return log_probs[t * stride + label_of_state(s)]; }
};

template <class C>
__global__ void __launch_bounds__(kMostStates) ctc_alpha(CtcLossArgs args, const char* op, Fault* fault) {
  const CtcProblem& p = args.problem;
  const int64_t n = blockIdx.x, row = 2 * p.longest + 1;
  const CtcSample<C> x(p, n);
  for (int64_t i = threadIdx.x; i < x.labels; i += blockDim.x)
    if (x.target[i] < 0 || x.target[i] >= p.classes)
      report(fault, FaultKind::Label, op, x.target[i], p.classes);
  C* loss = static_cast<C*>(args.loss) + n;
  if (x.steps == 0) {
    if (threadIdx.x == 0) *loss = x.labels == 0 ? C(0) : -kNoPath<C>;
    return;
  }
  C* alpha = static_cast<C*>(args.log_alpha) + n * p.time * row;
  for (int64_t t = 0; t < x.steps; ++t) {
    C* now = alpha + t * row;
    const C* last = now - row;
    for (int64_t s = threadIdx.x; s < x.states; s += blockDim.x) {
      if (t == 0)
        now[s] = s < 2 ? x.emitted(t, s) : kNoPath<C>;
      else
        now[s] = join_paths(last[s], s > 0 ? last[s - 1] : kNoPath<C>,
                            s > 1 && x.may_skip(s - 2) ? last[s - 2] : kNoPath<C>) +
                 x.emitted(t, s);
    }
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  const C* last = alpha + (x.steps - 1) * row;
  *loss = -join_paths(last[x.states - 1], x.labels > 0 ? last[x.states - 2] : kNoPath<C>, kNoPath<C>);
}

/// Which labels of a target are of one class: whether none before is, and the next one that is (0: none).
struct SameLabel {
  int32_t is_first, next;
};

template <class C>
__global__ void __launch_bounds__(kMostStates)
    ctc_beta(CtcLossBackwardArgs args, C* log_beta, SameLabel* same) {
  const CtcProblem& p = args.problem;
  const int64_t n = blockIdx.x, row = 2 * p.longest + 1;
  const CtcSample<C> x(p, n);
  same += n * p.longest;
  for (int64_t i = threadIdx.x; i < x.labels; i += blockDim.x) {
    SameLabel link{1, 0};
    for (int64_t j = 0; j < i; ++j)
      if (x.label(j) == x.label(i)) link.is_first = 0;
    for (int64_t j = x.labels - 1; j > i; --j)
      if (x.label(j) == x.label(i)) link.next = static_cast<int32_t>(j);
    same[i] = link;
  }
  C* beta = log_beta + n * p.time * row;
  for (int64_t t = x.steps - 1; t >= 0; --t) {
    C* now = beta + t * row;
    const C* last = now + row;
    for (int64_t s = threadIdx.x; s < x.states; s += blockDim.x) {
      if (t == x.steps - 1)
        now[s] = s + 2 >= x.states ? x.emitted(t, s) : kNoPath<C>;
      else
        now[s] = join_paths(last[s], s + 1 < x.states ? last[s + 1] : kNoPath<C>,
                            x.may_skip(s) ? last[s + 2] : kNoPath<C>) +
                 x.emitted(t, s);
    }
    __syncthreads();
  }
}

/// A block for each step of each sample.
template <class C>
__global__ void __launch_bounds__(kBlock)
    ctc_gradient(CtcLossBackwardArgs args, const C* log_beta, const SameLabel* same) {
  const CtcProblem& p = args.problem;
  const int64_t t = blockIdx.x / p.batch, n = blockIdx.x - t * p.batch, row = 2 * p.longest + 1;
  const CtcSample<C> x(p, n);
  const C loss = static_cast<const C*>(args.loss)[n], scale = static_cast<const C*>(args.grad_loss)[n];
  C* grad = static_cast<C*>(args.grad_log_probs) + t * x.stride + n * p.classes;
  if (t >= x.steps || loss == -kNoPath<C>) {
    const bool zero = t >= x.steps || p.zero_infinity;
    for (int64_t c = threadIdx.x; c < p.classes; c += blockDim.x)
      grad[c] = zero ? C(0) : std::numeric_limits<C>::quiet_NaN();
    return;
  }
  same += n * p.longest;
  const int64_t at = (n * p.time + t) * row;
  const C* alpha = static_cast<const C*>(args.log_alpha) + at;
  const C* beta = log_beta + at;
  const auto share = [&](int64_t s) {
    return ctc_steps::share_of_paths(alpha[s], beta[s], x.emitted(t, s), loss);
  };
  for (int64_t c = threadIdx.x; c < p.classes; c += blockDim.x)
    grad[c] = math::exp(x.log_probs[t * x.stride + c]);
  __syncthreads();
  C of_blank = C(0);
  for (int64_t i = threadIdx.x; i <= x.labels; i += blockDim.x) {
    of_blank += share(2 * i);
    if (i == x.labels || same[i].is_first == 0) continue;
    C of_label = C(0);
    int64_t j = i;
    do {
      of_label += share(2 * j + 1);
      j = same[j].next;
    } while (j != 0);
    grad[x.label(i)] -= of_label;
  }
  of_blank = block_reduce(of_blank, Plus());
  __syncthreads();
  if (threadIdx.x == 0) grad[p.blank] -= of_blank;
  __syncthreads();
  for (int64_t c = threadIdx.x; c < p.classes; c += blockDim.x) grad[c] *= scale;
}

/// Threads for so many elements of a block's work: whole warps.
int state_threads(int64_t elements, int most) {
  return static_cast<int>(std::clamp<int64_t>(ceil_div(elements, 32) * 32, 32, most));
}

template <class F>
void visit_ctc(DType dtype, const F& f) {
  if (dtype == DType::Float32)
    f.template operator()<float>();
  else
    f.template operator()<double>();
}

}  // namespace

void ctc_loss(const LaunchContext& context, const CtcLossArgs& args) {
  const CtcProblem& p = args.problem;
  visit_ctc(p.dtype, [&]<class C>() {
    start(context, blocks(p.batch), state_threads(2 * p.longest + 1, kMostStates), 0, ctc_alpha<C>, args,
          "ctc_loss", stream_of(context.stream).fault());
  });
}

void ctc_loss_backward(const LaunchContext& context, const CtcLossBackwardArgs& args) {
  const CtcProblem& p = args.problem;
  if (p.time * p.batch == 0) return;
  visit_ctc(p.dtype, [&]<class C>() {
    const auto states = static_cast<size_t>(p.batch * p.time * (2 * p.longest + 1));
    const Storage log_beta = workspace(context, states * sizeof(C));
    const Storage same = workspace(
        context, static_cast<size_t>(std::max<int64_t>(1, p.batch * p.longest)) * sizeof(SameLabel));
    auto* beta = static_cast<C*>(log_beta->data());
    auto* links = static_cast<SameLabel*>(same->data());
    start(context, blocks(p.batch), state_threads(2 * p.longest + 1, kMostStates), 0, ctc_beta<C>, args, beta,
          links);
    start(context, blocks(p.batch * p.time), state_threads(std::max(p.classes, p.longest + 1), kBlock), 0,
          ctc_gradient<C>, args, static_cast<const C*>(beta), static_cast<const SameLabel*>(links));
  });
}

}  // namespace tern::cuda_backend
