// The fused steps of the algorithms whose element functions are in kernels/optim_steps.h.
#include "tern/kernels/optim_steps.h"

#include "tern/backends/cpu/kernels/optim.h"
#include "tern/backends/cpu/kernels/widen.h"
#include "tern/kernels/list.h"

namespace tern::cpu::TERN_CPU_VARIANT {
namespace {

template <class T, Decay kind, class Step>
void step_rows(const optim_steps::Decay<Compute<T>>& decay, const Step& step, const OptimEntry& entry,
               int64_t begin, int64_t end) {
  using C = Compute<T>;
  T* p = static_cast<T*>(entry.param) + begin;
  const T* grad = static_cast<const T*>(entry.grad) + begin;
  T* first = state_of<T>(entry, 0, begin);
  T* second = state_of<T>(entry, 1, begin);
  const int64_t n = end - begin;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    C g = decay.sign * static_cast<C>(grad[i]);
    C x = static_cast<C>(p[i]), a = static_cast<C>(first[i]);
    if constexpr (kind == Decay::Parameter) x = x * decay.shrink;
    if constexpr (kind == Decay::Gradient) g = g + decay.weight_decay * x;
    if constexpr (Step::kStates == 2) {
      C b = static_cast<C>(second[i]);
      step(x, g, a, b);
      second[i] = static_cast<T>(b);
    } else {
      step(x, g, a);
    }
    first[i] = static_cast<T>(a);
    p[i] = static_cast<T>(x);
  }
}

template <template <class> class Step, class Args>
void run_steps(const Args& args) {
  visit_floating(args.list.dtype, [&]<class T>() {
    using C = Compute<T>;
    const optim_steps::Decay<C> decay(args);
    with_decay(static_cast<double>(decay.weight_decay), decay.decoupled, [&](auto kind) {
      for_each_piece(args.list, [&](const OptimEntry& entry, int64_t begin, int64_t end) {
        step_rows<T, kind.value>(decay, Step<C>(args, entry), entry, begin, end);
      });
    });
  });
}

}  // namespace

void nadam_step(const LaunchContext&, const NadamStepArgs& args) { run_steps<optim_steps::Nadam>(args); }
void radam_step(const LaunchContext&, const RadamStepArgs& args) { run_steps<optim_steps::Radam>(args); }
void adamax_step(const LaunchContext&, const AdamaxStepArgs& args) { run_steps<optim_steps::Adamax>(args); }
void adadelta_step(const LaunchContext&, const AdadeltaStepArgs& args) {
  run_steps<optim_steps::Adadelta>(args);
}
void asgd_step(const LaunchContext&, const AsgdStepArgs& args) { run_steps<optim_steps::Asgd>(args); }
void rprop_step(const LaunchContext&, const RpropStepArgs& args) { run_steps<optim_steps::Rprop>(args); }

}  // namespace tern::cpu::TERN_CPU_VARIANT
