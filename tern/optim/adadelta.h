// Adadelta.
#pragma once

#include <utility>
#include <vector>

#include "tern/optim/grouped.h"

namespace tern::optim {

struct AdadeltaOptions {
  double lr = 1.0;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;

  template <class Visitor>
  void visit(Visitor&& visit) {
    visit("lr", lr);
    visit("rho", rho);
    visit("eps", eps);
    visit("weight_decay", weight_decay);
    visit("maximize", maximize);
    visit.fixed("capturable", false);
    visit.fixed("foreach", std::monostate());
    visit.fixed("differentiable", false);
  }
  void check(const char* optimizer) const;
};

/// Adadelta, as torch.optim.Adadelta (Zeiler, "ADADELTA: An adaptive learning rate method", 2012). Throws
/// ValueError for options out of range.
class Adadelta final : public GroupedOptimizer<AdadeltaOptions> {
 public:
  explicit Adadelta(std::vector<Tensor> params, const AdadeltaOptions& options = {})
      : GroupedOptimizer("Adadelta", std::move(params), options) {}
  explicit Adadelta(std::vector<ParamGroup<AdadeltaOptions>> groups)
      : GroupedOptimizer("Adadelta", std::move(groups)) {}
  using Optimizer::step;
  void step() override;

 private:
  StateLayout state_layout(size_t group) const override;
};

}  // namespace tern::optim
