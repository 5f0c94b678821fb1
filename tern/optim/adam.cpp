// The step of Adam and AdamW.
#include "tern/optim/adam.h"

#include <cmath>

#include "tern/kernels/list.h"

namespace tern::optim {

void AdamOptions::check(const char* optimizer) const {
  detail::check_adam_options(optimizer, lr, betas, eps, weight_decay);
}

Optimizer::StateLayout Adam::state_layout(size_t group) const {
  return {.has_step = true,
          .names = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
          .required = {true, true, options(group).amsgrad}};
}

void Adam::step() {
  for (size_t g = 0; g < num_groups(); ++g) {
    // `step_size` and `correction` are for this number of steps: mostly all parameters have the same.
    struct Corrections {
      int64_t steps = -1;
      double step_size = 0, correction = 0;
    };
    update_group(
        g, {0.0, 0.0, options(g).amsgrad ? std::optional(0.0) : std::nullopt},
        [this, g, c = Corrections()](const Slot& slot, OptimEntry& entry) mutable {
          const AdamOptions& o = options(g);
          if (slot.steps != c.steps) {
            c.steps = slot.steps;
            const double t = static_cast<double>(c.steps);
            c.step_size = o.lr / (1 - std::pow(o.betas.first, t));
            c.correction = std::sqrt(1 - std::pow(o.betas.second, t));
          }
          entry.scalars[0] = c.step_size;
          entry.scalars[1] = c.correction;
        },
        [this, g](Stream stream, const OptimList& list) {
          const AdamOptions& o = options(g);
          launch(stream, kernels::adam_step,
                 {.list = list,
                  .lr = o.lr,
                  .beta1 = o.betas.first,
                  .beta2 = o.betas.second,
                  .eps = o.eps,
                  .weight_decay = o.weight_decay,
                  .decoupled = o.decoupled_weight_decay,
                  .amsgrad = o.amsgrad,
                  .maximize = o.maximize});
        });
  }
}

AdamOptions AdamW::as_adam(const AdamWOptions& o) {
  return {.lr = o.lr,
          .betas = o.betas,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .amsgrad = o.amsgrad,
          .maximize = o.maximize,
          .decoupled_weight_decay = true};
}

std::vector<ParamGroup<AdamOptions>> AdamW::as_adam(std::vector<ParamGroup<AdamWOptions>> groups) {
  std::vector<ParamGroup<AdamOptions>> result;
  for (auto& group : groups) result.push_back({std::move(group.params), as_adam(group.options)});
  return result;
}

std::function<void()> AdamW::read_options(const OptimizerState& saved) {
  return [this, put = Adam::read_options(saved)] {
    put();
    for (size_t g = 0; g < num_groups(); ++g)
      options(g).decoupled_weight_decay = true;  // files of Adam say false
  };
}

}  // namespace tern::optim
