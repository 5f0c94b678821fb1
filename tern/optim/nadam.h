// NAdam.
#pragma once

#include <utility>
#include <vector>

#include "tern/optim/grouped.h"

namespace tern::optim {

struct NAdamOptions {
  double lr = 2e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  /// The decay shrinks the parameters instead of being added to the gradients, as in AdamW.
  bool decoupled_weight_decay = false;
  bool maximize = false;

  template <class Visitor>
  void visit(Visitor&& visit) {
    visit("lr", lr);
    visit("betas", betas);
    visit("eps", eps);
    visit("weight_decay", weight_decay);
    visit("momentum_decay", momentum_decay);
    visit("decoupled_weight_decay", decoupled_weight_decay);
    visit("maximize", maximize);
    visit.fixed("foreach", std::monostate());
    visit.fixed("capturable", false);
    visit.fixed("differentiable", false);
  }
  void check(const char* optimizer) const;
};

/// Adam with Nesterov's momentum, as torch.optim.NAdam (Dozat, "Incorporating Nesterov momentum into Adam",
/// ICLR workshop 2016). Throws ValueError for options out of range.
class NAdam final : public GroupedOptimizer<NAdamOptions> {
 public:
  explicit NAdam(std::vector<Tensor> params, const NAdamOptions& options = {})
      : GroupedOptimizer("NAdam", std::move(params), options) {}
  explicit NAdam(std::vector<ParamGroup<NAdamOptions>> groups)
      : GroupedOptimizer("NAdam", std::move(groups)) {}
  using Optimizer::step;
  void step() override;

 private:
  StateLayout state_layout(size_t group) const override;
};

}  // namespace tern::optim
