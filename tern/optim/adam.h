// Adam and AdamW.
#pragma once

#include <concepts>
#include <functional>
#include <utility>
#include <vector>

#include "tern/optim/grouped.h"

namespace tern::optim {

struct AdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
  /// The decay shrinks the parameters instead of being added to the gradients: Adam becomes AdamW.
  bool decoupled_weight_decay = false;

  template <class Visitor>
  void visit(Visitor&& visit) {
    visit("lr", lr);
    visit("betas", betas);
    visit("eps", eps);
    visit("weight_decay", weight_decay);
    visit("amsgrad", amsgrad);
    visit("maximize", maximize);
    visit.fixed("foreach", std::monostate());
    visit.fixed("capturable", false);
    visit.fixed("differentiable", false);
    visit.fixed("fused", std::monostate());
    visit("decoupled_weight_decay", decoupled_weight_decay);
  }
  void check(const char* optimizer) const;
};

/// Adam, as torch.optim.Adam (Kingma and Ba, "Adam: A method for stochastic optimization", ICLR 2015;
/// AMSGrad: Reddi et al., "On the convergence of Adam and beyond", ICLR 2018). Throws ValueError for options
/// out of range.
class Adam : public GroupedOptimizer<AdamOptions> {
 public:
  explicit Adam(std::vector<Tensor> params, const AdamOptions& options = {})
      : Adam("Adam", std::move(params), options) {}
  explicit Adam(std::vector<ParamGroup<AdamOptions>> groups) : Adam("Adam", std::move(groups)) {}
  using Optimizer::step;
  void step() override;

 protected:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  StateLayout state_layout(size_t group) const override;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

/// Adam with decoupled weight decay, as torch.optim.AdamW (Loshchilov and Hutter, "Decoupled weight decay
/// regularization", ICLR 2019).
class AdamW final : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& options = {})
      : Adam("AdamW", std::move(params), as_adam(options)) {}
  explicit AdamW(std::vector<ParamGroup<AdamWOptions>> groups) : Adam("AdamW", as_adam(std::move(groups))) {}

  /// One more group, as GroupedOptimizer's: what `options` do not name has the default of AdamWOptions.
  void add_param_group(std::vector<Tensor> params, const AdamWOptions& options) {
    Adam::add_param_group(std::move(params), as_adam(options));
  }
  /// The same with changed defaults() or options(group); the decay is decoupled whatever they say.
  template <std::same_as<AdamOptions> T>
  void add_param_group(std::vector<Tensor> params, T options) {
    options.decoupled_weight_decay = true;
    Adam::add_param_group(std::move(params), options);
  }
  void add_param_group(std::vector<Tensor> params) { Adam::add_param_group(std::move(params)); }

 private:
  static AdamOptions as_adam(const AdamWOptions& options);
  static std::vector<ParamGroup<AdamOptions>> as_adam(std::vector<ParamGroup<AdamWOptions>> groups);
  std::function<void()> read_options(const OptimizerState& saved) override;
};

}  // namespace tern::optim
