// The step of Adamax.
#include "tern/optim/adamax.h"

#include <cmath>

#include "tern/kernels/list.h"

namespace tern::optim {

void AdamaxOptions::check(const char* optimizer) const {
  detail::check_adam_options(optimizer, lr, betas, eps, weight_decay);
}

Optimizer::StateLayout Adamax::state_layout(size_t) const {
  return {.has_step = true, .names = {"exp_avg", "exp_inf"}, .required = {true, true}};
}

void Adamax::step() {
  for (size_t g = 0; g < num_groups(); ++g) {
    update_group(
        g, {0.0, 0.0},
        [this, g](const Slot& slot, OptimEntry& entry) {
          const AdamaxOptions& o = options(g);
          entry.scalars[0] = o.lr / (1 - std::pow(o.betas.first, static_cast<double>(slot.steps)));
        },
        [this, g](Stream stream, const OptimList& list) {
          const AdamaxOptions& o = options(g);
          launch(stream, kernels::adamax_step,
                 {.list = list,
                  .beta1 = o.betas.first,
                  .beta2 = o.betas.second,
                  .eps = o.eps,
                  .weight_decay = o.weight_decay,
                  .maximize = o.maximize});
        });
  }
}

}  // namespace tern::optim
