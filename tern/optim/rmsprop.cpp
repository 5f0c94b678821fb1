// The step of RMSprop.
#include "tern/optim/rmsprop.h"

#include "tern/kernels/list.h"

namespace tern::optim {

void RMSpropOptions::check(const char* optimizer) const {
  detail::check_option(lr >= 0, optimizer, "learning rate", lr);
  detail::check_option(eps >= 0, optimizer, "epsilon value", eps);
  detail::check_option(momentum >= 0, optimizer, "momentum value", momentum);
  detail::check_option(weight_decay >= 0, optimizer, "weight_decay value", weight_decay);
  detail::check_option(alpha >= 0, optimizer, "alpha value", alpha);
}

Optimizer::StateLayout RMSprop::state_layout(size_t group) const {
  const RMSpropOptions& o = options(group);
  return {.has_step = true,
          .names = {"square_avg", "momentum_buffer", "grad_avg"},
          .required = {true, o.momentum != 0, o.centered}};
}

void RMSprop::step() {
  for (size_t g = 0; g < num_groups(); ++g) {
    StateFill fill{0.0};
    if (options(g).momentum != 0) fill[1] = 0.0;
    if (options(g).centered) fill[2] = 0.0;
    update_group(
        g, fill, [](const Slot&, OptimEntry&) {},
        [this, g](Stream stream, const OptimList& list) {
          const RMSpropOptions& o = options(g);
          launch(stream, kernels::rmsprop_step,
                 {.list = list,
                  .lr = o.lr,
                  .alpha = o.alpha,
                  .eps = o.eps,
                  .weight_decay = o.weight_decay,
                  .momentum = o.momentum,
                  .centered = o.centered,
                  .maximize = o.maximize});
        });
  }
}

}  // namespace tern::optim
