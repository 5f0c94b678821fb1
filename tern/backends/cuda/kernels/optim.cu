// The fused optimizer steps. The formulas are written in kernels/optim.h; norms and clipping are in
// optim_clip.cu.
#include "tern/backends/cuda/kernels/optim.cuh"
#include "tern/kernels/optim_steps.h"

namespace tern::cuda_backend {
namespace {

// Every step reads all that it needs before it computes, so that loads do not wait for each other.

struct SgdStep {
  double lr, momentum, keep, weight_decay;
  bool nesterov, maximize;
  template <class T>
  __device__ void at(const OptimEntry& entry, int64_t i) const {
    using C = Compute<T>;
    C g = grad<T>(entry, i, maximize);
    const C x = widen(param<T>(entry, i));
    if (weight_decay != 0) g = g + static_cast<C>(weight_decay) * x;
    if (momentum != 0) {
      const C m = static_cast<C>(momentum);
      const C b = entry.fresh ? g : m * widen(state<T>(entry, 0, i)) + static_cast<C>(keep) * g;
      state<T>(entry, 0, i) = narrow<T>(b);
      g = nesterov ? g + m * b : b;
    }
    param<T>(entry, i) = narrow<T>(x - static_cast<C>(lr) * g);
  }
};

struct AdamStep {
  double beta2, rest1, rest2, eps, weight_decay, shrink;
  bool decoupled, amsgrad, maximize;
  template <class T>
  __device__ void at(const OptimEntry& entry, int64_t i) const {
    using C = Compute<T>;
    C g = grad<T>(entry, i, maximize);
    C x = widen(param<T>(entry, i));
    const C m_before = widen(state<T>(entry, 0, i)), v_before = widen(state<T>(entry, 1, i));
    const C most_before = amsgrad ? widen(state<T>(entry, 2, i)) : C(0);
    if (weight_decay != 0) {
      if (decoupled)
        x = x * static_cast<C>(shrink);
      else
        g = g + static_cast<C>(weight_decay) * x;
    }
    const C m = functors::interpolated(m_before, g, static_cast<C>(rest1));
    C v = v_before * static_cast<C>(beta2) + static_cast<C>(rest2) * g * g;
    state<T>(entry, 0, i) = narrow<T>(m);
    state<T>(entry, 1, i) = narrow<T>(v);
    if (amsgrad) {
      v = most_before > v || most_before != most_before ? most_before : v;
      state<T>(entry, 2, i) = narrow<T>(v);
    }
    const C step_size = static_cast<C>(-entry.scalars[0]), correction = static_cast<C>(entry.scalars[1]);
    param<T>(entry, i) = narrow<T>(x + step_size * m / (::sqrt(v) / correction + static_cast<C>(eps)));
  }
};

struct RmspropStep {
  double lr, alpha, rest, eps, weight_decay, momentum;
  bool centered, maximize;
  template <class T>
  __device__ void at(const OptimEntry& entry, int64_t i) const {
    using C = Compute<T>;
    C g = grad<T>(entry, i, maximize);
    const C x = widen(param<T>(entry, i)), v_before = widen(state<T>(entry, 0, i));
    const C b_before = momentum != 0 ? widen(state<T>(entry, 1, i)) : C(0);
    const C m_before = centered ? widen(state<T>(entry, 2, i)) : C(0);
    if (weight_decay != 0) g = g + static_cast<C>(weight_decay) * x;
    C v = v_before * static_cast<C>(alpha) + static_cast<C>(rest) * g * g;
    state<T>(entry, 0, i) = narrow<T>(v);
    if (centered) {
      const C m = functors::interpolated(m_before, g, static_cast<C>(rest));
      state<T>(entry, 2, i) = narrow<T>(m);
      v = v - m * m;
    }
    const C avg = ::sqrt(v) + static_cast<C>(eps);
    if (momentum != 0) {
      const C b = b_before * static_cast<C>(momentum) + g / avg;
      state<T>(entry, 1, i) = narrow<T>(b);
      param<T>(entry, i) = narrow<T>(x - static_cast<C>(lr) * b);
    } else {
      param<T>(entry, i) = narrow<T>(x - static_cast<C>(lr) * g / avg);
    }
  }
};

struct AdagradStep {
  double eps, weight_decay;
  bool maximize;
  template <class T>
  __device__ void at(const OptimEntry& entry, int64_t i) const {
    using C = Compute<T>;
    C g = grad<T>(entry, i, maximize);
    const C x = widen(param<T>(entry, i));
    if (weight_decay != 0) g = g + static_cast<C>(weight_decay) * x;
    const C s = widen(state<T>(entry, 0, i)) + g * g;
    state<T>(entry, 0, i) = narrow<T>(s);
    param<T>(entry, i) =
        narrow<T>(x + static_cast<C>(-entry.scalars[0]) * g / (::sqrt(s) + static_cast<C>(eps)));
  }
};

/// A step whose element function is in kernels/optim_steps.h.
template <template <class> class Step, class Args>
struct SharedStep {
  Args args;
  template <class T>
  __device__ void at(const OptimEntry& entry, int64_t i) const {
    using C = Compute<T>;
    using Of = Step<C>;
    const optim_steps::Decay<C> decay(args);
    const Of step(args, entry);
    C g = decay.sign * grad<T>(entry, i, false);
    C x = widen(param<T>(entry, i)), a = widen(state<T>(entry, 0, i));
    C b = C(0);
    if constexpr (Of::kStates == 2) b = widen(state<T>(entry, 1, i));
    if (decay.weight_decay != C(0)) {
      if (decay.decoupled)
        x = x * decay.shrink;
      else
        g = g + decay.weight_decay * x;
    }
    if constexpr (Of::kStates == 2) {
      step(x, g, a, b);
      state<T>(entry, 1, i) = narrow<T>(b);
    } else {
      step(x, g, a);
    }
    state<T>(entry, 0, i) = narrow<T>(a);
    param<T>(entry, i) = narrow<T>(x);
  }
};

template <template <class> class Step, class Args>
void run_shared(const LaunchContext& context, const Args& args) {
  run_steps(context, args.list, SharedStep<Step, Args>{args});
}

}  // namespace

void sgd_step(const LaunchContext& context, const SgdStepArgs& args) {
  run_steps(
      context, args.list,
      SgdStep{args.lr, args.momentum, 1 - args.dampening, args.weight_decay, args.nesterov, args.maximize});
}

void adam_step(const LaunchContext& context, const AdamStepArgs& args) {
  run_steps(context, args.list,
            AdamStep{args.beta2, 1 - args.beta1, 1 - args.beta2, args.eps, args.weight_decay,
                     1 - args.lr * args.weight_decay, args.decoupled, args.amsgrad, args.maximize});
}

void rmsprop_step(const LaunchContext& context, const RmspropStepArgs& args) {
  run_steps(context, args.list,
            RmspropStep{args.lr, args.alpha, 1 - args.alpha, args.eps, args.weight_decay, args.momentum,
                        args.centered, args.maximize});
}

void adagrad_step(const LaunchContext& context, const AdagradStepArgs& args) {
  run_steps(context, args.list, AdagradStep{args.eps, args.weight_decay, args.maximize});
}

void nadam_step(const LaunchContext& context, const NadamStepArgs& args) {
  run_shared<optim_steps::Nadam>(context, args);
}
void radam_step(const LaunchContext& context, const RadamStepArgs& args) {
  run_shared<optim_steps::Radam>(context, args);
}
void adamax_step(const LaunchContext& context, const AdamaxStepArgs& args) {
  run_shared<optim_steps::Adamax>(context, args);
}
void adadelta_step(const LaunchContext& context, const AdadeltaStepArgs& args) {
  run_shared<optim_steps::Adadelta>(context, args);
}
void asgd_step(const LaunchContext& context, const AsgdStepArgs& args) {
  run_shared<optim_steps::Asgd>(context, args);
}
void rprop_step(const LaunchContext& context, const RpropStepArgs& args) {
  run_shared<optim_steps::Rprop>(context, args);
}

}  // namespace tern::cuda_backend
