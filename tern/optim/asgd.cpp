// The step of averaged stochastic gradient descent.
#include "tern/optim/asgd.h"

#include <algorithm>
#include <cmath>

#include "tern/kernels/list.h"

namespace tern::optim {
namespace {

/// PyTorch keeps eta and mu as floats.
double as_float(double number) { return static_cast<float>(number); }

}  // namespace

void ASGDOptions::check(const char* optimizer) const {
  detail::check_option(lr >= 0, optimizer, "learning rate", lr);
  detail::check_option(lambd >= 0, optimizer, "lambd value", lambd);
  detail::check_option(alpha >= 0, optimizer, "alpha value", alpha);
  detail::check_option(weight_decay >= 0, optimizer, "weight_decay value", weight_decay);
}

Optimizer::StateLayout ASGD::state_layout(size_t) const {
  return {.has_step = true, .names = {"ax"}, .required = {true}, .numbers = {"eta", "mu"}};
}

void ASGD::step() {
  for (size_t g = 0; g < num_groups(); ++g) {
    update_group(
        g, {0.0},
        [this, g](Slot& slot, OptimEntry& entry) {
          const ASGDOptions& o = options(g);
          auto& [eta, mu] = slot.numbers;
          if (slot.steps == 1) slot.numbers = {as_float(o.lr), 1.0};
          entry.scalars[0] = eta;
          entry.scalars[1] = mu;
          const double t = static_cast<double>(slot.steps);
          eta = as_float(o.lr / std::pow(1 + o.lambd * o.lr * t, o.alpha));
          mu = as_float(1 / std::max(1.0, t - o.t0));
        },
        [this, g](Stream stream, const OptimList& list) {
          const ASGDOptions& o = options(g);
          launch(stream, kernels::asgd_step,
                 {.list = list, .lambd = o.lambd, .weight_decay = o.weight_decay, .maximize = o.maximize});
        });
  }
}

}  // namespace tern::optim
