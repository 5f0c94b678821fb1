// Connectionist temporal classification: sums over the paths of each sample, as logarithms, with the states
// of one step side by side.
#include <algorithm>
#include <limits>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/base/check.h"
#include "tern/kernels/ctc_steps.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// States (of one step) below which a second thread is not worth it.
constexpr int64_t kStatesGrain = 4096;

using ctc_steps::kNoPath;

/// The rows that the walk of a sample needs, one behind the other: states of the last step with two that are
/// never reached on either side, of this step, what a step of two costs (0 or -infinity), and the log
/// probabilities of each state's label.
template <class C>
struct StateRows {
  int64_t step;
  Scratch<C> memory;
  explicit StateRows(int64_t states) : step(round_to_line<C>(states + 2 * kSide)), memory(4 * step) {}
  static constexpr int64_t kSide = 2;
  C* last() const { return memory.get() + kSide; }
  C* now() const { return memory.get() + step; }
  C* skip() const { return memory.get() + 2 * step; }
  C* emitted() const { return memory.get() + 3 * step; }
};

/// A sample with the rows of its states.
template <class C>
struct CtcSample : ctc_steps::Sample<C> {
  using Base = ctc_steps::Sample<C>;
  using Base::Base, Base::steps, Base::labels, Base::states, Base::target, Base::log_probs, Base::stride,
      Base::blank;

  /// Of each state's label at step t.
  void emit(int64_t t, C* emitted) const {
    const C* row = log_probs + t * stride;
    const C of_blank = row[blank];
    for (int64_t i = 0; i < labels; ++i) {
      emitted[2 * i] = of_blank;
      emitted[2 * i + 1] = row[target[i]];
    }
    emitted[2 * labels] = of_blank;
  }
  /// What it costs to come to a state from two before.
  void fill_skip(C* skip) const {
    std::fill_n(skip, states, kNoPath<C>);
    for (int64_t i = 1; i < labels; ++i)
      if (target[i] != target[i - 1]) skip[2 * i + 1] = C(0);
  }
};

/// to[s] = log(exp(stay[s]) + exp(near[s]) + exp(far[s] + skip[s])) + emitted[s]
template <class C>
[[gnu::noinline]] void step_states(C* to, const C* stay, const C* near, const C* far, const C* skip,
                                   const C* emitted, int64_t n) {
#pragma GCC ivdep
  for (int64_t s = 0; s < n; ++s)
    to[s] = ctc_steps::join_paths(stay[s], near[s], far[s] + skip[s]) + emitted[s];
}

template <class C>
[[gnu::noinline]] void state_shares(C* to, const C* alpha, const C* beta, const C* emitted, C loss,
                                    int64_t n) {
#pragma GCC ivdep
  for (int64_t s = 0; s < n; ++s) to[s] = ctc_steps::share_of_paths(alpha[s], beta[s], emitted[s], loss);
}

template <class C>
[[gnu::noinline]] void exp_row(C* to, const C* from, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = math::exp(from[i]);
}

void check_labels(const CtcProblem& p, const int64_t* target, int64_t labels) {
  for (int64_t i = 0; i < labels; ++i)
    TERN_CHECK(target[i] >= 0 && target[i] < p.classes, IndexError,
               "ctc_loss: target {} is none of the {} classes", target[i], p.classes);
}

template <class C>
void ctc_forward(const CtcLossArgs& args, int64_t n) {
  const CtcProblem& p = args.problem;
  const CtcSample<C> x(p, n);
  check_labels(p, x.target, x.labels);
  C* loss = static_cast<C*>(args.loss) + n;
  if (x.steps == 0) {
    *loss = x.labels == 0 ? C(0) : -kNoPath<C>;
    return;
  }
  const int64_t row = 2 * p.longest + 1;
  C* alpha = static_cast<C*>(args.log_alpha) + n * p.time * row;
  const StateRows<C> rows(x.states);
  x.fill_skip(rows.skip());
  C* last = rows.last();
  std::fill_n(last - StateRows<C>::kSide, x.states + StateRows<C>::kSide, kNoPath<C>);
  x.emit(0, rows.emitted());
  std::copy_n(rows.emitted(), std::min<int64_t>(2, x.states), last);
  std::copy_n(last, x.states, alpha);
  for (int64_t t = 1; t < x.steps; ++t) {
    x.emit(t, rows.emitted());
    C* now = alpha + t * row;
    step_states(now, last, last - 1, last - 2, rows.skip(), rows.emitted(), x.states);
    std::copy_n(now, x.states, last);
  }
  const C on_blank = last[x.states - 1], on_label = x.labels > 0 ? last[x.states - 2] : kNoPath<C>;
  *loss = -ctc_steps::join_paths(on_blank, on_label, kNoPath<C>);
}

template <class C>
void ctc_backward(const CtcLossBackwardArgs& args, int64_t n) {
  const CtcProblem& p = args.problem;
  const CtcSample<C> x(p, n);
  const C loss = static_cast<const C*>(args.loss)[n], scale = static_cast<const C*>(args.grad_loss)[n];
  C* grad = static_cast<C*>(args.grad_log_probs) + n * p.classes;
  const auto fill = [&](int64_t first, int64_t end, C value) {
    for (int64_t t = first; t < end; ++t) std::fill_n(grad + t * x.stride, p.classes, value);
  };
  fill(x.steps, p.time, C(0));
  if (loss == -kNoPath<C>)
    return fill(0, x.steps, p.zero_infinity ? C(0) : std::numeric_limits<C>::quiet_NaN());
  const int64_t row = 2 * p.longest + 1;
  const C* alpha = static_cast<const C*>(args.log_alpha) + n * p.time * row;
  const StateRows<C> rows(x.states);
  // Of the way back: what it costs to go on to two behind.
  C *last = rows.last(), *now = rows.now(), *skip = rows.skip(), *emitted = rows.emitted();
  x.fill_skip(skip);
  std::copy(skip + std::min<int64_t>(2, x.states), skip + x.states, skip);
  std::fill(skip + std::max<int64_t>(0, x.states - 2), skip + x.states, kNoPath<C>);
  std::fill_n(last, x.states + StateRows<C>::kSide, kNoPath<C>);
  for (int64_t t = x.steps - 1; t >= 0; --t) {
    x.emit(t, emitted);
    if (t == x.steps - 1) {
      const int64_t first = std::max<int64_t>(0, x.states - 2);
      std::copy_n(emitted + first, x.states - first, last + first);
    } else {
      step_states(now, last, last + 1, last + 2, skip, emitted, x.states);
      std::copy_n(now, x.states, last);
    }
    state_shares(now, alpha + t * row, last, emitted, loss, x.states);
    C* to = grad + t * x.stride;
    exp_row(to, x.log_probs + t * x.stride, p.classes);
    C of_blank = now[2 * x.labels];
    for (int64_t i = 0; i < x.labels; ++i) {
      of_blank += now[2 * i];
      to[x.target[i]] -= now[2 * i + 1];
    }
    to[p.blank] -= of_blank;
    for (int64_t c = 0; c < p.classes; ++c) to[c] *= scale;
  }
}

/// Calls body<C>(n) for each sample.
template <class Body>
void for_samples(const CtcProblem& p, const Body& body) {
  const int64_t work = std::max<int64_t>(1, p.time * (2 * p.longest + 1));
  const int64_t grain = std::max<int64_t>(1, kStatesGrain / work);
  parallel_for(p.batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      if (p.dtype == DType::Float32)
        body.template operator()<float>(n);
      else
        body.template operator()<double>(n);
    }
  });
}

}  // namespace

void ctc_loss(const LaunchContext&, const CtcLossArgs& args) {
  for_samples(args.problem, [&]<class C>(int64_t n) { ctc_forward<C>(args, n); });
}

void ctc_loss_backward(const LaunchContext&, const CtcLossBackwardArgs& args) {
  for_samples(args.problem, [&]<class C>(int64_t n) { ctc_backward<C>(args, n); });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
