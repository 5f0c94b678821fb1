// Learning rates that go up and down again and again. The base of schedules is in optim/lr_scheduler.h.
#pragma once

#include <string>

#include "tern/optim/lr_scheduler.h"

namespace tern::optim {

struct CyclicLROptions {
  PerGroup base_lr = std::vector<double>{};              ///< the lowest; to be given
  PerGroup max_lr = std::vector<double>{};               ///< the highest; to be given
  int64_t step_size_up = 2000;                           ///< steps from the lowest to the highest
  std::optional<int64_t> step_size_down = std::nullopt;  ///< and down again; by default as many
  /// "triangular", "triangular2" (every cycle half as high as the one before) or "exp_range" (gamma to the
  /// power of the step).
  std::string mode = "triangular";
  double gamma = 1.0;
  /// Instead of `mode`: the height by the number of the cycle, from 1, or of the step. Not saved.
  std::function<double(double)> scale_fn = {};
  std::string scale_mode = "cycle";  ///< or "iterations"; of scale_fn
  /// Momentum (or beta1) goes the other way round.
  bool cycle_momentum = true;
  PerGroup base_momentum = 0.8;
  PerGroup max_momentum = 0.9;
};

/// Up from base_lr to max_lr and down again, one step a batch (Smith, "Cyclical learning rates for training
/// neural networks", WACV 2017).
class CyclicLR final : public LRScheduler {
 public:
  CyclicLR(Optimizer& optimizer, CyclicLROptions options);
  StateMap state_dict() const override;

 private:
  double next_lr(size_t group) override;
  void save(StateMap& map) const override;
  std::function<void()> load(const StateMap& map) override;
  double scale(double cycle) const;

  CyclicLROptions options_;
  double total_size_;  ///< steps of a cycle
  double step_ratio_;  ///< the share of it that goes up
  std::vector<double> max_lrs_, base_momentums_, max_momentums_;
};

}  // namespace tern::optim
