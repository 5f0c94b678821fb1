// The element functions of optimizer steps, written once and compiled for every backend. C is the compute
// type: the element's own, float for the 16-bit floats. The formulas are those in kernels/optim.h.
//
// Each is made of a kernel's arguments and an entry, says how many states it keeps, and is called with the
// parameter x, the gradient g (its sign and weight decay seen to) and the states.
#pragma once

#include <cmath>
#include <type_traits>

#include "tern/kernels/functors.h"
#include "tern/kernels/optim.h"
#include "tern/kernels/target.h"

namespace tern::optim_steps {

/// What is done with weights before the step: to the gradient, or with `decoupled` to the parameter.
template <class C>
struct Decay {
  C sign, weight_decay, shrink;
  bool decoupled = false;

  template <class Args>
  TERN_FN explicit Decay(const Args& args) : sign(args.maximize ? C(-1) : C(1)), weight_decay(0), shrink(1) {
    if constexpr (requires { args.weight_decay; }) weight_decay = static_cast<C>(args.weight_decay);
    if constexpr (requires { args.decoupled; }) {
      decoupled = args.decoupled;
      shrink = static_cast<C>(1 - args.lr * args.weight_decay);
    }
  }
};

template <class C>
struct Nadam {
  static constexpr int kStates = 2;
  C rest1, beta2, rest2, eps, of_grad, of_avg, correction;

  TERN_FN Nadam(const NadamStepArgs& args, const OptimEntry& entry)
      : rest1(static_cast<C>(1 - args.beta1)),
        beta2(static_cast<C>(args.beta2)),
        rest2(static_cast<C>(1 - args.beta2)),
        eps(static_cast<C>(args.eps)),
        of_grad(static_cast<C>(entry.scalars[0])),
        of_avg(static_cast<C>(entry.scalars[1])),
        correction(static_cast<C>(entry.scalars[2])) {}
  TERN_FN void operator()(C& x, C g, C& m, C& v) const {
    m = functors::interpolated(m, g, rest1);
    v = v * beta2 + rest2 * g * g;
    x -= (of_grad * g + of_avg * m) / (std::sqrt(v / correction) + eps);
  }
};

template <class C>
struct Radam {
  static constexpr int kStates = 2;
  C rest1, beta2, rest2, eps, step_size, rectified;

  TERN_FN Radam(const RadamStepArgs& args, const OptimEntry& entry)
      : rest1(static_cast<C>(1 - args.beta1)),
        beta2(static_cast<C>(args.beta2)),
        rest2(static_cast<C>(1 - args.beta2)),
        eps(static_cast<C>(args.eps)),
        step_size(static_cast<C>(entry.scalars[0])),
        rectified(static_cast<C>(entry.scalars[1])) {}
  TERN_FN void operator()(C& x, C g, C& m, C& v) const {
    m = functors::interpolated(m, g, rest1);
    v = v * beta2 + rest2 * g * g;
    x -= step_size * m * (rectified != C(0) ? rectified / (std::sqrt(v) + eps) : C(1));
  }
};

template <class C>
struct Adamax {
  static constexpr int kStates = 2;
  C rest1, beta2, eps, step_size;

  TERN_FN Adamax(const AdamaxStepArgs& args, const OptimEntry& entry)
      : rest1(static_cast<C>(1 - args.beta1)),
        beta2(static_cast<C>(args.beta2)),
        eps(static_cast<C>(args.eps)),
        step_size(static_cast<C>(entry.scalars[0])) {}
  TERN_FN void operator()(C& x, C g, C& m, C& inf) const {
    m = functors::interpolated(m, g, rest1);
    const C before = inf * beta2, now = std::fabs(g) + eps;
    inf = before > now || before != before ? before : now;  // NaN stays
    x -= step_size * m / inf;
  }
};

template <class C>
struct Adadelta {
  static constexpr int kStates = 2;
  C lr, rho, rest, eps;

  TERN_FN Adadelta(const AdadeltaStepArgs& args, const OptimEntry&)
      : lr(static_cast<C>(args.lr)),
        rho(static_cast<C>(args.rho)),
        rest(static_cast<C>(1 - args.rho)),
        eps(static_cast<C>(args.eps)) {}
  TERN_FN void operator()(C& x, C g, C& square_avg, C& acc_delta) const {
    square_avg = square_avg * rho + rest * g * g;
    const C delta = std::sqrt(acc_delta + eps) / std::sqrt(square_avg + eps) * g;
    acc_delta = acc_delta * rho + rest * delta * delta;
    x -= lr * delta;
  }
};

template <class C>
struct Asgd {
  static constexpr int kStates = 1;
  C shrink, eta, mu;

  TERN_FN Asgd(const AsgdStepArgs& args, const OptimEntry& entry)
      : shrink(static_cast<C>(1 - args.lambd * entry.scalars[0])),
        eta(static_cast<C>(entry.scalars[0])),
        mu(static_cast<C>(entry.scalars[1])) {}
  TERN_FN void operator()(C& x, C g, C& ax) const {
    x = x * shrink - eta * g;
    ax = mu == C(1) ? x : ax + mu * (x - ax);
  }
};

template <class C>
struct Rprop {
  static constexpr int kStates = 2;
  C etaminus, etaplus, least, most;

  TERN_FN Rprop(const RpropStepArgs& args, const OptimEntry&)
      : etaminus(static_cast<C>(args.etaminus)),
        etaplus(static_cast<C>(args.etaplus)),
        least(static_cast<C>(args.least)),
        most(static_cast<C>(args.most)) {}
  TERN_FN void operator()(C& x, C g, C& prev, C& step_size) const {
    const C agreement = g * prev;
    const C scaled = step_size * (agreement > C(0) ? etaplus : agreement < C(0) ? etaminus : C(1));
    const C raised = scaled < least ? least : scaled;
    step_size = raised > most ? most : raised;
    prev = agreement < C(0) ? C(0) : g;
    const C sign = prev > C(0) ? C(1) : prev < C(0) ? C(-1) : C(0);
    x -= sign * step_size;
  }
};

}  // namespace tern::optim_steps
