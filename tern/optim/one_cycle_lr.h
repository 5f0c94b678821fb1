// The one-cycle schedule. The base of schedules is in optim/lr_scheduler.h.
#pragma once

#include <string>

#include "tern/optim/lr_scheduler.h"

namespace tern::optim {

struct OneCycleLROptions {
  PerGroup max_lr = std::vector<double>{};  ///< to be given
  /// Number of steps of the whole cycle; or give `epochs` and `steps_per_epoch`.
  std::optional<int64_t> total_steps = std::nullopt;
  std::optional<int64_t> epochs = std::nullopt;
  std::optional<int64_t> steps_per_epoch = std::nullopt;
  double pct_start = 0.3;
  std::string anneal_strategy = "cos";  ///< or "linear"
  /// Momentum (or beta1) goes the other way round.
  bool cycle_momentum = true;
  PerGroup base_momentum = 0.85;
  PerGroup max_momentum = 0.95;
  double div_factor = 25;  ///< not 0, as the next
  double final_div_factor = 1e4;
  bool three_phase = false;
};

/// Up from max_lr / div_factor to max_lr, then down to max_lr / div_factor / final_div_factor, one step a
/// batch (Smith and Topin, "Super-convergence", 2018). Throws ValueError for a step beyond the last.
class OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options);

 private:
  /// Values of a group (`initial_lr`, `max_lr`, ...) by name, from the step that the phase before it ended
  /// at.
  struct Phase {
    double end_step;
    std::string start_lr, end_lr, start_momentum, end_momentum;
  };

  double next_lr(size_t group) override;
  void save(StateMap& map) const override;
  std::function<void()> load(const StateMap& map) override;
  double anneal(double start, double end, double part) const;
  double group_value(const std::string& name, size_t group) const;

  int64_t total_steps_ = 0;
  std::vector<Phase> phases_;
  std::string anneal_strategy_;
  bool cycle_momentum_;
};

}  // namespace tern::optim
