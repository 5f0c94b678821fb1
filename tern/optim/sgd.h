// Stochastic gradient descent.
#pragma once

#include "tern/optim/grouped.h"

namespace tern::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;

  template <class Visitor>
  void visit(Visitor&& visit) {
    visit("lr", lr);
    visit("momentum", momentum);
    visit("dampening", dampening);
    visit("weight_decay", weight_decay);
    visit("nesterov", nesterov);
    visit("maximize", maximize);
    visit.fixed("foreach", std::monostate());
    visit.fixed("differentiable", false);
    visit.fixed("fused", std::monostate());
  }
  void check(const char* optimizer) const;
};

/// Stochastic gradient descent with momentum and Nesterov's, as torch.optim.SGD (Sutskever et al., "On the
/// importance of initialization and momentum in deep learning", ICML 2013). Throws ValueError for options out
/// of range.
class SGD final : public GroupedOptimizer<SGDOptions> {
 public:
  explicit SGD(std::vector<Tensor> params, const SGDOptions& options = {})
      : GroupedOptimizer("SGD", std::move(params), options) {}
  explicit SGD(std::vector<ParamGroup<SGDOptions>> groups) : GroupedOptimizer("SGD", std::move(groups)) {}
  using Optimizer::step;
  void step() override;

 private:
  StateLayout state_layout(size_t group) const override;
};

}  // namespace tern::optim
