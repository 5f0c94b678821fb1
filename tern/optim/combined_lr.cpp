// Checks, saving and loading of schedules made of schedules.
#include "tern/optim/combined_lr.h"

#include "tern/base/check.h"
#include "tern/optim/reduce_lr_on_plateau.h"

namespace tern::optim {

CombinedLR::CombinedLR(const char* name, Optimizer& optimizer, Schedulers schedulers)
    : LRScheduler(name, optimizer, KeepNoInitial()), schedulers_(std::move(schedulers)) {
  TERN_CHECK(!schedulers_.empty(), ValueError, "{}: expects at least one scheduler, but got no scheduler",
             name);
  for (size_t i = 0; i < schedulers_.size(); ++i) {
    TERN_CHECK(schedulers_[i], ValueError, "{}: scheduler {} is null", name, i);
    TERN_CHECK(!dynamic_cast<ReduceLROnPlateau*>(schedulers_[i].get()), ValueError,
               "{}: does not support `ReduceLROnPlateau`, which needs a metric: scheduler {}", name, i);
    TERN_CHECK(&schedulers_[i]->optimizer() == &optimizer, ValueError,
               "{}: expects all schedulers to belong to the same optimizer: scheduler {} belongs to another",
               name, i);
  }
}

Optimizer& CombinedLR::optimizer_of(const char* name, const Schedulers& schedulers) {
  TERN_CHECK(!schedulers.empty() && schedulers.front(), ValueError,
             "{}: expects at least one scheduler, but got no scheduler", name);
  return schedulers.front()->optimizer();
}

std::vector<StateMap> CombinedLR::save_schedulers() const {
  std::vector<StateMap> states;
  for (const auto& scheduler : schedulers_) states.push_back(scheduler->state_dict());
  return states;
}

void CombinedLR::load_schedulers(const StateMap& saved) {
  const auto states = saved.maps("_schedulers");
  TERN_CHECK(states, ValueError, "{}: the loaded state lacks '_schedulers'", name());
  TERN_CHECK(states->size() == schedulers_.size(), ValueError,
             "{}: the loaded state is of {} schedulers, not of {}", name(), states->size(),
             schedulers_.size());
  const std::vector<StateMap> before = save_schedulers();
  try {
    for (size_t i = 0; i < schedulers_.size(); ++i) schedulers_[i]->load_state_dict((*states)[i]);
  } catch (...) {
    for (size_t i = 0; i < schedulers_.size(); ++i) schedulers_[i]->load_state_dict(before[i]);
    throw;
  }
}

void CombinedLR::take_back_first_steps() {
  for (const auto& scheduler : schedulers_) scheduler->take_back_first_step();
}

}  // namespace tern::optim
