// The step of SGD.
#include "tern/optim/sgd.h"

#include "tern/base/check.h"
#include "tern/kernels/list.h"

namespace tern::optim {

void SGDOptions::check(const char* optimizer) const {
  detail::check_option(lr >= 0, optimizer, "learning rate", lr);
  detail::check_option(momentum >= 0, optimizer, "momentum value", momentum);
  detail::check_option(weight_decay >= 0, optimizer, "weight_decay value", weight_decay);
  TERN_CHECK(!nesterov || (momentum > 0 && dampening == 0), ValueError,
             "{}: Nesterov momentum requires a momentum and zero dampening, got momentum {} and dampening {}",
             optimizer, momentum, dampening);
}

Optimizer::StateLayout SGD::state_layout(size_t) const { return {.names = {"momentum_buffer"}}; }

void SGD::step() {
  for (size_t g = 0; g < num_groups(); ++g) {
    StateFill fill{};
    if (options(g).momentum != 0) fill[0] = kUnfilled;
    update_group(
        g, fill, [](const Slot&, OptimEntry&) {},
        [this, g](Stream stream, const OptimList& list) {
          const SGDOptions& o = options(g);
          launch(stream, kernels::sgd_step,
                 {.list = list,
                  .lr = o.lr,
                  .momentum = o.momentum,
                  .dampening = o.dampening,
                  .weight_decay = o.weight_decay,
                  .nesterov = o.nesterov,
                  .maximize = o.maximize});
        });
  }
}

}  // namespace tern::optim
