// The step of RAdam.
#include "tern/optim/radam.h"

#include <cmath>

#include "tern/kernels/list.h"

namespace tern::optim {

void RAdamOptions::check(const char* optimizer) const {
  detail::check_adam_options(optimizer, lr, betas, eps, weight_decay);
}

Optimizer::StateLayout RAdam::state_layout(size_t) const {
  return {.has_step = true, .names = {"exp_avg", "exp_avg_sq"}, .required = {true, true}};
}

void RAdam::step() {
  for (size_t g = 0; g < num_groups(); ++g) {
    // For this number of steps: mostly all parameters have the same.
    struct Corrections {
      int64_t steps = -1;
      double step_size = 0, rectified = 0;
    };
    update_group(
        g, {0.0, 0.0},
        [this, g, c = Corrections()](const Slot& slot, OptimEntry& entry) mutable {
          const RAdamOptions& o = options(g);
          if (slot.steps != c.steps) {
            c.steps = slot.steps;
            const double t = static_cast<double>(c.steps), decayed = std::pow(o.betas.second, t);
            c.step_size = o.lr / (1 - std::pow(o.betas.first, t));
            // The length of the approximated simple moving average, and the most that it can be.
            const double longest = 2 / (1 - o.betas.second) - 1;
            const double length = longest - 2 * t * decayed / (1 - decayed);
            c.rectified = length > 5
                              ? std::sqrt(1 - decayed) * std::sqrt((length - 4) * (length - 2) * longest /
                                                                   ((longest - 4) * (longest - 2) * length))
                              : 0;
          }
          entry.scalars[0] = c.step_size;
          entry.scalars[1] = c.rectified;
        },
        [this, g](Stream stream, const OptimList& list) {
          const RAdamOptions& o = options(g);
          launch(stream, kernels::radam_step,
                 {.list = list,
                  .lr = o.lr,
                  .beta1 = o.betas.first,
                  .beta2 = o.betas.second,
                  .eps = o.eps,
                  .weight_decay = o.weight_decay,
                  .decoupled = o.decoupled_weight_decay,
                  .maximize = o.maximize});
        });
  }
}

}  // namespace tern::optim
