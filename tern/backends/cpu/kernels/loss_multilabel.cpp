// The margins between the targets of a row and all classes that are none, and the gradient.
#include <algorithm>

#include "tern/backends/cpu/kernels/loops.h"
#include "tern/backends/cpu/kernels/scratch.h"
#include "tern/base/check.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

/// The targets of a row.
int64_t count_targets(const int64_t* target, int64_t classes) {
  return std::find_if(target, target + classes, [](int64_t t) { return t < 0; }) - target;
}

/// The elements of the classes that are no targets, one behind the other.
template <class T, class C = Compute<T>>
int64_t gather_others(const T* x, const uint8_t* is_target, int64_t classes, C* others) {
  int64_t n = 0;
  for (int64_t c = 0; c < classes; ++c)
    if (is_target[c] == 0) others[n++] = static_cast<C>(x[c]);
  return n;
}

template <class C>
[[gnu::noinline]] C sum_margins(const C* others, int64_t n, C margin) {
  C sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const C z = margin + others[i];
    sum += z < C(0) ? C(0) : z;
  }
  return sum;
}

/// Counts for each of the others the targets that it comes too near to, and gives how many there are for
/// this target.
template <class C>
[[gnu::noinline]] C count_margins(const C* others, int64_t n, C margin, C* counts) {
  C sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const C near = margin + others[i] > C(0) ? C(1) : C(0);
    counts[i] += near;
    sum += near;
  }
  return sum;
}

/// Calls body(row, scratch of 3 * classes elements) for each row.
template <class C, class Body>
void for_target_rows(int64_t rows, int64_t classes, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kPointwiseGrain / 4 / std::max<int64_t>(1, classes));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    const Scratch<C> scratch(3 * classes);
    for (int64_t r = begin; r < end; ++r) body(r, scratch.get());
  });
}

}  // namespace

void multilabel_margin(const LaunchContext&, const MultilabelMarginArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    using C = Compute<T>;
    for_target_rows<C>(args.rows, args.classes, [&](int64_t r, C* others) {
      const T* x = static_cast<const T*>(args.input) + r * args.classes;
      const int64_t* target = args.target + r * args.classes;
      uint8_t* is_target = args.is_target + r * args.classes;
      for (int64_t i = 0; i < args.classes; ++i)
        TERN_CHECK(target[i] >= -1 && target[i] < args.classes, IndexError,
                   "multilabel_margin_loss: target {} is none of the {} classes", target[i], args.classes);
      std::fill_n(is_target, args.classes, uint8_t{0});
      const int64_t targets = count_targets(target, args.classes);
      for (int64_t i = 0; i < targets; ++i) is_target[target[i]] = 1;
      const int64_t n = gather_others(x, is_target, args.classes, others);
      C sum = 0;
      for (int64_t i = 0; i < targets; ++i)
        sum += sum_margins(others, n, C(1) - static_cast<C>(x[target[i]]));
      static_cast<T*>(args.loss)[r] = static_cast<T>(sum / static_cast<C>(args.classes));
    });
  });
}

void multilabel_margin_backward(const LaunchContext&, const MultilabelMarginBackwardArgs& args) {
  visit_floating(args.dtype, [&]<class T>() {
    using C = Compute<T>;
    for_target_rows<C>(args.rows, args.classes, [&](int64_t r, C* scratch) {
      const T* x = static_cast<const T*>(args.input) + r * args.classes;
      T* grad = static_cast<T*>(args.grad_input) + r * args.classes;
      const int64_t* target = args.target + r * args.classes;
      const uint8_t* is_target = args.is_target + r * args.classes;
      C *others = scratch, *counts = scratch + args.classes, *of_targets = counts + args.classes;
      const int64_t n = gather_others(x, is_target, args.classes, others);
      std::fill_n(counts, 2 * args.classes, C(0));
      const int64_t targets = count_targets(target, args.classes);
      for (int64_t i = 0; i < targets; ++i)
        of_targets[target[i]] += count_margins(others, n, C(1) - static_cast<C>(x[target[i]]), counts);
      const C scale = static_cast<C>(static_cast<const T*>(args.grad_loss)[r]) / static_cast<C>(args.classes);
      for (int64_t c = 0, other = 0; c < args.classes; ++c)
        grad[c] = static_cast<T>(scale * (is_target[c] != 0 ? -of_targets[c] : counts[other++]));
    });
  });
}

}  // namespace tern::cpu::TERN_CPU_VARIANT
