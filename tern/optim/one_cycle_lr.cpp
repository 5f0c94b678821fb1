// The one-cycle schedule.
#include "tern/optim/one_cycle_lr.h"

#include <cmath>
#include <numbers>

#include "tern/base/check.h"

namespace tern::optim {

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& o)
    : LRScheduler("OneCycleLR", optimizer),
      anneal_strategy_(o.anneal_strategy),
      cycle_momentum_(o.cycle_momentum) {
  if (o.total_steps) {
    TERN_CHECK(*o.total_steps > 0, ValueError,
               "OneCycleLR: Expected positive integer total_steps, but got {}", *o.total_steps);
    total_steps_ = *o.total_steps;
  } else {
    TERN_CHECK(o.epochs && o.steps_per_epoch, ValueError,
               "OneCycleLR: You must define either total_steps OR (epochs AND steps_per_epoch)");
    TERN_CHECK(*o.epochs > 0, ValueError, "OneCycleLR: Expected positive integer epochs, but got {}",
               *o.epochs);
    TERN_CHECK(*o.steps_per_epoch > 0, ValueError,
               "OneCycleLR: Expected positive integer steps_per_epoch, but got {}", *o.steps_per_epoch);
    total_steps_ = *o.epochs * *o.steps_per_epoch;
  }
  TERN_CHECK(o.pct_start >= 0 && o.pct_start <= 1, ValueError,
             "OneCycleLR: Expected float between 0 and 1 pct_start, but got {}", o.pct_start);
  TERN_CHECK(o.anneal_strategy == "cos" || o.anneal_strategy == "linear", ValueError,
             "OneCycleLR: anneal_strategy must be one of 'cos' or 'linear', instead got {}",
             o.anneal_strategy);
  TERN_CHECK(!o.max_lr.values.empty(), ValueError, "OneCycleLR: max_lr must be given");
  TERN_CHECK(o.div_factor != 0 && o.final_div_factor != 0, ValueError,
             "OneCycleLR: division by zero: div_factor and final_div_factor must not be 0, got {} and {}",
             o.div_factor, o.final_div_factor);
  TERN_CHECK(!cycle_momentum_ || optimizer.momentum(), ValueError,
             "OneCycleLR: optimizer must support momentum or beta1 with `cycle_momentum` option enabled: {} "
             "has neither",
             optimizer.name());
  const double total = static_cast<double>(total_steps_), up = o.pct_start * total;
  phases_.push_back({up - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum"});
  if (o.three_phase) {
    phases_.push_back({2 * o.pct_start * total - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"});
    phases_.push_back({total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"});
  } else {
    phases_.push_back({total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"});
  }

  const size_t groups = optimizer.num_groups();
  const auto max_lr = o.max_lr.expand("max_lr", groups);
  for (size_t g = 0; g < groups; ++g) {
    optimizer.set_extra("initial_lr", max_lr[g] / o.div_factor, g);
    optimizer.set_extra("max_lr", max_lr[g], g);
    optimizer.set_extra("min_lr", max_lr[g] / o.div_factor / o.final_div_factor, g);
  }
  if (cycle_momentum_) {
    const auto max_momentum = o.max_momentum.expand("max_momentum", groups);
    const auto base_momentum = o.base_momentum.expand("base_momentum", groups);
    for (size_t g = 0; g < groups; ++g) {
      optimizer.set_momentum(max_momentum[g], g);
      optimizer.set_extra("max_momentum", max_momentum[g], g);
      optimizer.set_extra("base_momentum", base_momentum[g], g);
    }
  }
  keep_base_lrs();
  start();
}

double OneCycleLR::anneal(double start, double end, double part) const {
  if (anneal_strategy_ == "linear") return (end - start) * part + start;
  return end + (start - end) / 2.0 * (std::cos(std::numbers::pi * part) + 1);
}

double OneCycleLR::group_value(const std::string& name, size_t group) const {
  auto value = optimizer().extra(name, group);
  TERN_CHECK(value, ValueError, "OneCycleLR: parameter group {} of the optimizer has lost its '{}'", group,
             name);
  return *value;
}

double OneCycleLR::next_lr(size_t group) {
  TERN_CHECK(last_epoch_ <= total_steps_, ValueError,
             "OneCycleLR: Tried to step {} times. The specified number of total steps is {}", last_epoch_,
             total_steps_);
  const double step = static_cast<double>(last_epoch_);
  double start_step = 0;
  size_t p = 0;
  while (p + 1 < phases_.size() && step > phases_[p].end_step) start_step = phases_[p++].end_step;
  const Phase& phase = phases_[p];
  const double length = phase.end_step - start_step;
  const double part = length != 0 ? (step - start_step) / length : 1;
  if (cycle_momentum_)
    optimizer().set_momentum(
        anneal(group_value(phase.start_momentum, group), group_value(phase.end_momentum, group), part),
        group);
  return anneal(group_value(phase.start_lr, group), group_value(phase.end_lr, group), part);
}

void OneCycleLR::save(StateMap& map) const {
  map.set("total_steps", total_steps_);
  std::vector<StateMap> phases;
  for (const Phase& phase : phases_) {
    StateMap& entry = phases.emplace_back();
    entry.set("end_step", phase.end_step);
    entry.set("start_lr", phase.start_lr);
    entry.set("end_lr", phase.end_lr);
    entry.set("start_momentum", phase.start_momentum);
    entry.set("end_momentum", phase.end_momentum);
  }
  map.set("_schedule_phases", phases);
  map.set("_anneal_func_type", anneal_strategy_);
  map.set("cycle_momentum", cycle_momentum_);
  if (cycle_momentum_) map.set("use_beta1", optimizer().uses_beta1());
}

std::function<void()> OneCycleLR::load(const StateMap& map) {
  const int64_t total_steps = map.integer("total_steps").value_or(total_steps_);
  const std::string strategy = map.text("_anneal_func_type").value_or(anneal_strategy_);
  TERN_CHECK(strategy == "cos" || strategy == "linear", ValueError,
             "OneCycleLR: the loaded anneal strategy is unknown: {}", strategy);
  const bool cycle_momentum = map.boolean("cycle_momentum").value_or(cycle_momentum_);
  std::vector<Phase> phases = phases_;
  if (auto saved = map.maps("_schedule_phases")) {
    phases.clear();
    for (const StateMap& entry : *saved) {
      auto end_step = entry.number("end_step");
      auto start_lr = entry.text("start_lr"), end_lr = entry.text("end_lr");
      TERN_CHECK(end_step && start_lr && end_lr, ValueError,
                 "OneCycleLR: a loaded phase lacks its end_step, start_lr or end_lr");
      phases.push_back({*end_step, *start_lr, *end_lr, entry.text("start_momentum").value_or(""),
                        entry.text("end_momentum").value_or("")});
    }
    TERN_CHECK(!phases.empty(), ValueError, "OneCycleLR: the loaded schedule has no phases");
  }
  return [=, this] {
    total_steps_ = total_steps;
    anneal_strategy_ = strategy;
    cycle_momentum_ = cycle_momentum;
    phases_ = phases;
  };
}

}  // namespace tern::optim
