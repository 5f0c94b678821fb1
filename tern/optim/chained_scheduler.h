// Several schedules at once. The base of schedules is in optim/lr_scheduler.h.
#pragma once

#include "tern/optim/combined_lr.h"

namespace tern::optim {

/// Steps several schedules of one optimizer one after the other, each from the learning rate that the one
/// before it left: their factors multiply.
class ChainedScheduler final : public CombinedLR {
 public:
  /// Throws ValueError unless there is a schedule and all are of one optimizer; one that needs a metric can
  /// not take part.
  explicit ChainedScheduler(Schedulers schedulers);
  void step() override;

  StateMap state_dict() const override;
  void load_state_dict(const StateMap& saved) override;

 private:
  void take_back_first_step() override;
  void follow();
};

}  // namespace tern::optim
