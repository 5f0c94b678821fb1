// The step of resilient backpropagation.
#include "tern/optim/rprop.h"

#include "tern/base/check.h"
#include "tern/kernels/list.h"

namespace tern::optim {

void RpropOptions::check(const char* optimizer) const {
  detail::check_option(lr >= 0, optimizer, "learning rate", lr);
  TERN_CHECK(etas.first > 0 && etas.first < 1 && etas.second > 1, ValueError,
             "{}: Invalid eta values: {}, {} (the first must be between 0 and 1, the second above 1)",
             optimizer, etas.first, etas.second);
}

Optimizer::StateLayout Rprop::state_layout(size_t) const {
  return {.has_step = true, .names = {"prev", "step_size"}, .required = {true, true}};
}

void Rprop::step() {
  for (size_t g = 0; g < num_groups(); ++g) {
    update_group(
        g, {0.0, options(g).lr}, [](const Slot&, OptimEntry&) {},
        [this, g](Stream stream, const OptimList& list) {
          const RpropOptions& o = options(g);
          launch(stream, kernels::rprop_step,
                 {.list = list,
                  .etaminus = o.etas.first,
                  .etaplus = o.etas.second,
                  .least = o.step_sizes.first,
                  .most = o.step_sizes.second,
                  .maximize = o.maximize});
        });
  }
}

}  // namespace tern::optim
