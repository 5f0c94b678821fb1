// Adamax.
#pragma once

#include <utility>
#include <vector>

#include "tern/optim/grouped.h"

namespace tern::optim {

struct AdamaxOptions {
  double lr = 2e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;

  template <class Visitor>
  void visit(Visitor&& visit) {
    visit("lr", lr);
    visit("betas", betas);
    visit("eps", eps);
    visit("weight_decay", weight_decay);
    visit.fixed("foreach", std::monostate());
    visit("maximize", maximize);
    visit.fixed("differentiable", false);
    visit.fixed("capturable", false);
  }
  void check(const char* optimizer) const;
};

/// Adam with the infinity norm, as torch.optim.Adamax (Kingma and Ba, "Adam: A method for stochastic
/// optimization", ICLR 2015, section 7.1). Throws ValueError for options out of range.
class Adamax final : public GroupedOptimizer<AdamaxOptions> {
 public:
  explicit Adamax(std::vector<Tensor> params, const AdamaxOptions& options = {})
      : GroupedOptimizer("Adamax", std::move(params), options) {}
  explicit Adamax(std::vector<ParamGroup<AdamaxOptions>> groups)
      : GroupedOptimizer("Adamax", std::move(groups)) {}
  using Optimizer::step;
  void step() override;

 private:
  StateLayout state_layout(size_t group) const override;
};

}  // namespace tern::optim
