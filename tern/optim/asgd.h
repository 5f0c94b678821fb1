// Averaged stochastic gradient descent.
#pragma once

#include <utility>
#include <vector>

#include "tern/optim/grouped.h"

namespace tern::optim {

struct ASGDOptions {
  double lr = 1e-2;
  double lambd = 1e-4;
  double alpha = 0.75;
  double t0 = 1e6;
  double weight_decay = 0;
  bool maximize = false;

  template <class Visitor>
  void visit(Visitor&& visit) {
    visit("lr", lr);
    visit("lambd", lambd);
    visit("alpha", alpha);
    visit("t0", t0);
    visit("weight_decay", weight_decay);
    visit.fixed("foreach", std::monostate());
    visit("maximize", maximize);
    visit.fixed("differentiable", false);
    visit.fixed("capturable", false);
  }
  void check(const char* optimizer) const;
};

/// Averaged stochastic gradient descent, as torch.optim.ASGD (Polyak and Juditsky, "Acceleration of
/// stochastic approximation by averaging", 1992); the average is `ax` in the state dict. Throws ValueError
/// for options out of range.
class ASGD final : public GroupedOptimizer<ASGDOptions> {
 public:
  explicit ASGD(std::vector<Tensor> params, const ASGDOptions& options = {})
      : GroupedOptimizer("ASGD", std::move(params), options) {}
  explicit ASGD(std::vector<ParamGroup<ASGDOptions>> groups) : GroupedOptimizer("ASGD", std::move(groups)) {}
  using Optimizer::step;
  void step() override;

 private:
  StateLayout state_layout(size_t group) const override;
};

}  // namespace tern::optim
