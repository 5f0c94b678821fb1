// A schedule that follows a metric. The base of schedules is in optim/lr_scheduler.h.
#pragma once

#include <string>

#include "tern/optim/lr_scheduler.h"

namespace tern::optim {

struct ReduceLROnPlateauOptions {
  std::string mode = "min";  ///< "min": the metric should fall; "max": it should rise
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  std::string threshold_mode = "rel";  ///< or "abs"
  int64_t cooldown = 0;
  PerGroup min_lr = 0.0;
  double eps = 1e-8;
};

/// Multiplies the learning rate by `factor` when the metric has not become better for more than `patience`
/// steps.
class ReduceLROnPlateau final : public LRScheduler {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {});
  /// One more value of the metric.
  void step(double metric);
  /// Throws ValueError: this schedule needs a metric.
  void step() override;

  StateMap state_dict() const override;
  void load_state_dict(const StateMap& saved) override;

 private:
  double next_lr(size_t group) override { return current(group); }
  void save(StateMap&) const override {}
  std::function<void()> load(const StateMap&) override {
    return [] {};
  }
  bool is_better(double metric) const;

  ReduceLROnPlateauOptions options_;
  std::vector<double> min_lrs_;
  double best_;
  int64_t cooldown_counter_ = 0;
  int64_t num_bad_epochs_ = 0;
};

}  // namespace tern::optim
