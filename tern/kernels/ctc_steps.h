// What the kernels of connectionist temporal classification share: samples, and sums over paths as
// logarithms.
#pragma once

#include <cstdint>
#include <limits>

#include "tern/kernels/loss.h"
#include "tern/kernels/math.h"
#include "tern/kernels/target.h"

namespace tern::ctc_steps {

/// The logarithm of no path at all.
template <class C>
inline constexpr C kNoPath = -std::numeric_limits<C>::infinity();

/// log(exp(a) + exp(b) + exp(c))
template <class C>
TERN_FN C join_paths(C a, C b, C c) {
  C most = a > b ? a : b;
  most = most > c ? most : c;
  const C base = most == kNoPath<C> ? C(0) : most;
  return math::log(math::exp(a - base) + math::exp(b - base) + math::exp(c - base)) + base;
}

/// The share of all paths that goes through a state: exp(alpha + beta - emitted + loss), 0 where it is never
/// emitted.
template <class C>
TERN_FN C share_of_paths(C alpha, C beta, C emitted, C loss) {
  const C share = math::exp(alpha + beta - emitted + loss);
  return emitted == kNoPath<C> ? C(0) : share;
}

/// One sample's input and target.
template <class C>
struct Sample {
  int64_t steps, labels, states;
  const int64_t* target;
  const C* log_probs;  ///< of the first step
  int64_t stride;      ///< from step to step
  int64_t blank, classes;

  TERN_FN Sample(const CtcProblem& p, int64_t n)
      : steps(p.lengths[n]),
        labels(p.lengths[p.batch + n]),
        states(2 * labels + 1),
        target(p.targets + p.lengths[2 * p.batch + n]),
        log_probs(static_cast<const C*>(p.log_probs) + n * p.classes),
        stride(p.batch * p.classes),
        blank(p.blank),
        classes(p.classes) {}
};

}  // namespace tern::ctc_steps
