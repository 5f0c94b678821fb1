// Learning rates that go up and down again and again.
#include "tern/optim/cyclic_lr.h"

#include <cmath>

#include "tern/base/check.h"

namespace tern::optim {
namespace {

/// The options that a state has too.
void check_cyclic(const CyclicLROptions& o, const Optimizer& optimizer) {
  TERN_CHECK(o.scale_fn || o.mode == "triangular" || o.mode == "triangular2" || o.mode == "exp_range",
             ValueError,
             "CyclicLR: mode '{}' is invalid and scale_fn is None: it is 'triangular', 'triangular2' or "
             "'exp_range'",
             o.mode);
  TERN_CHECK(o.scale_mode == "cycle" || o.scale_mode == "iterations", ValueError,
             "CyclicLR: scale_mode '{}' is invalid: it is 'cycle' or 'iterations'", o.scale_mode);
  TERN_CHECK(
      !o.cycle_momentum || optimizer.momentum(), ValueError,
      "CyclicLR: optimizer must support momentum or beta1 with `cycle_momentum` option enabled: {} has "
      "neither",
      optimizer.name());
}

}  // namespace

CyclicLR::CyclicLR(Optimizer& optimizer, CyclicLROptions options)
    : LRScheduler("CyclicLR", optimizer, KeepNoInitial()), options_(std::move(options)) {
  CyclicLROptions& o = options_;
  const size_t groups = optimizer.num_groups();
  TERN_CHECK(!o.base_lr.values.empty() && !o.max_lr.values.empty(), ValueError,
             "CyclicLR: base_lr and max_lr must be given");
  const std::vector<double> base_lrs = o.base_lr.expand("base_lr", groups);
  max_lrs_ = o.max_lr.expand("max_lr", groups);
  const int64_t down = o.step_size_down.value_or(o.step_size_up);
  TERN_CHECK(o.step_size_up >= 1 && down >= 0, ValueError,
             "CyclicLR: step_size_up must be at least 1 and step_size_down at least 0, got {} and {}",
             o.step_size_up, down);
  total_size_ = static_cast<double>(o.step_size_up) + static_cast<double>(down);
  step_ratio_ = static_cast<double>(o.step_size_up) / total_size_;
  if (!o.scale_fn) o.scale_mode = o.mode == "exp_range" ? "iterations" : "cycle";
  check_cyclic(o, optimizer);
  if (o.cycle_momentum) {
    base_momentums_ = o.base_momentum.expand("base_momentum", groups);
    max_momentums_ = o.max_momentum.expand("max_momentum", groups);
  }
  for (size_t g = 0; g < groups; ++g) {
    optimizer.set_lr(base_lrs[g], g);
    if (!o.cycle_momentum) continue;
    optimizer.set_momentum(max_momentums_[g], g);
    optimizer.set_extra("max_momentum", max_momentums_[g], g);
    optimizer.set_extra("base_momentum", base_momentums_[g], g);
  }
  keep_initial_lrs();
  keep_base_lrs();
  start();
  set_base_lrs(base_lrs);
}

double CyclicLR::scale(double cycle) const {
  const double at = options_.scale_mode == "cycle" ? cycle : static_cast<double>(last_epoch_);
  if (options_.scale_fn) return options_.scale_fn(at);
  if (options_.mode == "triangular2") return 1 / std::pow(2.0, at - 1);
  return options_.mode == "exp_range" ? std::pow(options_.gamma, at) : 1.0;
}

double CyclicLR::next_lr(size_t group) {
  const double cycles = static_cast<double>(last_epoch_) / total_size_, cycle = std::floor(1 + cycles);
  const double x = 1.0 + cycles - cycle;
  const double height = (x <= step_ratio_ ? x / step_ratio_ : (x - 1) / (step_ratio_ - 1)) * scale(cycle);
  if (options_.cycle_momentum)
    optimizer().set_momentum(
        max_momentums_[group] - (max_momentums_[group] - base_momentums_[group]) * height, group);
  return base(group) + (max_lrs_[group] - base(group)) * height;
}

StateMap CyclicLR::state_dict() const {
  StateMap map = LRScheduler::state_dict();
  map.set("_scale_fn_custom", std::monostate());
  return map;
}

void CyclicLR::save(StateMap& map) const {
  map.set("max_lrs", max_lrs_);
  map.set("total_size", total_size_);
  map.set("step_ratio", step_ratio_);
  map.set("mode", options_.mode);
  map.set("gamma", options_.gamma);
  map.set("scale_mode", options_.scale_mode);
  map.set("cycle_momentum", options_.cycle_momentum);
  if (!options_.cycle_momentum) return;
  map.set("use_beta1", optimizer().uses_beta1());
  map.set("base_momentums", base_momentums_);
  map.set("max_momentums", max_momentums_);
}

std::function<void()> CyclicLR::load(const StateMap& map) {
  CyclicLROptions read = options_;
  read.mode = map.text("mode").value_or(read.mode);
  read.gamma = map.number("gamma").value_or(read.gamma);
  read.scale_mode = map.text("scale_mode").value_or(read.scale_mode);
  read.cycle_momentum = map.boolean("cycle_momentum").value_or(read.cycle_momentum);
  with_context("the loaded state", [&] { check_cyclic(read, optimizer()); });
  const double total_size = map.number("total_size").value_or(total_size_),
               step_ratio = map.number("step_ratio").value_or(step_ratio_);
  TERN_CHECK(total_size > 0 && step_ratio > 0 && step_ratio <= 1, ValueError,
             "CyclicLR: the loaded total_size must be positive and step_ratio from 0 to 1, got {} and {}",
             total_size, step_ratio);
  auto max_lrs = load_per_group(map, "max_lrs", max_lrs_);
  std::vector<double> base_momentums, max_momentums;
  if (read.cycle_momentum) {
    base_momentums = load_per_group(map, "base_momentums", base_momentums_);
    max_momentums = load_per_group(map, "max_momentums", max_momentums_);
    TERN_CHECK(!base_momentums.empty() && !max_momentums.empty(), ValueError,
               "CyclicLR: the loaded state lacks 'base_momentums' or 'max_momentums', which its "
               "'cycle_momentum' needs");
  }
  return [=, this] {
    options_ = read;
    total_size_ = total_size;
    step_ratio_ = step_ratio;
    max_lrs_ = max_lrs;
    base_momentums_ = base_momentums;
    max_momentums_ = max_momentums;
  };
}

}  // namespace tern::optim
