// Losses of an input and a target of one shape: the element functions, their sums, and the slopes for
// backward.
#include <algorithm>
#include <cmath>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/base/check.h"
#include "tern/base/small_vector.h"
#include "tern/kernels/list.h"
#include "tern/kernels/math.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

#define TERN_PAIR_LOSS(Name, value_, slope_)                                             \
  template <class C>                                                                     \
  struct Name {                                                                          \
    [[maybe_unused]] C parameter;                                                        \
    TERN_FN C value([[maybe_unused]] C x, [[maybe_unused]] C y) const { return value_; } \
    TERN_FN C slope([[maybe_unused]] C x, [[maybe_unused]] C y) const { return slope_; } \
  }

template <class C>
TERN_FN C absolute(C d) {
  return d < C(0) ? -d : d;
}
/// NaN stays.
template <class C>
TERN_FN C sign(C d) {
  return d > C(0) ? C(1) : (d < C(0) ? C(-1) : d);
}
template <class C>
TERN_FN C bounded_log(C log) {
  return log < C(-100) ? C(-100) : log;
}
template <class C>
TERN_FN C at_least(C x, C low) {
  return x < low ? low : x;
}

TERN_PAIR_LOSS(Mse, (x - y) * (x - y), C(2) * (x - y));
TERN_PAIR_LOSS(L1, absolute(x - y), C(x > y) - C(x < y));
TERN_PAIR_LOSS(SmoothL1,
               absolute(x - y) < parameter ? C(0.5) * (x - y) * (x - y) / parameter
                                           : absolute(x - y) - C(0.5) * parameter,
               absolute(x - y) < parameter ? (x - y) / parameter : sign(x - y));
TERN_PAIR_LOSS(Huber,
               absolute(x - y) <= parameter ? C(0.5) * (x - y) * (x - y)
                                            : parameter * (absolute(x - y) - C(0.5) * parameter),
               absolute(x - y) <= parameter ? x - y : parameter * sign(x - y));
TERN_PAIR_LOSS(Bce, (y - C(1)) * bounded_log(math::log1p(-x)) - y * bounded_log(math::log(x)),
               (x - y) / at_least((C(1) - x) * x, C(1e-12)));
TERN_PAIR_LOSS(BceWithLogits, at_least(x, C(0)) - x * y + math::log1p(math::exp(-absolute(x))),
               math::sigmoid(x) - y);
TERN_PAIR_LOSS(KlDiv, (y == C(0) ? C(0) : y * math::log(y)) - y * x, -y);
TERN_PAIR_LOSS(KlDivLog, math::exp(y) * (y - x), -math::exp(y));
#undef TERN_PAIR_LOSS

/// Elements summed in the compute type before sums go on in double.
constexpr int64_t kChunk = 4096;

/// Sum of the losses of n elements. A function of its own: loops over captured pointers are not vectorised.
template <class F, class T>
Compute<T> loss_sum(const F f, const T* x, const T* y, int64_t n) {
  using C = Compute<T>;
  C sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += f.value(static_cast<C>(x[i]), static_cast<C>(y[i]));
  return sum;
}

template <class T>
bool all_probabilities(const T* x, int64_t n) {
  int outside = 0;
#pragma omp simd reduction(| : outside)
  for (int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<Compute<T>>(x[i]);
    outside |= !(v >= 0 && v <= 1);
  }
  return outside == 0;
}

/// What the loss asks of the elements, looked at while they are in the cache for the loss itself.
template <class F, class T>
void check_elements(const F&, const T* x, const T* y, int64_t n) {
  if constexpr (std::is_same_v<F, Bce<Compute<T>>>) {
    const bool inputs = all_probabilities(x, n);
    TERN_CHECK(inputs && all_probabilities(y, n), ValueError,
               "binary_cross_entropy: all elements of {} should be between 0 and 1: apply sigmoid, or use "
               "binary_cross_entropy_with_logits",
               inputs ? "target" : "input");
  }
}

template <template <class> class Loss, class T>
void forward(const PairLossArgs& args) {
  using C = Compute<T>;
  const Loss<C> f{static_cast<C>(args.parameter)};
  const T* x = static_cast<const T*>(args.input);
  const T* y = static_cast<const T*>(args.target);
  if (args.reduction == Reduction::None) {
    for_each_block(static_cast<T*>(args.loss), args.numel, [&](T* to, int64_t first, int64_t n) {
      check_elements(f, x + first, y + first, n);
      row2(to, x + first, y + first, n, [&f](C a, C b) { return f.value(a, b); });
    });
    return;
  }
  const int64_t chunks = (args.numel + kChunk - 1) / kChunk;
  SmallVector<double, 16> sums(static_cast<size_t>(chunks));
  parallel_for(chunks, 4, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * kChunk, last = std::min(args.numel, first + kChunk);
      check_elements(f, x + first, y + first, last - first);
      sums[static_cast<size_t>(chunk)] = static_cast<double>(loss_sum(f, x + first, y + first, last - first));
    }
  });
  double total = 0;
  for (double sum : sums) total += sum;
  *static_cast<T*>(args.loss) = static_cast<T>(static_cast<C>(total * args.scale));
}

template <class F, class T>
void scaled_slopes(const F f, Compute<T> scale, const T* g, const T* x, const T* y, T* grad, int64_t n) {
  using C = Compute<T>;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    grad[i] =
        static_cast<T>(scale * static_cast<C>(g[i]) * f.slope(static_cast<C>(x[i]), static_cast<C>(y[i])));
}

template <template <class> class Loss, class T>
void backward(const PairLossBackwardArgs& args) {
  using C = Compute<T>;
  const Loss<C> f{static_cast<C>(args.parameter)};
  const T* x = static_cast<const T*>(args.input);
  const T* y = static_cast<const T*>(args.target);
  const T* g = static_cast<const T*>(args.grad_loss);
  T* grad = static_cast<T*>(args.grad_input);
  if (args.reduction != Reduction::None) {
    const C scale = static_cast<C>(args.scale) * static_cast<C>(*g);
    for_each_block(grad, args.numel, [&](T* to, int64_t first, int64_t n) {
      row2(to, x + first, y + first, n, [&f, scale](C a, C b) { return scale * f.slope(a, b); });
    });
    return;
  }
  const C scale = static_cast<C>(args.scale);
  parallel_for(args.numel, kPointwiseGrain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i)
      grad[i] =
          static_cast<T>(scale * static_cast<C>(g[i]) * f.slope(static_cast<C>(x[i]), static_cast<C>(y[i])));
  });
}

template <class F>
void visit_loss(PairLoss op, F&& f) {
  switch (op) {
    case PairLoss::Mse:
      return f.template operator()<Mse>();
    case PairLoss::L1:
      return f.template operator()<L1>();
    case PairLoss::SmoothL1:
      return f.template operator()<SmoothL1>();
    case PairLoss::Huber:
      return f.template operator()<Huber>();
    case PairLoss::Bce:
      return f.template operator()<Bce>();
    case PairLoss::BceWithLogits:
      return f.template operator()<BceWithLogits>();
    case PairLoss::KlDiv:
      return f.template operator()<KlDiv>();
    case PairLoss::KlDivLog:
      return f.template operator()<KlDivLog>();
  }
}

}  // namespace

void pair_loss(const LaunchContext&, const PairLossArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    visit_loss(args.op, [&]<template <class> class Loss>() { forward<Loss, T>(args); });
  });
}

void pair_loss_backward(const LaunchContext&, const PairLossBackwardArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    visit_loss(args.op, [&]<template <class> class Loss>() { backward<Loss, T>(args); });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
