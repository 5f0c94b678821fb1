// RMSprop.
#pragma once

#include "tern/optim/grouped.h"

namespace tern::optim {

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;

  template <class Visitor>
  void visit(Visitor&& visit) {
    visit("lr", lr);
    visit("momentum", momentum);
    visit("alpha", alpha);
    visit("eps", eps);
    visit("centered", centered);
    visit("weight_decay", weight_decay);
    visit.fixed("capturable", false);
    visit.fixed("foreach", std::monostate());
    visit("maximize", maximize);
    visit.fixed("differentiable", false);
  }
  void check(const char* optimizer) const;
};

/// RMSprop, as torch.optim.RMSprop (Hinton's lecture 6e, 2012; centered: Graves, "Generating sequences with
/// recurrent neural networks", 2013). Throws ValueError for options out of range.
class RMSprop final : public GroupedOptimizer<RMSpropOptions> {
 public:
  explicit RMSprop(std::vector<Tensor> params, const RMSpropOptions& options = {})
      : GroupedOptimizer("RMSprop", std::move(params), options) {}
  explicit RMSprop(std::vector<ParamGroup<RMSpropOptions>> groups)
      : GroupedOptimizer("RMSprop", std::move(groups)) {}
  using Optimizer::step;
  void step() override;

 private:
  StateLayout state_layout(size_t group) const override;
};

}  // namespace tern::optim
