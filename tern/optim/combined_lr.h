// What schedules made of schedules share. Internal; sequential_lr.h and chained_scheduler.h are such.
#pragma once

#include <memory>
#include <vector>

#include "tern/optim/lr_scheduler.h"

namespace tern::optim {

/// Schedules of one optimizer, which are stepped by this one alone.
class CombinedLR : public LRScheduler {
 public:
  using Schedulers = std::vector<std::shared_ptr<LRScheduler>>;

 protected:
  /// Throws ValueError for none, for one that is null, that needs a metric, or is of another optimizer.
  CombinedLR(const char* name, Optimizer& optimizer, Schedulers schedulers);
  /// The optimizer of the first; throws ValueError when there is none.
  static Optimizer& optimizer_of(const char* name, const Schedulers& schedulers);

  std::vector<StateMap> save_schedulers() const;
  /// All or, when one throws, none. Throws ValueError for another number of states.
  void load_schedulers(const StateMap& saved);
  void take_back_first_steps();

  Schedulers schedulers_;

 private:
  double next_lr(size_t group) override { return current(group); }
  void save(StateMap&) const override {}
  std::function<void()> load(const StateMap&) override {
    return [] {};
  }
};

}  // namespace tern::optim
