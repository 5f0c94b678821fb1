// L-BFGS.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tern/optim/grouped.h"

namespace tern::optim {

struct LBFGSOptions {
  double lr = 1;
  int64_t max_iter = 20;                           ///< iterations of one step
  std::optional<int64_t> max_eval = std::nullopt;  ///< calls of the closure in one step; max_iter * 5 / 4
  double tolerance_grad = 1e-7;                    ///< ends when no gradient is larger
  double tolerance_change = 1e-9;                  ///< ends when loss or parameters change less
  int64_t history_size = 100;                      ///< earlier directions that are kept
  std::optional<std::string> line_search_fn = std::nullopt;  ///< "strong_wolfe", or none
  bool maximize = false;

  template <class Visitor>
  void visit(Visitor&& visit) {
    visit("lr", lr);
    visit("max_iter", max_iter);
    int64_t evaluations = most_evaluations();
    visit("max_eval", evaluations);
    max_eval = evaluations;
    visit("tolerance_grad", tolerance_grad);
    visit("tolerance_change", tolerance_change);
    visit("history_size", history_size);
    visit("line_search_fn", line_search_fn);
    visit("maximize", maximize);
  }
  int64_t most_evaluations() const { return max_eval.value_or(max_iter * 5 / 4); }
  void check(const char* optimizer) const;
};

/// The quasi-Newton method with limited memory, as torch.optim.LBFGS (Nocedal and Wright, "Numerical
/// optimization", 2006, chapter 7; the line search is algorithm 3.5 there). Every step calls the closure
/// several times, and blocks the host. There is one group of parameters. Throws ValueError for options out of
/// range, and for parameters that differ in dtype or device.
class LBFGS final : public GroupedOptimizer<LBFGSOptions> {
 public:
  explicit LBFGS(std::vector<Tensor> params, const LBFGSOptions& options = {});
  /// There is one group.
  template <class... Args>
  void add_param_group(Args&&...) = delete;

  /// The loss is that of the first call, from before the step.
  Tensor step(const Closure& closure) override;
  /// Throws ValueError: this optimizer needs a closure.
  void step() override;

  OptimizerState state_dict() const override;
  void load_state_dict(const OptimizerState& saved) override;

 private:
  /// What is kept from step to step. `direction` is undefined before the first.
  struct Memory {
    int64_t func_evals = 0, n_iter = 0;
    Tensor direction;
    double step_size = 0;
    std::vector<Tensor> old_dirs, old_stps;  ///< changes of the gradient, and the steps that made them
    std::vector<double> ro;
    double scale = 1;  ///< of the first approximation of the inverse Hessian
    Tensor prev_flat_grad;
    double prev_loss = 0;
  };
  /// Loss and gradient at a place.
  struct Evaluation {
    double loss;
    Tensor grad;
  };
  struct Found {
    double step_size;
    Evaluation at;
    int64_t evaluations;
  };

  StateLayout state_layout(size_t) const override { return {}; }
  double signed_loss(const Tensor& loss) const;
  Tensor flat_gradient() const;
  void add_to_params(double step_size, const Tensor& direction);
  void update_direction(const Tensor& flat_grad);
  Found strong_wolfe(const std::function<Evaluation(double)>& evaluate, double step_size,
                     const Evaluation& start, double slope, int64_t max_evaluations) const;
  Memory read_memory(const StateMap& saved) const;

  std::vector<Tensor> params_;
  int64_t numel_ = 0;
  Memory memory_;
  bool has_memory_ = false;
};

}  // namespace tern::optim
