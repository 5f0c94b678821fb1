// Several schedules at once.
#include "tern/optim/chained_scheduler.h"

namespace tern::optim {

ChainedScheduler::ChainedScheduler(Schedulers schedulers)
    : CombinedLR("ChainedScheduler", optimizer_of("ChainedScheduler", schedulers), schedulers) {
  follow();
}

/// Takes the learning rates that the schedules have left.
void ChainedScheduler::follow() {
  last_epoch_ = schedulers_.front()->last_epoch();
  last_lr_.clear();
  for (size_t g = 0; g < optimizer().num_groups(); ++g) last_lr_.push_back(current(g));
}

void ChainedScheduler::step() {
  for (const auto& scheduler : schedulers_) scheduler->step();
  follow();
}

void ChainedScheduler::take_back_first_step() {
  take_back_first_steps();
  LRScheduler::take_back_first_step();
}

StateMap ChainedScheduler::state_dict() const {
  StateMap map;
  map.set("_last_lr", last_lr_);
  map.set("_schedulers", save_schedulers());
  return map;
}

void ChainedScheduler::load_state_dict(const StateMap& saved) {
  auto last_lr = load_per_group(saved, "_last_lr", last_lr_);
  load_schedulers(saved);
  last_epoch_ = schedulers_.front()->last_epoch();
  last_lr_ = std::move(last_lr);
}

}  // namespace tern::optim
