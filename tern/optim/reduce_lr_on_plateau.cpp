// A schedule that follows a metric.
#include "tern/optim/reduce_lr_on_plateau.h"

#include <algorithm>
#include <limits>

#include "tern/base/check.h"

namespace tern::optim {
namespace {

double worst(const std::string& mode) {
  const double infinity = std::numeric_limits<double>::infinity();
  return mode == "min" ? infinity : -infinity;
}

void check(const ReduceLROnPlateauOptions& o) {
  TERN_CHECK(o.factor < 1, ValueError, "ReduceLROnPlateau: Factor should be < 1.0, got {}", o.factor);
  TERN_CHECK(o.mode == "min" || o.mode == "max", ValueError,
             "ReduceLROnPlateau: mode {} is unknown: it is 'min' or 'max'", o.mode);
  TERN_CHECK(o.threshold_mode == "rel" || o.threshold_mode == "abs", ValueError,
             "ReduceLROnPlateau: threshold mode {} is unknown: it is 'rel' or 'abs'", o.threshold_mode);
}

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options)
    : LRScheduler("ReduceLROnPlateau", optimizer, KeepNoInitial()),
      options_(options),
      best_(worst(options.mode)) {
  check(options);
  min_lrs_ = options.min_lr.expand("min_lr", optimizer.num_groups());
  last_epoch_ = 0;
  for (size_t g = 0; g < optimizer.num_groups(); ++g) last_lr_.push_back(current(g));
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const bool relative = options_.threshold_mode == "rel";
  const double threshold = options_.threshold;
  if (options_.mode == "min") return metric < (relative ? best_ * (1.0 - threshold) : best_ - threshold);
  return metric > (relative ? best_ * (threshold + 1.0) : best_ + threshold);
}

void ReduceLROnPlateau::step() {
  TERN_THROW(ValueError, "ReduceLROnPlateau: step() needs the value of the metric: step(loss)");
}

void ReduceLROnPlateau::step(double metric) {
  const size_t groups = optimizer().num_groups();
  TERN_CHECK(min_lrs_.size() == groups || options_.min_lr.values.size() == 1, ValueError,
             "ReduceLROnPlateau: the number of parameter groups in the optimizer ({}) differs from when the "
             "schedule was made "
             "({}): give one min_lr for all groups",
             groups, min_lrs_.size());
  if (min_lrs_.size() != groups) min_lrs_ = options_.min_lr.expand("min_lr", groups);
  ++last_epoch_;
  if (is_better(metric)) {
    best_ = metric;
    num_bad_epochs_ = 0;
  } else {
    ++num_bad_epochs_;
  }
  if (cooldown_counter_ > 0) {
    --cooldown_counter_;
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ > options_.patience) {
    for (size_t g = 0; g < groups; ++g) {
      const double before = current(g), after = std::max(before * options_.factor, min_lrs_[g]);
      if (before - after > options_.eps) optimizer().set_lr(after, g);
    }
    cooldown_counter_ = options_.cooldown;
    num_bad_epochs_ = 0;
  }
  last_lr_.clear();
  for (size_t g = 0; g < groups; ++g) last_lr_.push_back(current(g));
}

StateMap ReduceLROnPlateau::state_dict() const {
  StateMap map;
  map.set("factor", options_.factor);
  if (options_.min_lr.values.size() == 1)
    map.set("default_min_lr", options_.min_lr.values.front());
  else
    map.set("default_min_lr", std::monostate());
  map.set("min_lrs", min_lrs_);
  map.set("patience", options_.patience);
  map.set("cooldown", options_.cooldown);
  map.set("eps", options_.eps);
  map.set("last_epoch", last_epoch_);
  map.set("_last_lr", last_lr_);
  map.set("mode_worse", worst(options_.mode));
  map.set("mode", options_.mode);
  map.set("threshold", options_.threshold);
  map.set("threshold_mode", options_.threshold_mode);
  map.set("best", best_);
  map.set("cooldown_counter", cooldown_counter_);
  map.set("num_bad_epochs", num_bad_epochs_);
  return map;
}

void ReduceLROnPlateau::load_state_dict(const StateMap& saved) {
  ReduceLROnPlateauOptions o = options_;
  o.factor = saved.number("factor").value_or(o.factor);
  o.patience = saved.integer("patience").value_or(o.patience);
  o.cooldown = saved.integer("cooldown").value_or(o.cooldown);
  o.eps = saved.number("eps").value_or(o.eps);
  o.mode = saved.text("mode").value_or(o.mode);
  o.threshold = saved.number("threshold").value_or(o.threshold);
  o.threshold_mode = saved.text("threshold_mode").value_or(o.threshold_mode);
  check(o);
  auto min_lrs = load_per_group(saved, "min_lrs", min_lrs_);
  if (auto min_lr = saved.number("default_min_lr"))
    o.min_lr = *min_lr;
  else
    o.min_lr = min_lrs;
  auto last_epoch = saved.integer("last_epoch");
  auto best = saved.number("best");
  TERN_CHECK(last_epoch && best, ValueError,
             "ReduceLROnPlateau: the loaded state lacks 'last_epoch' or 'best'");
  auto cooldown_counter = saved.integer("cooldown_counter").value_or(0);
  auto num_bad_epochs = saved.integer("num_bad_epochs").value_or(0);
  auto last_lr = load_per_group(saved, "_last_lr", last_lr_);
  options_ = std::move(o);
  min_lrs_ = std::move(min_lrs);
  last_epoch_ = *last_epoch;
  best_ = *best;
  cooldown_counter_ = cooldown_counter;
  num_bad_epochs_ = num_bad_epochs;
  last_lr_ = std::move(last_lr);
}

}  // namespace tern::optim
