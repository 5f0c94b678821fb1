// Adagrad.
#pragma once

#include "tern/optim/grouped.h"

namespace tern::optim {

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;

  template <class Visitor>
  void visit(Visitor&& visit) {
    visit("lr", lr);
    visit("lr_decay", lr_decay);
    visit("eps", eps);
    visit("weight_decay", weight_decay);
    visit("initial_accumulator_value", initial_accumulator_value);
    visit.fixed("foreach", std::monostate());
    visit("maximize", maximize);
    visit.fixed("differentiable", false);
    visit.fixed("fused", std::monostate());
  }
  void check(const char* optimizer) const;
};

/// Adagrad, as torch.optim.Adagrad (Duchi et al., "Adaptive subgradient methods for online learning and
/// stochastic optimization", JMLR 2011). Throws ValueError for options out of range.
class Adagrad final : public GroupedOptimizer<AdagradOptions> {
 public:
  explicit Adagrad(std::vector<Tensor> params, const AdagradOptions& options = {})
      : GroupedOptimizer("Adagrad", std::move(params), options) {}
  explicit Adagrad(std::vector<ParamGroup<AdagradOptions>> groups)
      : GroupedOptimizer("Adagrad", std::move(groups)) {}
  using Optimizer::step;
  void step() override;

 private:
  StateLayout state_layout(size_t group) const override;
};

}  // namespace tern::optim
