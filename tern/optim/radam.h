// RAdam.
#pragma once

#include <utility>
#include <vector>

#include "tern/optim/grouped.h"

namespace tern::optim {

struct RAdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  /// The decay shrinks the parameters instead of being added to the gradients, as in AdamW.
  bool decoupled_weight_decay = false;
  bool maximize = false;

  template <class Visitor>
  void visit(Visitor&& visit) {
    visit("lr", lr);
    visit("betas", betas);
    visit("eps", eps);
    visit("weight_decay", weight_decay);
    visit("maximize", maximize);
    visit.fixed("foreach", std::monostate());
    visit.fixed("capturable", false);
    visit("decoupled_weight_decay", decoupled_weight_decay);
    visit.fixed("differentiable", false);
  }
  void check(const char* optimizer) const;
};

/// Rectified Adam, as torch.optim.RAdam (Liu et al., "On the variance of the adaptive learning rate and
/// beyond", ICLR 2020). Throws ValueError for options out of range.
class RAdam final : public GroupedOptimizer<RAdamOptions> {
 public:
  explicit RAdam(std::vector<Tensor> params, const RAdamOptions& options = {})
      : GroupedOptimizer("RAdam", std::move(params), options) {}
  explicit RAdam(std::vector<ParamGroup<RAdamOptions>> groups)
      : GroupedOptimizer("RAdam", std::move(groups)) {}
  using Optimizer::step;
  void step() override;

 private:
  StateLayout state_layout(size_t group) const override;
};

}  // namespace tern::optim
