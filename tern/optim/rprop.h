// Resilient backpropagation.
#pragma once

#include <utility>
#include <vector>

#include "tern/optim/grouped.h"

namespace tern::optim {

struct RpropOptions {
  double lr = 1e-2;                                   ///< the first step size of each element
  std::pair<double, double> etas = {0.5, 1.2};        ///< factors after a change of sign, and after none
  std::pair<double, double> step_sizes = {1e-6, 50};  ///< the least and the largest
  bool maximize = false;

  template <class Visitor>
  void visit(Visitor&& visit) {
    visit("lr", lr);
    visit("etas", etas);
    visit("step_sizes", step_sizes);
    visit.fixed("foreach", std::monostate());
    visit("maximize", maximize);
    visit.fixed("differentiable", false);
    visit.fixed("capturable", false);
  }
  void check(const char* optimizer) const;
};

/// Resilient backpropagation, for gradients of the whole data, as torch.optim.Rprop (Riedmiller and Braun, "A
/// direct adaptive method for faster backpropagation learning: the RPROP algorithm", 1993). Throws ValueError
/// for options out of range.
class Rprop final : public GroupedOptimizer<RpropOptions> {
 public:
  explicit Rprop(std::vector<Tensor> params, const RpropOptions& options = {})
      : GroupedOptimizer("Rprop", std::move(params), options) {}
  explicit Rprop(std::vector<ParamGroup<RpropOptions>> groups)
      : GroupedOptimizer("Rprop", std::move(groups)) {}
  using Optimizer::step;
  void step() override;

 private:
  StateLayout state_layout(size_t group) const override;
};

}  // namespace tern::optim
