// The step of NAdam.
#include "tern/optim/nadam.h"

#include <cmath>

#include "tern/kernels/list.h"

namespace tern::optim {

void NAdamOptions::check(const char* optimizer) const {
  detail::check_adam_options(optimizer, lr, betas, eps, weight_decay);
  detail::check_option(momentum_decay >= 0, optimizer, "momentum_decay value", momentum_decay);
}

Optimizer::StateLayout NAdam::state_layout(size_t) const {
  return {.has_step = true,
          .names = {"exp_avg", "exp_avg_sq"},
          .required = {true, true},
          .numbers = {"mu_product"}};
}

void NAdam::step() {
  for (size_t g = 0; g < num_groups(); ++g) {
    // For this number of steps: mostly all parameters have the same.
    struct Momenta {
      int64_t steps = -1;
      double now = 0, next = 0, correction = 0;
    };
    update_group(
        g, {0.0, 0.0},
        [this, g, mu = Momenta()](Slot& slot, OptimEntry& entry) mutable {
          const NAdamOptions& o = options(g);
          if (slot.steps != mu.steps) {
            mu.steps = slot.steps;
            const double t = static_cast<double>(mu.steps);
            mu.now = o.betas.first * (1.0 - 0.5 * std::pow(0.96, t * o.momentum_decay));
            mu.next = o.betas.first * (1.0 - 0.5 * std::pow(0.96, (t + 1) * o.momentum_decay));
            mu.correction = 1 - std::pow(o.betas.second, t);
          }
          // PyTorch keeps the product as a float.
          const float before = slot.steps == 1 ? 1 : static_cast<float>(slot.numbers[0]);
          const double product = before * static_cast<float>(mu.now);
          slot.numbers[0] = product;
          entry.scalars[0] = o.lr * (1.0 - mu.now) / (1.0 - product);
          entry.scalars[1] = o.lr * mu.next / (1.0 - product * mu.next);
          entry.scalars[2] = mu.correction;
        },
        [this, g](Stream stream, const OptimList& list) {
          const NAdamOptions& o = options(g);
          launch(stream, kernels::nadam_step,
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
