// Schedules one after the other. The base of schedules is in optim/lr_scheduler.h.
#pragma once

#include "tern/optim/combined_lr.h"

namespace tern::optim {

struct SequentialLROptions {
  /// The epochs at which the second, third, ... schedule takes over.
  std::vector<int64_t> milestones = {};
};

/// Runs schedules of one optimizer one after the other: a warm-up, then a decay. They are stepped by this one
/// alone.
class SequentialLR final : public CombinedLR {
 public:
  /// Throws ValueError unless there is one more schedule than milestones and all are of this optimizer; a
  /// schedule that needs a metric and another SequentialLR can not take part, a ChainedScheduler only as the
  /// first.
  SequentialLR(Optimizer& optimizer, Schedulers schedulers, SequentialLROptions options);
  void step() override;

  StateMap state_dict() const override;
  void load_state_dict(const StateMap& saved) override;

 private:
  LRScheduler& at(int64_t epoch) const;

  std::vector<int64_t> milestones_;
};

}  // namespace tern::optim
