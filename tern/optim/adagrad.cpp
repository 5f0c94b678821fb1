// The step of Adagrad.
#include "tern/optim/adagrad.h"

#include "tern/kernels/list.h"

namespace tern::optim {

void AdagradOptions::check(const char* optimizer) const {
  detail::check_option(lr >= 0, optimizer, "learning rate", lr);
  detail::check_option(lr_decay >= 0, optimizer, "lr_decay value", lr_decay);
  detail::check_option(weight_decay >= 0, optimizer, "weight_decay value", weight_decay);
  detail::check_option(initial_accumulator_value >= 0, optimizer, "initial_accumulator_value value",
                       initial_accumulator_value);
  detail::check_option(eps >= 0, optimizer, "epsilon value", eps);
}

Optimizer::StateLayout Adagrad::state_layout(size_t group) const {
  return {.has_step = true,
          .names = {"sum"},
          .required = {true},
          .initial = options(group).initial_accumulator_value};
}

void Adagrad::step() {
  for (size_t g = 0; g < num_groups(); ++g) {
    update_group(
        g, {options(g).initial_accumulator_value},
        [this, g](const Slot& slot, OptimEntry& entry) {
          const AdagradOptions& o = options(g);
          entry.scalars[0] = o.lr / (1 + static_cast<double>(slot.steps - 1) * o.lr_decay);
        },
        [this, g](Stream stream, const OptimList& list) {
          const AdagradOptions& o = options(g);
          launch(stream, kernels::adagrad_step,
                 {.list = list, .eps = o.eps, .weight_decay = o.weight_decay, .maximize = o.maximize});
        });
  }
}

}  // namespace tern::optim
