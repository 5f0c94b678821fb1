// The step of Adadelta.
#include "tern/optim/adadelta.h"

#include "tern/kernels/list.h"

namespace tern::optim {

void AdadeltaOptions::check(const char* optimizer) const {
  detail::check_option(lr >= 0, optimizer, "learning rate", lr);
  detail::check_option(rho >= 0 && rho <= 1, optimizer, "rho value", rho, "from 0 to 1");
  detail::check_option(eps >= 0, optimizer, "epsilon value", eps);
  detail::check_option(weight_decay >= 0, optimizer, "weight_decay value", weight_decay);
}

Optimizer::StateLayout Adadelta::state_layout(size_t) const {
  return {.has_step = true, .names = {"square_avg", "acc_delta"}, .required = {true, true}};
}

void Adadelta::step() {
  for (size_t g = 0; g < num_groups(); ++g) {
    update_group(
        g, {0.0, 0.0}, [](const Slot&, OptimEntry&) {},
        [this, g](Stream stream, const OptimList& list) {
          const AdadeltaOptions& o = options(g);
          launch(stream, kernels::adadelta_step,
                 {.list = list,
                  .lr = o.lr,
                  .rho = o.rho,
                  .eps = o.eps,
                  .weight_decay = o.weight_decay,
                  .maximize = o.maximize});
        });
  }
}

}  // namespace tern::optim
