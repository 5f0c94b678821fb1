// Schedules one after the other.
#include "tern/optim/sequential_lr.h"

#include <algorithm>

#include "tern/base/check.h"
#include "tern/optim/chained_scheduler.h"

namespace tern::optim {

SequentialLR::SequentialLR(Optimizer& optimizer, Schedulers schedulers, SequentialLROptions options)
    : CombinedLR("SequentialLR", optimizer, std::move(schedulers)),
      milestones_(std::move(options.milestones)) {
  for (size_t i = 0; i < schedulers_.size(); ++i) {
    TERN_CHECK(
        !dynamic_cast<SequentialLR*>(schedulers_[i].get()), ValueError,
        "SequentialLR: can not contain another SequentialLR (scheduler {}): put its schedulers into one list",
        i);
    TERN_CHECK(
        i == 0 || !dynamic_cast<ChainedScheduler*>(schedulers_[i].get()), ValueError,
        "SequentialLR: a ChainedScheduler can only be the first, since it can not start at a milestone: "
        "scheduler {}",
        i);
  }
  TERN_CHECK(milestones_.size() + 1 == schedulers_.size(), ValueError,
             "SequentialLR: expects number of schedulers provided to be one more than the number of "
             "milestone points, but got "
             "number of schedulers {} and the number of milestones to be equal to {}",
             schedulers_.size(), milestones_.size());
  TERN_CHECK(std::is_sorted(milestones_.begin(), milestones_.end()), ValueError,
             "SequentialLR: milestones must be in order");
  // Each schedule took its first step when it was made: that is taken back, and the first one takes it again.
  last_epoch_ = 0;
  for (size_t g = 0; g < optimizer.num_groups(); ++g) optimizer.set_lr(*optimizer.extra("initial_lr", g), g);
  take_back_first_steps();
  LRScheduler& first = at(0);
  first.start();
  last_lr_ = first.get_last_lr();
}

LRScheduler& SequentialLR::at(int64_t epoch) const {
  auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), epoch) - milestones_.begin();
  return *schedulers_[static_cast<size_t>(passed)];
}

void SequentialLR::step() {
  ++last_epoch_;
  LRScheduler& scheduler = at(last_epoch_);
  if (std::find(milestones_.begin(), milestones_.end(), last_epoch_) != milestones_.end())
    scheduler.update_lr(0);
  else
    scheduler.step();
  last_lr_ = scheduler.get_last_lr();
}

StateMap SequentialLR::state_dict() const {
  StateMap map;
  map.set("_milestones", milestones_);
  map.set("last_epoch", last_epoch_);
  map.set("_last_lr", last_lr_);
  map.set("_schedulers", save_schedulers());
  return map;
}

void SequentialLR::load_state_dict(const StateMap& saved) {
  auto last_epoch = saved.integer("last_epoch");
  TERN_CHECK(last_epoch, ValueError, "SequentialLR: the loaded state has no 'last_epoch'");
  auto last_lr = load_per_group(saved, "_last_lr", last_lr_);
  auto milestones = saved.integers("_milestones");
  TERN_CHECK(!milestones || milestones->size() == milestones_.size(), ValueError,
             "SequentialLR: the loaded state has {} milestones, not {}", milestones ? milestones->size() : 0,
             milestones_.size());
  TERN_CHECK(!milestones || std::is_sorted(milestones->begin(), milestones->end()), ValueError,
             "SequentialLR: '_milestones' of the loaded state must be in order");
  load_schedulers(saved);
  if (milestones) milestones_ = std::move(*milestones);
  last_epoch_ = *last_epoch;
  last_lr_ = std::move(last_lr);
}

}  // namespace tern::optim
